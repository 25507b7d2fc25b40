//! PyTensor's graphs for merging. Objects get ids, which persist from one look-up to the next.
//! `pytensor_fuse._merging.rules` decides which ops, constants and types are equal.

use std::sync::{Mutex, MutexGuard, TryLockError};

use pyo3::exceptions::PyKeyError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PySet, PyString, PyTuple, PyType};
use pytensor_fuse_core::congruence::{Congruence, Direction, Graph, Plan, Presence};
use pytensor_fuse_core::plan::NONE;
use rustc_hash::FxHashMap;

use crate::interrupt::Signals;
use crate::walk::{Interned, PlainOps};

/// The answers of the rules about an op.
#[derive(Clone, Copy)]
struct OpInfo {
    /// [`NONE`] before the first query.
    label: u32,
    /// The number that equal ops share, or [`NONE`] before the first query.
    number: u32,
    is_kernel: bool,
}

impl OpInfo {
    const UNKNOWN: Self = Self { label: NONE, number: NONE, is_kernel: false };
}

/// Finds equal apply nodes. See `pytensor_fuse_core::congruence`.
///
/// Every method raises RuntimeError while another one runs: the rules, which run Python code, may call
/// the table.
#[pyclass(frozen, module = "pytensor_fuse._core")]
pub(crate) struct MergeTable(Mutex<Known>);

#[derive(Default)]
struct Known {
    congruence: Congruence,
    objects: Objects,
}

/// The objects met so far. They stay alive here, so that no address is reused.
#[derive(Default)]
struct Objects {
    nodes: Interned,
    /// Index of the op of each node.
    op_of: Vec<u32>,
    ops: PlainOps,
    op_infos: Vec<OpInfo>,
    /// The class of the ops that represent results.
    result: Option<Py<PyType>>,
    variables: Interned,
    /// The number that each constant shares with its equals; [`NONE`] for other variables.
    constant_of: Vec<u32>,
    /// The representative of each number, or [`NONE`].
    constants: Vec<u32>,
    /// Classes of variables that are not constants.
    plain: FxHashMap<usize, Py<PyType>>,
}

/// The merges to make, as PyTensor's objects.
#[pyclass(frozen, module = "pytensor_fuse._core")]
pub(crate) struct MergePlan {
    /// Pairs of a variable and its replacement.
    #[pyo3(get)]
    replacements: Py<PyList>,
    /// Pairs of a merged node and the node equal to it.
    #[pyo3(get)]
    dying: Py<PyList>,
    /// Pairs of equal nodes neither of which can replace the other.
    #[pyo3(get)]
    incomparable: Py<PyList>,
    /// The nodes that were looked up, some of them twice, then those that still have to be.
    #[pyo3(get)]
    queue: Py<PyList>,
    /// The number of nodes of the queue that were looked up.
    #[pyo3(get)]
    n_looked_up: usize,
    /// Whether a kernel was looked up.
    #[pyo3(get)]
    met_kernels: bool,
}

#[pymethods]
impl MergeTable {
    /// `plain_ops` lists the attributes that ops of a class compare, as for `walk`; `result` is the
    /// class of the ops whose nodes represent results of the graph.
    #[new]
    fn new(plain_ops: Py<PyDict>, result: Py<PyType>) -> Self {
        let objects = Objects {
            ops: PlainOps::new(Some(plain_ops)),
            result: Some(result),
            ..Objects::default()
        };
        Self(Mutex::new(Known { congruence: Congruence::new(), objects }))
    }

    /// Number of nodes in the table, including those that are no longer in the graph.
    fn __len__(&self) -> PyResult<usize> {
        Ok(self.known()?.objects.nodes.objects.len())
    }

    /// Looks up the nodes of `pending`; `one_at_a_time` requests a single merge. `rules` decides
    /// equality.
    fn look_up(
        &self,
        rules: &Bound<'_, PyAny>,
        fgraph: &Bound<'_, PyAny>,
        pending: &Bound<'_, PyDict>,
        one_at_a_time: bool,
    ) -> PyResult<MergePlan> {
        let mut known = self.known()?;
        let Known { congruence, objects } = &mut *known;
        let mut asked = Asked::new(objects, rules, fgraph, one_at_a_time)?;
        let mut queue = Vec::with_capacity(pending.len());
        // Nodes that came and went between two look-ups are skipped.
        for node in pending.keys() {
            asked.signals.check(node.py())?;
            if asked.apply_nodes.contains(&node)? || asked.is_result(&node)? {
                queue.push(asked.node(&node)?);
            }
        }
        let plan = congruence.look_up(&mut asked, queue, one_at_a_time)?;
        let met_kernels = asked.met_kernels;
        objects.plan(rules.py(), &plan, met_kernels)
    }

