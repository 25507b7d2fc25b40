//! Reads the tags of PyTensor's nodes and variables. Decides nothing: which notes matter is for the
//! Python package to say.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::interrupt::Signals;

/// Those of `objects`, in their order, whose tags have notes beside the one named `harmless`;
/// O(objects).
///
/// Raises
/// ------
/// AttributeError
///     One of them has no tag.
#[pyfunction]
pub(crate) fn with_notes<'py>(
    objects: &Bound<'py, PyList>,
    harmless: &Bound<'py, PyString>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let py = objects.py();
    let mut found = Vec::new();
    let mut signals = Signals::default();
    for object in objects.iter() {
        signals.check(py)?;
        let notes = object.getattr(intern!(py, "tag"))?.getattr(intern!(py, "__dict__"))?;
        let notes = notes.cast::<PyDict>()?;
        if notes.len() > 1 || (notes.len() == 1 && !notes.contains(harmless)?) {
            found.push(object);
        }
    }
    Ok(found)
}
