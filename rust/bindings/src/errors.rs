//! The one place where core errors become Python exceptions.

use pyo3::exceptions::{
    PyIndexError, PyMemoryError, PyOverflowError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};
use pytensor_fuse_core::Error;

/// The exception classes. Made at run time, since `create_exception!` allows one base only.
struct Classes {
    graph: Py<PyType>,
    edge: Py<PyType>,
    id: Py<PyType>,
    cycle: Py<PyType>,
    memory_limit: Py<PyType>,
    contraction: Py<PyType>,
}

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

impl Classes {
    fn get(py: Python<'_>) -> PyResult<&Self> {
        CLASSES.get_or_try_init(py, || Self::new(py))
    }

    fn new(py: Python<'_>) -> PyResult<Self> {
        let value_error = py.get_type::<PyValueError>();
        let graph = new_class(
            "GraphError",
            &[&value_error],
            "Integer arrays that are not the graph, or the ids, that a call needs.\n\n\
             Attributes\n----------\nkind : str\n    Which of ``ERROR_KINDS`` this is.",
        )?;
        let subclass = |name, base: Option<&Bound<'_, PyType>>, doc| {
            let bases: Vec<_> = std::iter::once(&graph).chain(base).collect();
            new_class(name, &bases, doc).map(Bound::unbind)
        };
        Ok(Self {
            edge: subclass(
                "EdgeError",
                None,
                "An edge that no graph can have.\n\n\
                 Attributes\n----------\nedge : int\n    Its position in the arrays.",
            )?,
            id: subclass(
                "IdError",
                Some(&py.get_type::<PyIndexError>()),
                "An id that the graph does not have.\n\n\
                 Attributes\n----------\nid : int\n    The id.\n\
                 limit : int\n    One past the largest valid id.",
            )?,
            cycle: subclass(
                "CycleError",
                None,
                "The graph is not acyclic.\n\n\
                 Attributes\n----------\nnodes : tuple of int\n    \
                 The nodes of one cycle, in edge order, from its smallest id.",
            )?,
            memory_limit: subclass(
                "MemoryLimitError",
                Some(&py.get_type::<PyMemoryError>()),
                "Dense rows would take more memory than was allowed; none was allocated.\n\n\
                 Attributes\n----------\nneeded, limit : int\n    Bytes.",
            )?,
            contraction: subclass(
                "ContractionError",
                None,
                "A contraction that would make a cycle; nothing has changed.\n\n\
                 Attributes\n----------\nthrough : int\n    \
                 A node on a path that leaves the contracted nodes and comes back.",
            )?,
            graph: graph.unbind(),
        })
    }

    fn all(&self) -> [&Py<PyType>; 6] {
        [&self.graph, &self.edge, &self.id, &self.cycle, &self.memory_limit, &self.contraction]
    }
}

fn new_class<'py>(
    name: &str,
    bases: &[&Bound<'py, PyType>],
    doc: &str,
) -> PyResult<Bound<'py, PyType>> {
    let py = bases[0].py();
    let namespace = PyDict::new(py);
    namespace.set_item("__module__", "pytensor_fuse._core")?;
    namespace.set_item("__doc__", doc)?;
    let class = py.get_type::<PyType>().call1((name, PyTuple::new(py, bases)?, namespace))?;
    Ok(class.cast_into::<PyType>()?)
}

/// Puts the exception classes into the module, and the list of their kinds.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    for class in Classes::get(py)?.all() {
        let class = class.bind(py);
        module.add(class.name()?, class)?;
    }
    // Of an interruption, Python sees what the handler of the signal raised.
    let is_seen = |kind: &&str| *kind != Error::Interrupted.kind();
    let kinds: Vec<&str> = Error::KINDS.into_iter().filter(is_seen).collect();
    module.add("ERROR_KINDS", PyTuple::new(py, kinds)?)
}

/// The Python exception for an error of the core.
pub(crate) fn to_py(error: Error) -> PyErr {
    Python::attach(|py| exception(py, &error).unwrap_or_else(|failure| failure))
}

fn exception(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let classes = Classes::get(py)?;
    let class = match error {
        Error::EdgeOutOfRange { .. } | Error::SelfLoop { .. } | Error::BackwardEdge { .. } => {
            &classes.edge
        }
        Error::OutOfRange { .. } | Error::NoTerm { .. } => &classes.id,
        Error::Cycle { .. } => &classes.cycle,
        Error::MemoryLimit { .. } => &classes.memory_limit,
        Error::Contraction { .. } => &classes.contraction,
        _ => &classes.graph,
    };
    let value = class.bind(py).call1((error.to_string(),))?;
    value.setattr("kind", error.kind())?;
    match error {
        Error::EdgeOutOfRange { edge, .. }
        | Error::SelfLoop { edge, .. }
        | Error::BackwardEdge { edge, .. } => {
            value.setattr("edge", edge)?;
        }
        Error::OutOfRange { id, limit, .. } => {
            value.setattr("id", id)?;
            value.setattr("limit", limit)?;
        }
        Error::NoTerm { id, limit } => {
            value.setattr("id", id)?;
            value.setattr("limit", limit)?;
        }
        Error::Cycle { nodes } => value.setattr("nodes", PyTuple::new(py, nodes)?)?,
        Error::MemoryLimit { needed, limit, .. } => {
            value.setattr("needed", needed)?;
            value.setattr("limit", limit)?;
        }
        Error::Contraction { through } => value.setattr("through", through)?,
        _ => {}
    }
    Ok(PyErr::from_value(value))
}

/// An argument that does not hold integers.
pub(crate) fn not_integers(what: &str, found: &str) -> PyErr {
    PyTypeError::new_err(format!("{what} must be a one-dimensional sequence of integers, {found}"))
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

/// A term given to a table that it is not in.
pub(crate) fn other_table() -> PyErr {
    PyValueError::new_err("a term belongs to another hash-cons table")
}

/// A plan of another table.
pub(crate) fn plan_of_other_table() -> PyErr {
    PyValueError::new_err("the plan is of another table")
}

/// A call of a table from within another, or from a second thread.
pub(crate) fn table_in_use() -> PyErr {
    PyRuntimeError::new_err(
        "the graph is being merged already: what merging compares (an op's `__eq__`, say) must not \
         merge that graph, nor may another thread meanwhile",
    )
}

/// A plan of a table that has forgotten what it is about.
pub(crate) fn stale_plan() -> PyErr {
    PyValueError::new_err("the plan is not the last one of this table")
}
