//! The walk over PyTensor's objects, which turns a graph into integer arrays. It decides nothing: the
//! Python package interprets the arrays.

mod details;
#[allow(unsafe_code, reason = "Python's interface has these functions, PyO3 has not")]
mod objects;
mod ops;
mod order;
mod parts;
mod types;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyType};
use pytensor_fuse_core::Rows;
use pytensor_fuse_core::plan::NONE;
use rustc_hash::{FxBuildHasher, FxHashMap};

pub(crate) use details::{Details, Notes};
pub(crate) use ops::PlainOps;
pub(crate) use order::{NodeOrder, in_order};
pub(crate) use parts::{GraphParts, walk_parts};

use crate::errors::to_py;
use crate::interrupt::Signals;
use objects::item_address;

/// Number of variables, or of apply nodes, of a small graph.
const SMALL_GRAPH: usize = 200;

/// Ids of objects, by identity. Every object stays alive in `objects`, so that no address is reused.
#[derive(Default)]
pub(crate) struct Interned {
    ids: FxHashMap<usize, u32>,
    pub(crate) objects: Vec<Py<PyAny>>,
}

impl Interned {
    /// An empty numbering with capacity for a small graph, so that most walks never grow the table.
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
        match self.get(object) {
            Some(id) => Ok((id, false)),
            None => Ok((self.add(object.clone())?, true)),
        }
    }

    /// The id of `object`.
    pub(crate) fn id_of(&mut self, object: Bound<'_, PyAny>) -> PyResult<u32> {
        match self.get(&object) {
            Some(id) => Ok(id),
            None => self.add(object),
        }
    }

    /// Numbers an object that has no id.
    fn add(&mut self, object: Bound<'_, PyAny>) -> PyResult<u32> {
        let next = self.objects.len() as u32;
        if next == NONE {
            return Err(crate::errors::too_large("the graph"));
        }
        self.ids.insert(object.as_ptr() as usize, next);
        self.objects.push(object.unbind());
        Ok(next)
    }
}

/// Variables and apply nodes, numbered in the order in which the walk meets them, and the nodes in
/// topological order.
///
/// Most of the time is spent waiting for memory, in which the objects are scattered. Each object is
/// therefore read at most twice: once depth first, for the node that computes it, and once in
/// topological order, for the rest. Objects are created, and so laid out in memory, in about that
/// order, which lets the processor prefetch them.
pub(crate) struct Walk<'py, 'a> {
    pub(crate) py: Python<'py>,
    constant: &'a Bound<'py, PyType>,
    pub(crate) variables: Interned,
    /// The number of inputs. These are the first variables, and the walk ends at them.
    pub(crate) n_roots: usize,
    /// The inputs that were given again.
    pub(crate) met_again: Vec<Py<PyAny>>,
    /// Owner of each variable: an index into `applies`, or [`NONE`].
    pub(crate) owners: Vec<u32>,
    pub(crate) constants: Vec<bool>,
    pub(crate) applies: Interned,
    /// The row in `met_inputs` of each of `applies`, or [`NONE`] before it is read.
    rows: Vec<u32>,
    met_inputs: Rows,
    pub(crate) details: Details<'py>,
    /// The position of each of `applies` among the nodes, or [`NONE`].
    pub(crate) places: Vec<u32>,
    /// The nodes in topological order, as indices into `applies`.
    pub(crate) nodes: Vec<u32>,
    /// The op, the inputs and the outputs of each node.
    pub(crate) ops: Vec<u32>,
    pub(crate) inputs: Rows,
    pub(crate) outputs: Rows,
    /// Whether each Python class of variables is a class of constants.
    constant_classes: FxHashMap<usize, (bool, Py<PyType>)>,
    pub(crate) signals: Signals,
}

/// Number of ids that are processed in a microsecond without calling the interpreter.
pub(crate) const QUICK: usize = 256;

#[derive(Clone, Copy, PartialEq)]
enum State {
    Met,
    /// Waits for its inputs.
    Waits,
    Done,
}

