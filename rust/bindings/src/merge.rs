//! The graph that merging looks at: PyTensor's objects as ids that stay the same from one look-up to
//! the next. What makes ops, constants and types the same is for `pytensor_fuse._merging.rules` to say.

use std::sync::atomic::{AtomicU64, Ordering};
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
use crate::ops::PlainOps;
use crate::walk::Interned;

type Pairs = Vec<(Py<PyAny>, Py<PyAny>)>;

/// What an op was said to be.
#[derive(Clone, Copy)]
struct OpInfo {
    /// [`NONE`] if no one has asked.
    label: u32,
    /// Its number among ops that are told apart by value, or [`NONE`] if no one has asked.
    number: u32,
    is_kernel: bool,
}

impl OpInfo {
    const UNKNOWN: Self = Self { label: NONE, number: NONE, is_kernel: false };
}

/// Finds apply nodes that are equal. See `pytensor_fuse_core::congruence`.
///
/// Every method raises RuntimeError if another is under way: what it asks of Python may come back
/// to the table.
#[pyclass(frozen, module = "pytensor_fuse._core")]
pub(crate) struct MergeTable {
    /// Tells whose a plan is.
    number: u64,
    known: Mutex<Known>,
}

/// Number of tables made in this process.
static N_TABLES: AtomicU64 = AtomicU64::new(0);

#[derive(Default)]
struct Known {
    congruence: Congruence,
    objects: Objects,
    /// Number of the last plan.
    n_plans: u64,
}

/// What has been met. Every object stays alive here, so that no address is used twice.
#[derive(Default)]
struct Objects {
    nodes: Interned,
    /// Index of the op of each node.
    op_of: Vec<u32>,
    ops: PlainOps,
    op_infos: Vec<OpInfo>,
    /// The class of ops that stand for results.
    result: Option<Py<PyType>>,
    variables: Interned,
    /// Number of the constants that each variable is equal to; [`NONE`] if it is not a constant.
    constant_of: Vec<u32>,
    /// The constant to take for each number, or [`NONE`].
    constants: Vec<u32>,
    /// Classes of variables that are not constants.
    plain: FxHashMap<usize, Py<PyType>>,
}

/// What to merge, as PyTensor's objects.
#[pyclass(frozen, module = "pytensor_fuse._core")]
pub(crate) struct MergePlan {
    /// Pairs of a variable to be replaced and one that stays.
    #[pyo3(get)]
    replacements: Py<PyList>,
    /// Pairs of a node to be merged and what it is merged with.
    #[pyo3(get)]
    dying: Py<PyList>,
    /// Pairs of equal nodes neither of which can replace the other.
    #[pyo3(get)]
    incomparable: Py<PyList>,
    /// The nodes that are still to be looked up.
    #[pyo3(get)]
    waiting: Py<PyList>,
    /// How many nodes were looked up, some of them twice.
    #[pyo3(get)]
    n_looked_up: usize,
    /// Whether a kernel was looked up.
    #[pyo3(get)]
    met_kernels: bool,
    /// For [`MergeTable::queue`].
    queue: Vec<u32>,
    /// Of the table.
    table: u64,
    number: u64,
}

#[pymethods]
impl MergeTable {
    /// `plain_ops` names what ops of a class compare, as for `walk`; `result` is the class of ops
    /// whose nodes stand for results of the graph.
    #[new]
    fn new(plain_ops: Py<PyDict>, result: Py<PyType>) -> Self {
        let objects = Objects {
            ops: PlainOps::new(Some(plain_ops)),
            result: Some(result),
            ..Objects::default()
        };
        let known = Known { congruence: Congruence::new(), objects, n_plans: 0 };
        let number = N_TABLES.fetch_add(1, Ordering::Relaxed);
        Self { number, known: Mutex::new(known) }
    }

    /// Number of nodes that the table holds, whether they are in the graph or gone.
    fn __len__(&self) -> PyResult<usize> {
        Ok(self.known()?.objects.nodes.objects.len())
    }

    /// Looks up the nodes of `pending`; `one_at_a_time` asks for a single merge. `rules` says what is
    /// the same.
    fn look_up(
        &self,
        rules: &Bound<'_, PyAny>,
        fgraph: &Bound<'_, PyAny>,
        pending: &Bound<'_, PyDict>,
        one_at_a_time: bool,
    ) -> PyResult<MergePlan> {
        let mut known = self.known()?;
        let Known { congruence, objects, n_plans } = &mut *known;
        let mut asked = Asked::new(objects, rules, fgraph, one_at_a_time)?;
        let mut queue = Vec::with_capacity(pending.len());
        // Many nodes come and go between two look-ups; those are not met at all.
        for node in pending.keys() {
            asked.signals.check(node.py())?;
            if asked.apply_nodes.contains(&node)? || asked.is_result(&node)? {
                queue.push(asked.node(&node)?);
            }
        }
        let plan = congruence.look_up(&mut asked, queue, one_at_a_time)?;
        let met_kernels = asked.met_kernels;
        *n_plans += 1;
        objects.plan(rules.py(), plan, (self.number, *n_plans), met_kernels)
    }

    /// The nodes that were looked up for a plan or are still to be; before the table is tidied.
    fn queue(&self, py: Python<'_>, plan: &MergePlan) -> PyResult<Vec<Py<PyAny>>> {
        if plan.table != self.number {
            return Err(crate::errors::plan_of_other_table());
        }
        let known = self.known()?;
        if plan.number != known.n_plans {
            return Err(crate::errors::stale_plan());
        }
        let object = |&id: &u32| known.objects.nodes.objects[id as usize].clone_ref(py);
        Ok(plan.queue.iter().map(object).collect())
    }

