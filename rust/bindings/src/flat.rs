//! Graphs as flat integer rows, to be interned; `pytensor_fuse._identity.frozen` interprets them.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyType};
use pytensor_fuse_core::hashcons::{Duplicates, GraphRows, TermId, TermsOf};
use pytensor_fuse_core::plan::NONE;
use pytensor_fuse_core::{Error, Result, Rows};
use rustc_hash::FxHashMap;

use crate::errors::to_py;
use crate::hashcons::{HashConsTable, Term};
use crate::interrupt::Signals;
use crate::walk::{Details, QUICK, Walk};

/// A graph whose ops, types and constants are indices into lists of the caller.
///
/// Variables are numbered: the inputs, the constants, then the outputs of each node in turn.
#[pyclass(frozen, module = "pytensor_fuse._core")]
pub(crate) struct FlatGraph {
    /// Types of the inputs.
    inputs: Vec<u32>,
    n_constants: u32,
    rows: GraphRows,
    outputs: Vec<u32>,
}

/// Number of conversions between numbers and objects in a microsecond.
const PER_MICROSECOND: usize = 16;

type Node = (u32, Vec<u32>, Vec<u32>);
type Parts<'py> = (Vec<u32>, u32, Bound<'py, PyList>, Vec<u32>);
pub(crate) type Flattened =
    (FlatGraph, Vec<Py<PyAny>>, Vec<Py<PyAny>>, Vec<Py<PyAny>>, Vec<Py<PyAny>>);

/// Walks the graph between `inputs` and `outputs`.
///
/// Returns the graph, its distinct ops, types and constants, and its orphans: variables that are
/// neither computed nor inputs nor constants, and inputs that are given again. A graph with orphans is
/// invalid. Types whose class is exactly `plain_type` are compared by `dtype` and `shape`, ops as
/// [`crate::walk::PlainOps`] describes, and other types by identity.
#[pyfunction]
#[pyo3(signature = (inputs, outputs, constant, plain_type, plain_ops=None))]
pub(crate) fn walk<'py>(
    inputs: &Bound<'py, PyAny>,
    outputs: &Bound<'py, PyAny>,
    constant: &Bound<'py, PyType>,
    plain_type: &Bound<'py, PyType>,
    plain_ops: Option<&Bound<'py, PyDict>>,
) -> PyResult<Flattened> {
    let mut walk = Walk::new(inputs.py(), constant, Details::new(plain_type, plain_ops));
    let results = walk.between(inputs, outputs)?;
    flatten(&mut walk, &results)
}

/// The graph of a walk [between](Walk::between) inputs and outputs; `results` are the outputs.
pub(crate) fn flatten(walk: &mut Walk<'_, '_>, results: &[u32]) -> PyResult<Flattened> {
    let py = walk.py;
    let n_inputs = walk.n_roots;
    let mut orphans: Vec<Py<PyAny>> =
        walk.met_again.iter().map(|variable| variable.clone_ref(py)).collect();
    let mut number = vec![NONE; walk.variables.objects.len()];
    for (id, number) in (0u32..).zip(&mut number[..n_inputs]) {
        *number = id;
    }
    let mut constants = Vec::new();
    walk.signals.check_many(py, walk.variables.objects.len() / QUICK)?;
    for (id, variable) in walk.variables.objects.iter().enumerate().skip(n_inputs) {
        if walk.constants[id] {
            number[id] = (n_inputs + constants.len()) as u32;
            constants.push(variable.clone_ref(py));
        } else if walk.owners[id] == NONE {
            orphans.push(variable.clone_ref(py));
        }
    }
    let type_of = &walk.details.types.of_variables;
    let mut next = (n_inputs + constants.len()) as u32;
    let ops = std::mem::take(&mut walk.ops);
    let mut rows = GraphRows { ops, inputs: Rows::empty(), types: Rows::empty() };
    for node in 0..walk.nodes.len() as u32 {
        let (inputs, outputs) = (walk.inputs.row(node), walk.outputs.row(node));
        walk.signals.check_many(py, (inputs.len() + outputs.len()) / QUICK)?;
        // Orphans keep `NONE`.
        rows.inputs.push(inputs.iter().map(|&id| number[id as usize])).map_err(to_py)?;
        for &output in outputs {
            // An output at which the walk ended is also an input of the graph, and keeps its number.
            if (output as usize) >= n_inputs {
                number[output as usize] = next;
            }
            next += 1;
        }
        let types = outputs.iter().map(|&output| type_of[output as usize]);
        rows.types.push(types).map_err(to_py)?;
    }
    let graph = FlatGraph {
        inputs: type_of[..n_inputs].to_vec(),
        n_constants: constants.len() as u32,
        rows,
        outputs: results.iter().map(|&id| number[id as usize]).collect(),
    };
    let ops = std::mem::take(&mut walk.details.ops.distinct);
    let types = std::mem::take(&mut walk.details.types.distinct);
    Ok((graph, ops, types, constants, orphans))
}

