//! The parts of a graph, in an order that equal graphs share.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyType};
use pytensor_fuse_core::plan::NONE;

use super::{Details, Notes, QUICK, Walk};
use crate::flat::{Flattened, flatten};

/// The parts of a graph, depth first from the first output on, the last input of a node first.
#[pyclass(frozen, get_all, module = "pytensor_fuse._core")]
pub(crate) struct GraphParts {
    /// The nodes, each once.
    nodes: Py<PyList>,
    /// The inputs, and the outputs of the nodes.
    variables: Py<PyList>,
    /// The constants that are outputs or that nodes read, once for each use.
    constants: Py<PyList>,
    /// The positions of the named variables, with their names.
    names: Py<PyList>,
    /// The variables and constants with notes in their tags besides the harmless one.
    noted_variables: Py<PyList>,
    /// The nodes with notes in their tags besides the harmless one.
    noted_nodes: Py<PyList>,
}

/// Returns the result of `walk`, and the parts of the graph, from a single walk, since a walk
/// spends most of its time waiting for memory.
///
/// `harmless` are the notes that do not count, in the tags of variables and of nodes.
#[pyfunction]
pub(crate) fn walk_parts<'py>(
    inputs: &Bound<'py, PyAny>,
    outputs: &Bound<'py, PyAny>,
    constant: &Bound<'py, PyType>,
    plain_type: &Bound<'py, PyType>,
    plain_ops: &Bound<'py, PyDict>,
    harmless: [Bound<'py, PyString>; 2],
) -> PyResult<(Flattened, GraphParts)> {
    let mut details = Details::new(plain_type, Some(plain_ops));
    details.notes = Notes::new(harmless);
    let mut walk = Walk::new(inputs.py(), constant, details);
    let results = walk.between(inputs, outputs)?;
    let flattened = flatten(&mut walk, &results)?;
    Ok((flattened, parts(walk, results)?))
}

fn parts(mut walk: Walk<'_, '_>, results: Vec<u32>) -> PyResult<GraphParts> {
    let py = walk.py;
    // An input at which the walk ended may be a constant.
    for id in 0..walk.n_roots {
        let root = walk.variables.objects[id].clone_ref(py);
        walk.constants[id] = walk.is_constant(root.bind(py))?;
    }
    let mut variables: Vec<u32> = (0..walk.n_roots as u32).collect();
    let (mut nodes, mut constants) = (Vec::new(), Vec::new());
    let mut is_known = vec![false; walk.nodes.len()];
    let mut pending = results;
    pending.reverse();
    while let Some(variable) = pending.pop() {
        let owner = walk.owners[variable as usize];
        if owner == NONE {
            if walk.constants[variable as usize] {
                constants.push(variable);
            }
            continue;
        }
        let node = walk.places[owner as usize];
        if !std::mem::replace(&mut is_known[node as usize], true) {
            let inputs = walk.inputs.row(node);
            walk.signals.check_many(py, 1 + inputs.len() / QUICK)?;
            nodes.push(node);
            variables.extend(walk.outputs.row(node));
            pending.extend(inputs);
        }
    }
    let notes = walk.details.notes;
    let names = PyList::empty(py);
    for (place, variable) in variables.iter().enumerate() {
        if let Some(name) = notes.names.get(variable) {
            names.append((place, name))?;
        }
    }
    let variable = |&id: &u32| walk.variables.objects[id as usize].bind(py);
    let node = |&id: &u32| walk.applies.objects[walk.nodes[id as usize] as usize].bind(py);
    let noted: Vec<_> = variables
        .iter()
        .chain(&constants)
        .filter(|&&id| notes.noted_variables[id as usize])
        .map(variable)
        .collect();
    let noted_nodes: Vec<_> =
        nodes.iter().filter(|&&id| notes.noted_nodes[id as usize]).map(node).collect();
    Ok(GraphParts {
        nodes: PyList::new(py, nodes.iter().map(node))?.unbind(),
        variables: PyList::new(py, variables.iter().map(variable))?.unbind(),
        constants: PyList::new(py, constants.iter().map(variable))?.unbind(),
        names: names.unbind(),
        noted_variables: PyList::new(py, noted)?.unbind(),
        noted_nodes: PyList::new(py, noted_nodes)?.unbind(),
    })
}