    /// Forgets what is not in the graph. If that fails, nothing is forgotten.
    fn tidy(&self, rules: &Bound<'_, PyAny>, fgraph: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = rules.py();
        let mut known = self.known()?;
        let Known { congruence, objects, n_plans } = &*known;
        let mut fresh = Known { n_plans: n_plans + 1, ..Known::default() };
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
        // What goes with it may come back to the table.
        drop(known);
        drop(old);
        Ok(())
    }

    /// The constant to take for `variable`, itself if there is no other or it is not a constant.
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

    /// The constant that others of this number are taken for, if there is one.
    fn constant(&self, py: Python<'_>, number: u32) -> PyResult<Option<Py<PyAny>>> {
        let Objects { constants, variables, .. } = &self.known()?.objects;
        let id = constants.get(number as usize).filter(|&&id| id != NONE);
        Ok(id.map(|&id| variables.objects[id as usize].clone_ref(py)))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Whoever has it locked needs it, and all that it holds.
        let Ok(known) = self.known.try_lock() else { return Ok(()) };
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
        match self.known.try_lock() {
            Ok(known) => Ok(known),
            Err(TryLockError::Poisoned(known)) => Ok(known.into_inner()),
            Err(TryLockError::WouldBlock) => Err(crate::errors::table_in_use()),
        }
    }
}

#[pymethods]
impl MergePlan {
    // Without `__clear__`: a cycle goes on through a list, which can be cleared.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Self { replacements, dying, incomparable, waiting, .. } = self;
        [replacements, dying, incomparable, waiting].into_iter().try_for_each(|l| visit.call(l))
    }
}

impl Objects {
    fn plan(
        &self,
        py: Python<'_>,
        plan: Plan,
        (table, number): (u64, u64),
        met_kernels: bool,
    ) -> PyResult<MergePlan> {
        let list = |ids: &[u32]| {
            let nodes = ids.iter().map(|&id| &self.nodes.objects[id as usize]);
            PyList::new(py, nodes).map(Bound::unbind)
        };
        let pairs = |pairs: &[(u32, u32)], objects: &[Py<PyAny>]| {
            let object = |id: u32| objects[id as usize].clone_ref(py);
            let pairs: Pairs = pairs.iter().map(|&(old, new)| (object(old), object(new))).collect();
            PyList::new(py, pairs).map(Bound::unbind)
        };
        Ok(MergePlan {
            replacements: pairs(&plan.replacements, &self.variables.objects)?,
            dying: pairs(&plan.dying, &self.nodes.objects)?,
            incomparable: pairs(&plan.incomparable, &self.nodes.objects)?,
            waiting: list(&plan.queue[plan.n_done..])?,
            n_looked_up: plan.n_done,
            met_kernels,
            queue: plan.queue,
            table,
            number,
        })
    }
}

/// A graph at one time, and whom to ask about it.
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

    fn row(&mut self, node: u32, name: &Bound<'py, PyString>, row: &mut Vec<u32>) -> PyResult<()> {
        let variables = self.object_of_node(node).getattr(name)?;
        if let Ok(list) = variables.cast::<PyList>() {
            for variable in list.iter() {
                self.signals.check(self.py())?;
                row.push(self.variable(&variable)?);
            }
        } else {
            for variable in variables.try_iter()? {
                self.signals.check(self.py())?;
                row.push(self.variable(&variable?)?);
            }
        }
        Ok(())
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

    fn inputs(&mut self, node: u32, row: &mut Vec<u32>) -> PyResult<()> {
        self.row(node, &intern!(self.py(), "inputs").clone(), row)
    }

    fn outputs(&mut self, node: u32, row: &mut Vec<u32>) -> PyResult<()> {
        self.row(node, &intern!(self.py(), "outputs").clone(), row)
    }

    fn clients(&mut self, variable: u32, row: &mut Vec<u32>) -> PyResult<()> {
        let variable = self.object_of_variable(variable);
        let Some(clients) = self.clients.get_item(&variable)? else {
            return Err(PyKeyError::new_err(variable.unbind()));
        };
        for client in clients.cast_into::<PyList>()?.iter() {
            self.signals.check(self.py())?;
            row.push(self.node(&client.cast::<PyTuple>()?.get_item(0)?)?);
        }
        Ok(())
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
        // Merges that are made together are not refused one by one.
        if !self.one_at_a_time {
            return Ok(true);
        }
        let (node, other) = (self.object_of_node(node), self.object_of_node(other));
        self.rules.call_method1(intern!(self.py(), "may_merge"), (node, other))?.extract()
    }

    fn n_outputs(&mut self, node: u32) -> PyResult<usize> {
        self.object_of_node(node).getattr(intern!(self.py(), "outputs"))?.len()
    }

    fn same_types(&mut self, node: u32, other: u32) -> PyResult<bool> {
        let py = self.py();
        let (node, other) = (self.object_of_node(node), self.object_of_node(other));
        let outputs = node.getattr(intern!(py, "outputs"))?;
        let others = other.getattr(intern!(py, "outputs"))?;
        for (a, b) in outputs.try_iter()?.zip(others.try_iter()?) {
            let (a, b) = (a?.getattr(intern!(py, "type"))?, b?.getattr(intern!(py, "type"))?);
            if !(a.is(&b) || a.eq(&b)?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn direction(&mut self, node: u32, other: u32) -> PyResult<Direction> {
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