#[pymethods]
impl FlatGraph {
    /// A graph from its parts; see `parts`.
    ///
    /// Raises
    /// ------
    /// GraphError
    ///     A node has no outputs, or reads a variable that does not come before it.
    #[new]
    fn new(
        inputs: Vec<u32>,
        n_constants: u32,
        nodes: &Bound<'_, PyAny>,
        outputs: Vec<u32>,
    ) -> PyResult<Self> {
        let mut rows = GraphRows { ops: Vec::new(), inputs: Rows::empty(), types: Rows::empty() };
        let mut signals = Signals::default();
        for node in nodes.try_iter()? {
            let (op, inputs, types): Node = node?.extract()?;
            signals.check_many(nodes.py(), 1 + (inputs.len() + types.len()) / PER_MICROSECOND)?;
            rows.ops.push(op);
            rows.inputs.push(inputs).map_err(to_py)?;
            rows.types.push(types).map_err(to_py)?;
        }
        let n_leaves = inputs.len() + n_constants as usize;
        rows.check(n_leaves, usize::MAX, usize::MAX).map_err(to_py)?;
        Ok(Self { inputs, n_constants, rows, outputs })
    }

    /// The types of the inputs, the number of constants, for each node its op, its inputs and the
    /// types of its outputs, and the outputs of the graph.
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<Parts<'py>> {
        Ok((self.inputs.clone(), self.n_constants, self.nodes(py)?, self.outputs.clone()))
    }

    /// The op, the inputs and the types of the outputs of each node.
    fn nodes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let nodes = PyList::empty(py);
        let mut signals = Signals::default();
        for (node, &op) in (0u32..).zip(&self.rows.ops) {
            let (inputs, types) = (self.rows.inputs.row(node), self.rows.types.row(node));
            signals.check_many(py, 1 + (inputs.len() + types.len()) / PER_MICROSECOND)?;
            nodes.append((op, inputs, types))?;
        }
        Ok(nodes)
    }

    fn __len__(&self) -> usize {
        self.rows.ops.len()
    }

    /// Interns the nodes with given terms for the inputs and constants.
    ///
    /// Parameters
    /// ----------
    /// table : HashConsTable
    /// leaves : list of Term
    ///     One for each input, then one for each constant.
    /// masks : list of int
    ///     64 bits for each leaf.
    /// ops, types : list of Term
    ///     The term of each op and type of the graph.
    ///
    /// Returns
    /// -------
    /// list of (Term, int)
    ///     The term of each output of the graph, and the bits common to all leaves that it depends
    ///     on.
    fn substitute(
        &self,
        py: Python<'_>,
        table: &HashConsTable,
        leaves: Vec<PyRef<'_, Term>>,
        masks: Vec<u64>,
        ops: Vec<PyRef<'_, Term>>,
        types: Vec<PyRef<'_, Term>>,
    ) -> PyResult<Vec<(Term, u64)>> {
        // The lists keep the terms alive while their ids are used.
        let held = [leaves, ops, types];
        let [leaves, ops, types] = held.each_ref().map(|terms| table.ids_of(terms));
        let (leaves, ops, types) = (leaves?, ops?, types?);
        let n_leaves = self.inputs.len() + self.n_constants as usize;
        for (what, len) in [("leaves", leaves.len()), ("masks", masks.len())] {
            self.check_length(what, len, n_leaves).map_err(to_py)?;
        }
        table
            .detach(py, || {
                let terms = TermsOf { leaves: &leaves, ops: &ops, types: &types };
                let outputs = table.intern_outputs(&self.rows, &self.outputs, terms)?;
                let masks = self.common_bits(masks);
                Ok(outputs
                    .into_iter()
                    .zip(self.outputs.iter().map(|&i| masks[i as usize]))
                    .collect())
            })
            .map_err(to_py)
    }

    /// Interns the graph.
    ///
    /// Parameters
    /// ----------
    /// table : HashConsTable
    /// ops, types, constants : list of Term
    ///     The term of each op, type and constant of the graph.
    /// fold : bool
    ///     Whether equal nodes are merged.
    ///
    /// Returns
    /// -------
    /// Term
    ///     The term of the graph.
    /// FlatGraph
    ///     The graph with equal constants merged and, if ``fold``, equal nodes.
    fn intern(
        &self,
        py: Python<'_>,
        table: &HashConsTable,
        ops: Vec<PyRef<'_, Term>>,
        types: Vec<PyRef<'_, Term>>,
        constants: Vec<PyRef<'_, Term>>,
        fold: bool,
    ) -> PyResult<(Term, Self)> {
        let held = [ops, types, constants];
        let [ops, types, constants] = held.each_ref().map(|terms| table.ids_of(terms));
        let (ops, types, constants) = (ops?, types?, constants?);
        let duplicates = if fold { Duplicates::Fold } else { Duplicates::Number };
        table
            .detach(py, || self.intern_in(table, &ops, &types, &constants, duplicates))
            .map_err(to_py)
    }
}

