//! Topological orders of apply nodes.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PySet, PyType};
use rustc_hash::FxHashMap;

use super::{Details, QUICK, Walk};
use crate::interrupt::Signals;

/// The nodes of `within` on which `roots` depend, in topological order, depth first from the first
/// root, the first input first. A root may be None.
///
/// Raises
/// ------
/// ValueError
///     A node depends on its own output.
#[pyfunction]
pub(crate) fn in_order<'py>(
    roots: Vec<Bound<'py, PyAny>>,
    within: &Bound<'py, PySet>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let py = within.py();
    let mut order = Vec::new();
    // Whether a node is in the order; false while it waits for its inputs, above it on the stack.
    let mut is_done: FxHashMap<usize, bool> = FxHashMap::default();
    let mut stack = Vec::new();
    let mut signals = Signals::default();
    for root in roots {
        stack.push((root, false));
        while let Some((node, has_waited)) = stack.pop() {
            let address = node.as_ptr() as usize;
            if has_waited {
                is_done.insert(address, true);
                order.push(node);
                continue;
            }
            match is_done.get(&address) {
                Some(true) => continue,
                Some(false) => return Err(crate::errors::cyclic()),
                None if node.is_none() || !within.contains(&node)? => continue,
                None => is_done.insert(address, false),
            };
            signals.check(py)?;
            let inputs = node.getattr(intern!(py, "inputs"))?;
            stack.push((node, true));
            let first = stack.len();
            for variable in inputs.try_iter()? {
                signals.check(py)?;
                stack.push((variable?.getattr(intern!(py, "owner"))?, false));
            }
            stack[first..].reverse();
        }
    }
    Ok(order)
}

/// The nodes that compute outputs, in the order of `Walk::toposort`, and the inputs that each had when
/// the order was made.
#[pyclass(frozen, module = "pytensor_fuse._core")]
pub(crate) struct NodeOrder {
    outputs: Vec<Py<PyAny>>,
    /// The nodes in topological order.
    #[pyo3(get)]
    nodes: Py<PyList>,
    /// The inputs of each node.
    inputs: Vec<Vec<Py<PyAny>>>,
}

#[pymethods]
impl NodeOrder {
    /// Makes the order; O(nodes + edges). The walk ends at instances of `constant`.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     A node depends on its own output.
    #[new]
    fn new(outputs: &Bound<'_, PyList>, constant: &Bound<'_, PyType>) -> PyResult<Self> {
        let py = outputs.py();
        let mut walk = Walk::new(py, constant, Details::default());
        let results = walk.up_to(outputs.as_any())?;
        let object = |id: &u32| walk.variables.objects[*id as usize].clone_ref(py);
        let node = |id: &u32| walk.applies.objects[*id as usize].bind(py);
        let rows = (0..walk.nodes.len() as u32).map(|place| walk.inputs.row(place));
        let inputs = rows.map(|row| row.iter().map(object).collect()).collect();
        Ok(Self {
            outputs: results.iter().map(object).collect(),
            nodes: PyList::new(py, walk.nodes.iter().map(node))?.unbind(),
            inputs,
        })
    }

    /// Whether the outputs are the same, and each node has the same inputs; O(nodes + edges).
    fn still_is(&self, outputs: &Bound<'_, PyList>) -> PyResult<bool> {
        let py = outputs.py();
        if !are(outputs, &self.outputs) {
            return Ok(false);
        }
        let mut signals = Signals::default();
        for (node, known) in self.nodes.bind(py).iter().zip(&self.inputs) {
            signals.check_many(py, 1 + known.len() / QUICK)?;
            let inputs = node.getattr(intern!(py, "inputs"))?;
            if !inputs.cast::<PyList>().is_ok_and(|inputs| are(inputs, known)) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether a list holds these objects and no others.
fn are(list: &Bound<'_, PyList>, known: &[Py<PyAny>]) -> bool {
    list.len() == known.len() && list.iter().zip(known).all(|(item, known)| item.is(known))
}