    /// Drops nodes and constants that are not in the graph. On failure, nothing is dropped.
    fn tidy(&self, rules: &Bound<'_, PyAny>, fgraph: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = rules.py();
        let mut known = self.known()?;
        let Known { congruence, objects } = &*known;
        let mut fresh = Known::default();
        fresh.objects.ops = objects.ops.cleared(py);
        fresh.objects.result = objects.result.as_ref().map(|class| class.clone_ref(py));
        let mut asked = Asked::new(&mut fresh.objects, rules, fgraph, false)?;
        for &id in &objects.constants {
            asked.signals.check(py)?;
            if id != NONE {
                let constant = objects.variables.objects[id as usize].bind(py);
                if asked.is_in_graph(constant)? {
                    let id = asked.variable(constant)?;
                    asked.constant(id)?;
                }
            }
        }
        for id in congruence.nodes() {
            asked.signals.check(py)?;
            let node = objects.nodes.objects[id as usize].bind(py);
            if asked.apply_nodes.contains(node)? {
                let id = asked.node(node)?;
                fresh.congruence.keep(&mut asked, id)?;
            }
        }
        let old = std::mem::replace(&mut *known, fresh);
        // Destructors of the dropped objects may call the table.
        drop(known);
        drop(old);
        Ok(())
    }

    /// The representative of the constants equal to `variable`; `variable` itself if it is not a
    /// constant.
    fn representative(
        &self,
        rules: &Bound<'_, PyAny>,
        fgraph: &Bound<'_, PyAny>,
        variable: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        let mut known = self.known()?;
        let mut asked = Asked::new(&mut known.objects, rules, fgraph, false)?;
        let id = asked.variable(variable)?;
        let first = asked.constant(id)?.unwrap_or(id);
        Ok(known.objects.variables.objects[first as usize].clone_ref(rules.py()))
    }

    /// The representative of the constants with this number, if there is one.
    fn constant(&self, py: Python<'_>, number: u32) -> PyResult<Option<Py<PyAny>>> {
        let Objects { constants, variables, .. } = &self.known()?.objects;
        let id = constants.get(number as usize).filter(|&&id| id != NONE);
        Ok(id.map(|&id| variables.objects[id as usize].clone_ref(py)))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // While the table is locked, its objects are in use.
        let Ok(known) = self.0.try_lock() else { return Ok(()) };
        let Objects { nodes, ops, result, variables, plain, .. } = &known.objects;
        for object in nodes.objects.iter().chain(&variables.objects) {
            visit.call(object)?;
        }
        ops.traverse(&visit)?;
        plain.values().chain(result).try_for_each(|class| visit.call(class))
    }

    fn __clear__(&self) {
        let old = self.known().map(|mut known| std::mem::take(&mut *known));
        drop(old);
    }
}

impl MergeTable {
    fn known(&self) -> PyResult<MutexGuard<'_, Known>> {
        match self.0.try_lock() {
            Ok(known) => Ok(known),
            Err(TryLockError::Poisoned(known)) => Ok(known.into_inner()),
            Err(TryLockError::WouldBlock) => Err(crate::errors::table_in_use()),
        }
    }
}

#[pymethods]
impl MergePlan {
    // There is no `__clear__`: each cycle also leads through a list, which can be cleared.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Self { replacements, dying, incomparable, queue, .. } = self;
        [replacements, dying, incomparable, queue].into_iter().try_for_each(|l| visit.call(l))
    }
}

impl Objects {
    fn plan(&self, py: Python<'_>, plan: &Plan, met_kernels: bool) -> PyResult<MergePlan> {
        let pairs = |pairs: &[(u32, u32)], known: &Interned| {
            let object = |id: u32| &known.objects[id as usize];
            let pairs: Vec<_> = pairs.iter().map(|&(a, b)| (object(a), object(b))).collect();
            PyList::new(py, pairs).map(Bound::unbind)
        };
        let queue = plan.queue.iter().map(|&id| &self.nodes.objects[id as usize]);
        Ok(MergePlan {
            replacements: pairs(&plan.replacements, &self.variables)?,
            dying: pairs(&plan.dying, &self.nodes)?,
            incomparable: pairs(&plan.incomparable, &self.nodes)?,
            queue: PyList::new(py, queue)?.unbind(),
            n_looked_up: plan.n_done,
            met_kernels,
        })
    }
}

