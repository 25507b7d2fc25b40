//! The parts of a graph, in an order that equal graphs share.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyType};
use pytensor_fuse_core::plan::NONE;

use crate::details::{OpsAndTypes, WithNotes};
use crate::flat::{Flattened, flatten};
use crate::walk::{QUICK, Walk};

/// The parts of a graph: from the first output on, the last input of a node first.
#[pyclass(frozen, get_all, module = "pytensor_fuse._core")]
pub(crate) struct GraphParts {
    /// The nodes, each once.
    nodes: Py<PyList>,
    /// The inputs, and the outputs of the nodes.
    variables: Py<PyList>,
    /// The constants that are outputs, and those that nodes read, as often as they do.
    constants: Py<PyList>,
    /// The places of the variables with names, and these.
    names: Py<PyList>,
    /// The variables and constants with other notes in their tags than the harmless one.
    noted_variables: Py<PyList>,
    /// The nodes of that kind.
    noted_nodes: Py<PyList>,
}

/// Returns what `walk` does, and the parts of the graph.
///
/// The walk is one: most of its time is waiting for the memory in which the objects are.
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
    let details = WithNotes::new(OpsAndTypes::new(plain_type, Some(plain_ops)), harmless);
    let mut walk = Walk::new(inputs.py(), constant, details);
    let results = walk.between(inputs, outputs)?;
    let flattened = flatten(&mut walk, &results, |details| &mut details.ops_and_types)?;
    Ok((flattened, parts(walk, results)?))
}

fn parts(mut walk: Walk<'_, '_, WithNotes<'_>>, results: Vec<u32>) -> PyResult<GraphParts> {
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
    let notes = walk.details;
    let mut name_of = vec![None; walk.owners.len()];
    for (id, name) in &notes.names {
        name_of[*id as usize] = Some(name);
    }
    let names = PyList::empty(py);
    for (place, &variable) in variables.iter().enumerate() {
        if let Some(name) = name_of[variable as usize] {
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
