//! The one place where core errors become Python exceptions.

use pyo3::PyErr;
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pytensor_fuse_core::Error;

/// The Python exception for an error of the core.
pub(crate) fn to_py(error: Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// More objects than a 32-bit id can name.
pub(crate) fn too_large(what: &str) -> PyErr {
    PyOverflowError::new_err(format!("{what} has more entries than fit a 32-bit id"))
}

/// A graph in which a node waits for itself.
pub(crate) fn cyclic() -> PyErr {
    PyValueError::new_err("the graph has a cycle: an apply node depends on its own output")
}

/// A variable with more dimensions than NumPy allows.
pub(crate) fn too_many_dimensions(ndim: usize, limit: usize) -> PyErr {
    PyValueError::new_err(format!("a variable has {ndim} dimensions, more than {limit}"))
}
