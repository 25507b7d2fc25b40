//! Conversion of core errors to Python exceptions.

use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyDict, PyString, PyTuple, PyType};
use pytensor_fuse_core::Error;

/// The exception classes: names, built-in bases, documentation. All but the first also derive from
/// the first.
const CLASSES: [(&str, Option<&str>, &str); 6] = [
    (
        "GraphError",
        Some("ValueError"),
        "Integer arrays that are not the graph, or the ids, that a call needs.\n\n\
         Attributes\n----------\nkind : str\n    One of ``ERROR_KINDS``.",
    ),
    (
        "EdgeError",
        None,
        "An edge that no graph can have.\n\n\
         Attributes\n----------\nedge : int\n    Its position in the arrays.",
    ),
    (
        "IdError",
        Some("IndexError"),
        "An id that the graph does not have.\n\n\
         Attributes\n----------\nid : int\n    The id.\n\
         limit : int\n    One past the largest valid id.",
    ),
    (
        "CycleError",
        None,
        "The graph is not acyclic.\n\n\
         Attributes\n----------\nnodes : tuple of int\n    \
         The nodes of one cycle, in edge order, from its smallest id.",
    ),
    (
        "MemoryLimitError",
        Some("MemoryError"),
        "Dense rows would take more memory than allowed; none was allocated.\n\n\
         Attributes\n----------\nneeded, limit : int\n    Bytes.",
    ),
    (
        "ContractionError",
        None,
        "A contraction that would make a cycle; nothing has changed.\n\n\
         Attributes\n----------\nthrough : int\n    \
         A node on a path that leaves the contracted nodes and comes back.",
    ),
];

/// The classes by name. They are made at run time, since `create_exception!` allows one base only.
fn classes(py: Python<'_>) -> PyResult<&Bound<'_, PyDict>> {
    static MADE: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let made = MADE.get_or_try_init(py, || {
        let made = PyDict::new(py);
        for (name, builtin, doc) in CLASSES {
            let builtin = builtin.map(|name| py.import("builtins")?.getattr(name)).transpose()?;
            let bases: Vec<_> = made.get_item("GraphError")?.into_iter().chain(builtin).collect();
            let namespace = [("__module__", "pytensor_fuse._core"), ("__doc__", doc)];
            let arguments = (name, PyTuple::new(py, bases)?, namespace.into_py_dict(py)?);
            made.set_item(name, py.get_type::<PyType>().call1(arguments)?)?;
        }
        Ok::<_, PyErr>(made.unbind())
    })?;
    Ok(made.bind(py))
}

/// Adds the exception classes and the list of their kinds to the module.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for (name, class) in classes(module.py())? {
        module.add(name.cast_into::<PyString>()?, class)?;
    }
    // Python never sees an interruption. It sees the exception that the signal's handler raised.
    let is_seen = |kind: &&&str| **kind != Error::Interrupted.kind();
    let kinds = Error::KINDS.iter().filter(is_seen).collect::<Vec<_>>();
    module.add("ERROR_KINDS", PyTuple::new(module.py(), kinds)?)
}

/// The Python exception for an error of the core.
pub(crate) fn to_py(error: Error) -> PyErr {
    Python::attach(|py| exception(py, &error).unwrap_or_else(|failure| failure))
}

fn exception(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let (class, numbers) = match *error {
        Error::EdgeOutOfRange { edge, .. }
        | Error::SelfLoop { edge, .. }
        | Error::BackwardEdge { edge, .. } => ("EdgeError", vec![("edge", edge as i64)]),
        Error::OutOfRange { id, limit, .. } => {
            ("IdError", vec![("id", id), ("limit", limit as i64)])
        }
        Error::NoTerm { id, limit } => {
            ("IdError", vec![("id", id as i64), ("limit", limit as i64)])
        }
        Error::Cycle { .. } => ("CycleError", vec![]),
        Error::MemoryLimit { needed, limit, .. } => {
            ("MemoryLimitError", vec![("needed", needed as i64), ("limit", limit as i64)])
        }
        Error::Contraction { through } => ("ContractionError", vec![("through", through.into())]),
        _ => ("GraphError", vec![]),
    };
    let value = classes(py)?.as_any().get_item(class)?.call1((error.to_string(),))?;
    value.setattr("kind", error.kind())?;
    for (name, number) in numbers {
        value.setattr(name, number)?;
    }
    if let Error::Cycle { nodes } = error {
        value.setattr("nodes", PyTuple::new(py, nodes)?)?;
    }
    Ok(PyErr::from_value(value))
}

/// An argument that does not consist of integers.
pub(crate) fn not_integers(what: &str, found: &str) -> PyErr {
    PyTypeError::new_err(format!("{what} must be a one-dimensional sequence of integers, {found}"))
}

/// More objects than a 32-bit id can name.
pub(crate) fn too_large(what: &str) -> PyErr {
    PyOverflowError::new_err(format!("{what} has more entries than fit a 32-bit id"))
}

/// A graph in which a node depends on itself.
pub(crate) fn cyclic() -> PyErr {
    PyValueError::new_err("the graph has a cycle: an apply node depends on its own output")
}

/// A variable with more dimensions than NumPy allows.
pub(crate) fn too_many_dimensions(ndim: usize, limit: usize) -> PyErr {
    PyValueError::new_err(format!("a variable has {ndim} dimensions, more than {limit}"))
}

/// A term of another table.
pub(crate) fn other_table() -> PyErr {
    PyValueError::new_err("a term belongs to another hash-cons table")
}

/// A call of a merge table during another call, from within it or from a second thread.
pub(crate) fn table_in_use() -> PyErr {
    PyRuntimeError::new_err(
        "the graph is being merged already: neither a comparison by the merge (such as an op's \
         `__eq__`) nor another thread may merge it now",
    )
}