/// A graph during one call, and the rules of merging.
struct Asked<'py, 'a> {
    objects: &'a mut Objects,
    rules: &'a Bound<'py, PyAny>,
    apply_nodes: Bound<'py, PySet>,
    variables: Bound<'py, PySet>,
    clients: Bound<'py, PyDict>,
    one_at_a_time: bool,
    met_kernels: bool,
    signals: Signals,
}

impl<'py, 'a> Asked<'py, 'a> {
    fn new(
        objects: &'a mut Objects,
        rules: &'a Bound<'py, PyAny>,
        fgraph: &Bound<'py, PyAny>,
        one_at_a_time: bool,
    ) -> PyResult<Self> {
        let py = fgraph.py();
        Ok(Self {
            objects,
            rules,
            apply_nodes: fgraph.getattr(intern!(py, "apply_nodes"))?.cast_into()?,
            variables: fgraph.getattr(intern!(py, "variables"))?.cast_into()?,
            clients: fgraph.getattr(intern!(py, "clients"))?.cast_into()?,
            one_at_a_time,
            met_kernels: false,
            signals: Signals::default(),
        })
    }

    fn py(&self) -> Python<'py> {
        self.rules.py()
    }

    fn is_result(&self, node: &Bound<'py, PyAny>) -> PyResult<bool> {
        let op = node.getattr(intern!(self.py(), "op"))?;
        Ok(self.objects.result.as_ref().is_some_and(|class| op.get_type().is(class)))
    }

    fn is_in_graph(&self, variable: &Bound<'py, PyAny>) -> PyResult<bool> {
        self.variables.contains(variable)
    }

    fn object_of_node(&self, id: u32) -> Bound<'py, PyAny> {
        self.objects.nodes.objects[id as usize].clone_ref(self.py()).into_bound(self.py())
    }

    fn object_of_variable(&self, id: u32) -> Bound<'py, PyAny> {
        self.objects.variables.objects[id as usize].clone_ref(self.py()).into_bound(self.py())
    }

    fn info(&mut self, node: u32) -> &mut OpInfo {
        let op = self.objects.op_of[node as usize];
        &mut self.objects.op_infos[op as usize]
    }

    fn object_of_op(&self, node: u32) -> Bound<'py, PyAny> {
        let op = self.objects.op_of[node as usize];
        self.objects.ops.distinct[op as usize].clone_ref(self.py()).into_bound(self.py())
    }

    fn node(&mut self, node: &Bound<'py, PyAny>) -> PyResult<u32> {
        if let Some(id) = self.objects.nodes.get(node) {
            return Ok(id);
        }
        let py = self.py();
        let op = node.getattr(intern!(py, "op"))?;
        let (number, is_new) = self.objects.ops.number(&op)?;
        if is_new {
            self.objects.op_infos.push(OpInfo::UNKNOWN);
        }
        if self.objects.op_infos[number as usize].label == NONE {
            let described = self.rules.call_method1(intern!(py, "describe_op"), (&op,))?;
            let (label, is_kernel) = described.extract()?;
            self.objects.op_infos[number as usize] = OpInfo { label, number: NONE, is_kernel };
        }
        self.objects.op_of.push(number);
        Ok(self.objects.nodes.id(node)?.0)
    }

    fn variable(&mut self, variable: &Bound<'py, PyAny>) -> PyResult<u32> {
        if let Some(id) = self.objects.variables.get(variable) {
            return Ok(id);
        }
        let class = variable.get_type();
        let address = class.as_ptr() as usize;
        let mut number = None;
        if !self.objects.plain.contains_key(&address) {
            let name = intern!(self.py(), "constant_number");
            number = self.rules.call_method1(name, (variable,))?.extract()?;
            if number.is_none() {
                self.objects.plain.insert(address, class.unbind());
            }
        }
        self.objects.constant_of.push(number.unwrap_or(NONE));
        Ok(self.objects.variables.id(variable)?.0)
    }

    /// The types of the outputs of a node.
    fn types(&self, node: u32) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let outputs = self.object_of_node(node).getattr(intern!(self.py(), "outputs"))?;
        outputs.try_iter()?.map(|output| output?.getattr(intern!(self.py(), "type"))).collect()
    }

    fn row(&mut self, node: u32, name: &Bound<'py, PyString>) -> PyResult<Vec<u32>> {
        let mut row = Vec::new();
        for variable in self.object_of_node(node).getattr(name)?.try_iter()? {
            self.signals.check(self.py())?;
            row.push(self.variable(&variable?)?);
        }
        Ok(row)
    }
}