impl<'py, 'a> Walk<'py, 'a> {
    /// A walk that has not started; `constant` is the class of constants.
    pub(crate) fn new(
        py: Python<'py>,
        constant: &'a Bound<'py, PyType>,
        details: Details<'py>,
    ) -> Self {
        Self {
            py,
            constant,
            variables: Interned::for_a_graph(),
            n_roots: 0,
            met_again: Vec::new(),
            owners: Vec::new(),
            constants: Vec::new(),
            applies: Interned::for_a_graph(),
            rows: Vec::new(),
            met_inputs: Rows::empty(),
            details,
            places: Vec::new(),
            nodes: Vec::new(),
            ops: Vec::new(),
            inputs: Rows::empty(),
            outputs: Rows::empty(),
            constant_classes: FxHashMap::default(),
            signals: Signals::default(),
        }
    }

    /// Reads the graph between inputs and outputs, and returns the ids of the outputs. The walk
    /// ends at the inputs even if nodes compute them.
    pub(crate) fn between(
        &mut self,
        inputs: &Bound<'py, PyAny>,
        outputs: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<u32>> {
        for variable in inputs.try_iter()? {
            let variable = variable?;
            if self.variables.id(&variable)?.1 {
                self.owners.push(NONE);
                self.constants.push(false);
            } else {
                self.met_again.push(variable.unbind());
            }
        }
        self.n_roots = self.owners.len();
        self.up_to(outputs)
    }

    /// Reads the graph that computes variables, and returns their ids.
    pub(crate) fn up_to(&mut self, outputs: &Bound<'py, PyAny>) -> PyResult<Vec<u32>> {
        let results = self.variables_of(outputs)?;
        let order = self.toposort(&results)?;
        self.read_nodes(order)?;
        Ok(results)
    }

    /// The ids of variables.
    pub(crate) fn variables_of(&mut self, row: &Bound<'py, PyAny>) -> PyResult<Vec<u32>> {
        let mut ids = Vec::new();
        self.meet(row, &mut ids)?;
        Ok(ids)
    }

    /// Appends the ids of variables.
    fn meet(&mut self, row: &Bound<'py, PyAny>, ids: &mut Vec<u32>) -> PyResult<()> {
        if let Ok(list) = row.cast::<PyList>() {
            self.signals.check_many(self.py, list.len() / QUICK)?;
            for index in 0..list.len() {
                // Most variables are known, and known variables are not dereferenced.
                let known = item_address(list, index).and_then(|at| self.variables.ids.get(&at));
                ids.push(match known {
                    Some(&id) => id,
                    None => self.variable(list.get_item(index)?)?,
                });
            }
        } else {
            for variable in row.try_iter()? {
                ids.push(self.variable(variable?)?);
            }
        }
        Ok(())
    }

    fn variable(&mut self, variable: Bound<'py, PyAny>) -> PyResult<u32> {
        self.signals.check(self.py)?;
        let (id, is_new) = self.variables.id(&variable)?;
        if is_new {
            let is_constant = self.is_constant(&variable)?;
            let owner = if is_constant {
                NONE
            } else {
                let owner = variable.getattr(intern!(self.py, "owner"))?;
                if owner.is_none() { NONE } else { self.applies.id_of(owner)? }
            };
            self.owners.push(owner);
            self.constants.push(is_constant);
        }
        Ok(id)
    }

    fn is_constant(&mut self, variable: &Bound<'py, PyAny>) -> PyResult<bool> {
        let key = variable.get_type_ptr() as usize;
        if let Some(&(known, _)) = self.constant_classes.get(&key) {
            return Ok(known);
        }
        let class = variable.get_type();
        let answer = class.is_subclass(self.constant)?;
        self.constant_classes.insert(key, (answer, class.unbind()));
        Ok(answer)
    }

    /// Reads the inputs of an apply node, once.
    fn read_inputs(&mut self, apply: u32) -> PyResult<()> {
        self.rows.resize(self.applies.objects.len(), NONE);
        if self.rows[apply as usize] == NONE {
            self.rows[apply as usize] = self.met_inputs.len() as u32;
            let node = self.applies.objects[apply as usize].bind(self.py);
            let inputs = node.getattr(intern!(self.py, "inputs"))?;
            let row = self.variables_of(&inputs)?;
            self.met_inputs.push(row).map_err(to_py)?;
        }
        Ok(())
    }

    /// The nodes that compute `results`, in the topological order of
    /// `pytensor.graph.traversal.toposort`: depth first from the last result, the last missing input
    /// first.
    fn toposort(&mut self, results: &[u32]) -> PyResult<Vec<u32>> {
        let mut order = Vec::new();
        let mut states = Vec::new();
        let mut todo = results.to_vec();
        while let Some(variable) = todo.pop() {
            let owner = self.owners[variable as usize];
            if owner == NONE || states.get(owner as usize) == Some(&State::Done) {
                continue;
            }
            self.read_inputs(owner)?;
            states.resize(self.applies.objects.len(), State::Met);
            let inputs = self.met_inputs.row(self.rows[owner as usize]);
            self.signals.check_many(self.py, 1 + inputs.len() / QUICK)?;
            let before = todo.len();
            todo.push(variable);
            todo.extend(inputs.iter().filter(|&&input| {
                let owner = self.owners[input as usize];
                owner != NONE && states[owner as usize] != State::Done
            }));
            if todo.len() > before + 1 {
                // A node waits for its inputs once; a second time means that it waits for itself.
                let state = &mut states[owner as usize];
                if std::mem::replace(state, State::Waits) == State::Waits {
                    return Err(crate::errors::cyclic());
                }
                continue;
            }
            todo.pop();
            states[owner as usize] = State::Done;
            order.push(owner);
        }
        Ok(order)
    }

    /// Reads the given nodes, in the given order.
    pub(crate) fn given(&mut self, nodes: &Bound<'py, PyAny>) -> PyResult<()> {
        let mut order = Vec::new();
        for node in nodes.try_iter()? {
            let apply = self.applies.id_of(node?)?;
            self.read_inputs(apply)?;
            order.push(apply);
        }
        self.read_nodes(order)
    }

    /// Reads the rest of the nodes and variables.
    fn read_nodes(&mut self, order: Vec<u32>) -> PyResult<()> {
        let py = self.py;
        self.places.resize(self.applies.objects.len(), NONE);
        self.details.read_variables(py, &self.variables.objects, 0..self.n_roots as u32)?;
        let mut row = Vec::new();
        for (place, &apply) in (0u32..).zip(&order) {
            self.signals.check(py)?;
            self.places[apply as usize] = place;
            let inputs = self.met_inputs.row(self.rows[apply as usize]).iter().copied();
            self.inputs.push(inputs).map_err(to_py)?;
            let node = self.applies.objects[apply as usize].clone_ref(py).into_bound(py);
            self.ops.push(self.details.ops.number(&node.getattr(intern!(py, "op"))?)?.0);
            self.meet(&node.getattr(intern!(py, "outputs"))?, &mut row)?;
            self.details.notes.read_node(&node)?;
            self.details.read_variables(py, &self.variables.objects, row.iter().copied())?;
            self.outputs.push(row.drain(..)).map_err(to_py)?;
        }
        for (id, variable) in (0u32..).zip(&self.variables.objects) {
            if self.constants[id as usize] {
                self.details.notes.read_tag(id, variable.bind(py))?;
            }
        }
        self.nodes = order;
        Ok(())
    }
}

/// Numbers strings by value. Few strings are distinct, and equal ones are mostly the same object.
#[derive(Default)]
pub(crate) struct Strings(pub(crate) Vec<Py<PyString>>);

impl Strings {
    pub(crate) fn id(&mut self, string: Bound<'_, PyString>) -> PyResult<u32> {
        let py = string.py();
        // Usually the string is a known object; values are compared only if it is not.
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
