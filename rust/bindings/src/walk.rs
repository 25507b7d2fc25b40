//! Walks PyTensor's objects into integer arrays. Decides nothing: what the arrays mean is for the
//! Python package to say.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PySet, PyString, PyType};
use pytensor_fuse_core::Rows;
use pytensor_fuse_core::plan::NONE;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::errors::to_py;
use crate::interrupt::Signals;

/// Variables, or apply nodes, of a small graph.
const SMALL_GRAPH: usize = 200;

/// Objects seen so far, by identity. Every object stays alive in `objects`, so that no address is
/// used twice.
#[derive(Default)]
pub(crate) struct Interned {
    ids: FxHashMap<usize, u32>,
    pub(crate) objects: Vec<Py<PyAny>>,
}

impl Interned {
    /// Room for the variables of a small graph: it is not made again and again while these are met.
    fn for_a_graph() -> Self {
        let ids = FxHashMap::with_capacity_and_hasher(SMALL_GRAPH, FxBuildHasher);
        Self { ids, objects: Vec::with_capacity(SMALL_GRAPH) }
    }

    /// The id of `object`, if it has one.
    pub(crate) fn get(&self, object: &Bound<'_, PyAny>) -> Option<u32> {
        self.ids.get(&(object.as_ptr() as usize)).copied()
    }

    /// The id of `object`, and whether it is new.
    pub(crate) fn id(&mut self, object: &Bound<'_, PyAny>) -> PyResult<(u32, bool)> {
        let next = self.objects.len() as u32;
        if next == NONE {
            return Err(crate::errors::too_large("the graph"));
        }
        match self.ids.entry(object.as_ptr() as usize) {
            std::collections::hash_map::Entry::Occupied(entry) => Ok((*entry.get(), false)),
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(next);
                self.objects.push(object.clone().unbind());
                Ok((next, true))
            }
        }
    }
}

/// Variables, apply nodes and ops, numbered in the order in which they are met.
pub(crate) struct Walk<'py, 'a> {
    pub(crate) py: Python<'py>,
    constant: &'a Bound<'py, PyType>,
    pub(crate) variables: Interned,
    /// Owner of each variable: an index into `applies`, or [`NONE`].
    pub(crate) owners: Vec<u32>,
    pub(crate) constants: Vec<bool>,
    /// Types of the variables that are not constants, if they are wanted: read when a variable is
    /// met, while it is in the processor's cache.
    pub(crate) types: Option<Vec<Option<Py<PyAny>>>>,
    pub(crate) applies: Interned,
    /// What has been read of `applies`, in their order: op, inputs, outputs.
    pub(crate) read_ops: Vec<u32>,
    pub(crate) read_inputs: Rows,
    pub(crate) read_outputs: Rows,
    pub(crate) ops: Interned,
    /// For each Python class of variables whether it is a class of constants.
    constant_classes: FxHashMap<usize, (bool, Py<PyType>)>,
    pub(crate) signals: Signals,
}

/// So many ids are looked at in a microsecond, without the interpreter.
pub(crate) const QUICK: usize = 256;

impl<'py, 'a> Walk<'py, 'a> {
    /// A walk that has met nothing yet; `constant` is the class of constants.
    pub(crate) fn new(py: Python<'py>, constant: &'a Bound<'py, PyType>) -> Self {
        Self {
            py,
            constant,
            variables: Interned::for_a_graph(),
            owners: Vec::new(),
            constants: Vec::new(),
            types: None,
            applies: Interned::for_a_graph(),
            read_ops: Vec::new(),
            read_inputs: Rows::empty(),
            read_outputs: Rows::empty(),
            ops: Interned::default(),
            constant_classes: FxHashMap::default(),
            signals: Signals::default(),
        }
    }

    /// Numbers a variable at which the walk ends, whatever computes it; says whether it is new.
    pub(crate) fn root(&mut self, variable: &Bound<'py, PyAny>) -> PyResult<bool> {
        let (_, is_new) = self.variables.id(variable)?;
        if is_new {
            self.owners.push(NONE);
            self.constants.push(false);
            self.read_type(variable, false)?;
        }
        Ok(is_new)
    }

    pub(crate) fn variable(&mut self, variable: &Bound<'py, PyAny>) -> PyResult<u32> {
        let (id, is_new) = self.variables.id(variable)?;
        if is_new {
            let is_constant = self.is_constant(variable)?;
            let owner = if is_constant {
                NONE
            } else {
                let owner = variable.getattr(intern!(self.py, "owner"))?;
                if owner.is_none() { NONE } else { self.applies.id(&owner)?.0 }
            };
            self.owners.push(owner);
            self.constants.push(is_constant);
            self.read_type(variable, is_constant)?;
        }
        Ok(id)
    }

    fn read_type(&mut self, variable: &Bound<'py, PyAny>, is_constant: bool) -> PyResult<()> {
        if let Some(types) = &mut self.types {
            let ty = (!is_constant).then(|| variable.getattr(intern!(self.py, "type")));
            types.push(ty.transpose()?.map(Bound::unbind));
        }
        Ok(())
    }

    fn is_constant(&mut self, variable: &Bound<'py, PyAny>) -> PyResult<bool> {
        let class = variable.get_type();
        let key = class.as_ptr() as usize;
        if let Some(&(known, _)) = self.constant_classes.get(&key) {
            return Ok(known);
        }
        let answer = class.is_subclass(self.constant)?;
        self.constant_classes.insert(key, (answer, class.unbind()));
        Ok(answer)
    }