impl FlatGraph {
    fn intern_in(
        &self,
        table: &HashConsTable,
        ops: &[TermId],
        types: &[TermId],
        constants: &[TermId],
        duplicates: Duplicates,
    ) -> Result<(Term, Self)> {
        self.check_length("constants", constants.len(), self.n_constants as usize)?;
        let terms = TermsOf { leaves: constants, ops, types };
        let (root, variables) =
            table.intern_graph(&self.inputs, &self.rows, &self.outputs, terms, duplicates)?;
        Ok((root, self.folded(&variables)?))
    }

    fn check_length(&self, left: &'static str, left_len: usize, right_len: usize) -> Result<()> {
        if left_len == right_len {
            return Ok(());
        }
        Err(Error::LengthMismatch { left, left_len, right: "the graph", right_len })
    }

    /// The bits common to all leaves that each variable depends on.
    fn common_bits(&self, mut masks: Vec<u64>) -> Vec<u64> {
        for node in 0..self.rows.ops.len() as u32 {
            let inputs = self.rows.inputs.row(node).iter();
            let common = inputs.fold(u64::MAX, |bits, &input| bits & masks[input as usize]);
            masks.extend(self.rows.types.row(node).iter().map(|_| common));
        }
        masks
    }

    /// The graph in which the first variable of each term replaces the others.
    fn folded(&self, variables: &[TermId]) -> Result<Self> {
        let n_leaves = self.inputs.len() + self.n_constants as usize;
        let (leaves, computed) = variables.split_at(n_leaves);
        let mut first: FxHashMap<TermId, u32> = FxHashMap::default();
        let mut number: Vec<u32> = (0u32..)
            .zip(leaves)
            .map(|(variable, &term)| *first.entry(term).or_insert(variable))
            .collect();
        let mut rows = GraphRows { ops: Vec::new(), inputs: Rows::empty(), types: Rows::empty() };
        let (mut next, mut at) = (leaves.len() as u32, 0);
        for (node, &op) in (0u32..).zip(&self.rows.ops) {
            let types = self.rows.types.row(node);
            let terms = &computed[at..at + types.len()];
            at += types.len();
            if let Some(&known) = first.get(&terms[0]) {
                number.extend((known..).take(terms.len()));
                continue;
            }
            rows.ops.push(op);
            let inputs = self.rows.inputs.row(node);
            rows.inputs.push(inputs.iter().map(|&input| number[input as usize]))?;
            rows.types.push(types.iter().copied())?;
            for &term in terms {
                first.insert(term, next);
                number.push(next);
                next += 1;
            }
        }
        let outputs = self.outputs.iter().map(|&output| number[output as usize]).collect();
        Ok(Self { inputs: self.inputs.clone(), n_constants: self.n_constants, rows, outputs })
    }
}