impl Graph for Asked<'_, '_> {
    type Error = PyErr;

    fn presence(&mut self, node: u32) -> PyResult<Presence> {
        self.signals.check(self.py())?;
        let object = self.object_of_node(node);
        if self.apply_nodes.contains(&object)? {
            return Ok(Presence::Present);
        }
        if !self.is_result(&object)? {
            return Ok(Presence::Gone);
        }
        let inputs = object.getattr(intern!(self.py(), "inputs"))?;
        let is_read = self.is_in_graph(&inputs.get_item(0)?)?;
        Ok(if is_read { Presence::Result } else { Presence::Gone })
    }

    fn inputs(&mut self, node: u32) -> PyResult<Vec<u32>> {
        self.row(node, intern!(self.py(), "inputs"))
    }

    fn outputs(&mut self, node: u32) -> PyResult<Vec<u32>> {
        self.row(node, intern!(self.py(), "outputs"))
    }

    fn clients(&mut self, variable: u32) -> PyResult<Vec<u32>> {
        let variable = self.object_of_variable(variable);
        let Some(clients) = self.clients.get_item(&variable)? else {
            return Err(PyKeyError::new_err(variable.unbind()));
        };
        let mut row = Vec::new();
        for client in clients.cast_into::<PyList>()?.iter() {
            self.signals.check(self.py())?;
            row.push(self.node(&client.cast::<PyTuple>()?.get_item(0)?)?);
        }
        Ok(row)
    }

    fn constant(&mut self, variable: u32) -> PyResult<Option<u32>> {
        let number = self.objects.constant_of[variable as usize];
        if number == NONE {
            return Ok(None);
        }
        let constants = &self.objects.constants;
        let first = constants.get(number as usize).copied().unwrap_or(NONE);
        if first != NONE
            && (first == variable || self.is_in_graph(&self.object_of_variable(first))?)
        {
            return Ok(Some(first));
        }
        let constants = &mut self.objects.constants;
        if constants.len() <= number as usize {
            constants.resize(number as usize + 1, NONE);
        }
        constants[number as usize] = variable;
        Ok(Some(variable))
    }

    fn label(&mut self, node: u32) -> PyResult<u32> {
        let OpInfo { label, is_kernel, .. } = *self.info(node);
        self.met_kernels |= is_kernel;
        Ok(label)
    }

    fn op(&mut self, node: u32) -> PyResult<u32> {
        if self.info(node).number == NONE {
            let op = self.object_of_op(node);
            let number = self.rules.call_method1(intern!(self.py(), "number_of_op"), (op,))?;
            self.info(node).number = number.extract()?;
        }
        Ok(self.info(node).number)
    }

    fn same_op(&mut self, node: u32, other: u32) -> PyResult<bool> {
        if self.objects.op_of[node as usize] == self.objects.op_of[other as usize] {
            return Ok(true);
        }
        self.object_of_op(node).eq(self.object_of_op(other))
    }

    fn may_merge(&mut self, node: u32, other: u32) -> PyResult<bool> {
        if self.types(node)?.len() != self.types(other)?.len() {
            return Ok(false);
        }
        // Merges that are made together are not refused one by one.
        if !self.one_at_a_time {
            return Ok(true);
        }
        let (node, other) = (self.object_of_node(node), self.object_of_node(other));
        self.rules.call_method1(intern!(self.py(), "may_merge"), (node, other))?.extract()
    }

    fn direction(&mut self, node: u32, other: u32) -> PyResult<Direction> {
        let (types, others) = (self.types(node)?, self.types(other)?);
        let mut are_same = true;
        for (a, b) in types.iter().zip(&others) {
            are_same = are_same && (a.is(b) || a.eq(b)?);
        }
        if are_same {
            return Ok(Direction::Forward);
        }
        let name = intern!(self.py(), "direction");
        let (node, other) = (self.object_of_node(node), self.object_of_node(other));
        let direction = self.rules.call_method1(name, (node, other))?;
        Ok(match direction.extract::<i8>()? {
            1 => Direction::Forward,
            -1 => Direction::Backward,
            _ => Direction::Neither,
        })
    }
}