    /// Reads apply nodes up to `apply`, which were met as owners.
    pub(crate) fn read(&mut self, apply: u32) -> PyResult<()> {
        let mut row = Vec::new();
        while self.read_ops.len() <= apply as usize {
            self.signals.check(self.py)?;
            let next = self.read_ops.len();
            let node = self.applies.objects[next].clone_ref(self.py).into_bound(self.py);
            let (op, _) = self.ops.id(&node.getattr(intern!(self.py, "op"))?)?;
            self.read_ops.push(op);
            self.variables_of(&node.getattr(intern!(self.py, "inputs"))?, &mut row)?;
            self.read_inputs.push(row.drain(..)).map_err(to_py)?;
            self.variables_of(&node.getattr(intern!(self.py, "outputs"))?, &mut row)?;
            self.read_outputs.push(row.drain(..)).map_err(to_py)?;
        }
        Ok(())
    }

    pub(crate) fn variables_of(
        &mut self,
        row: &Bound<'py, PyAny>,
        ids: &mut Vec<u32>,
    ) -> PyResult<()> {
        if let Ok(list) = row.cast::<PyList>() {
            for variable in list.iter() {
                self.signals.check(self.py)?;
                ids.push(self.variable(&variable)?);
            }
        } else {
            for variable in row.try_iter()? {
                self.signals.check(self.py)?;
                ids.push(self.variable(&variable?)?);
            }
        }
        Ok(())
    }

    /// The nodes needed for `results`, each after those that it reads, in the order in which
    /// `pytensor.graph.traversal.toposort` yields them: depth first from the last result, the last
    /// missing input first.
    pub(crate) fn toposort(&mut self, results: &[u32]) -> PyResult<Vec<u32>> {
        let mut order = Vec::new();
        let mut computed = vec![false; self.owners.len()];
        // An apply node waits for its inputs once: waiting again, it waits for itself.
        let mut has_waited = vec![false; self.read_ops.len()];
        let mut todo = results.to_vec();
        while let Some(variable) = todo.pop() {
            let owner = self.owners[variable as usize];
            if owner == NONE || computed[variable as usize] {
                continue;
            }
            self.read(owner)?;
            self.signals.check_many(self.py, 1 + self.read_inputs.row(owner).len() / QUICK)?;
            computed.resize(self.owners.len(), false);
            let (inputs, outputs) = (self.read_inputs.row(owner), self.read_outputs.row(owner));
            let before = todo.len();
            todo.push(variable);
            todo.extend(inputs.iter().filter(|&&input| {
                !computed[input as usize] && self.owners[input as usize] != NONE
            }));
            if todo.len() > before + 1 {
                has_waited.resize(self.read_ops.len(), false);
                if std::mem::replace(&mut has_waited[owner as usize], true) {
                    return Err(crate::errors::cyclic());
                }
                continue;
            }
            todo.pop();
            for &output in outputs {
                computed[output as usize] = true;
            }
            order.push(owner);
        }
        Ok(order)
    }
}

/// The nodes of `within` from which `roots` are computed, each after those that it reads; first seen
/// first. A root may be None.
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
    // Whether a node is in the order; false while it waits for what lies above it on the stack.
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

/// Distinct strings, by value: there are few, and most are the same object.
#[derive(Default)]
pub(crate) struct Strings(pub(crate) Vec<Py<PyString>>);

impl Strings {
    pub(crate) fn id(&mut self, string: Bound<'_, PyString>) -> PyResult<u32> {
        let py = string.py();
        // As a rule it is one of the objects: values are compared only if it is none.
        if let Some(id) = self.0.iter().position(|known| known.is(&string)) {
            return Ok(id as u32);
        }
        for (id, known) in (0u32..).zip(&self.0) {
            if known.bind(py).as_any().eq(&string)? {
                return Ok(id);
            }
        }
        self.0.push(string.unbind());
        Ok(self.0.len() as u32 - 1)
    }
}

/// The nodes from which outputs are computed, in the order of [`Walk::toposort`], and what each
/// read when that was found.
#[pyclass(frozen, module = "pytensor_fuse._core")]
pub(crate) struct NodeOrder {
    outputs: Vec<Py<PyAny>>,
    /// The nodes, each after those that it reads.
    #[pyo3(get)]
    nodes: Py<PyList>,
    /// What each node reads.
    inputs: Vec<Vec<Py<PyAny>>>,
}

#[pymethods]
impl NodeOrder {
    /// Finds the order; O(nodes + edges). Nothing computes the instances of `constant`.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     A node depends on its own output.
    #[new]
    fn new(outputs: &Bound<'_, PyList>, constant: &Bound<'_, PyType>) -> PyResult<Self> {
        let py = outputs.py();
        let mut walk = Walk::new(py, constant);
        let mut results = Vec::new();
        walk.variables_of(outputs.as_any(), &mut results)?;
        let order = walk.toposort(&results)?;
        let object = |id: &u32| walk.variables.objects[*id as usize].clone_ref(py);
        let nodes = order.iter().map(|&node| walk.applies.objects[node as usize].bind(py));
        let mut inputs = Vec::with_capacity(order.len());
        for &node in &order {
            let row = walk.read_inputs.row(node);
            walk.signals.check_many(py, 1 + row.len() / QUICK)?;
            inputs.push(row.iter().map(object).collect());
        }
        Ok(Self {
            outputs: results.iter().map(object).collect(),
            nodes: PyList::new(py, nodes)?.unbind(),
            inputs,
        })
    }

    /// Whether the outputs are these, and each node reads what it did; O(nodes + edges).
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
