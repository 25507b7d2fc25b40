//! The hash-cons table for Python.

mod terms;

pub(crate) use terms::{Term, Terms};

use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use pytensor_fuse_core::hashcons::{
    self, Content, Duplicates, GraphRows, Handles, TermId, TermsOf,
};
use pytensor_fuse_core::{Result, Rows};

use crate::errors::{other_table, to_py};
use crate::ids::{ids, integers, term_id};
use terms::digest;

/// Contents longer than this are hashed without the interpreter.
const LONG: usize = 1 << 16;

/// Number of nodes that are interned between two checks for signals, in a fraction of a second.
const PART: usize = 1 << 19;

/// A table that stores each structure once, under one id.
///
/// The structures are terms: ops, types and constants by their content (`compound`) or by identity
/// (`opaque`), inputs of graphs, applications of ops, their outputs, and graphs. Two graphs are equal if
/// and only if their terms are. A term stays as long as a `Term`, a `Terms` or another term needs it. Its
/// id is never reused. The table is thread-safe.
///
/// Making a term takes expected time proportional to its number of children (A. P. Ershov, "On
/// programming of arithmetic operations", CACM 1(8), 1958).
#[pyclass(frozen, module = "pytensor_fuse._core")]
pub(crate) struct HashConsTable {
    /// No Python object is made or freed while the table is locked: that may collect garbage, and a
    /// collected `Term` would wait for the lock forever.
    table: hashcons::HashConsTable,
    /// Number of calls that run without the interpreter, and so may have the table locked.
    detached: AtomicUsize,
    /// Number of calls of `before_fork` that were not followed by `after_fork` yet.
    forks: AtomicUsize,
}

#[pymethods]
impl HashConsTable {
    #[new]
    fn new() -> Self {
        let table = hashcons::HashConsTable::new();
        Self { table, detached: AtomicUsize::new(0), forks: AtomicUsize::new(0) }
    }

    /// The term with this content and these children.
    ///
    /// Parameters
    /// ----------
    /// content : bytes
    ///     Only its hash is kept.
    /// children : sequence of Term
    ///
    /// Returns
    /// -------
    /// Term
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     A term belongs to another table.
    #[pyo3(signature = (content, children=Vec::new()))]
    fn compound(
        &self,
        py: Python<'_>,
        content: &[u8],
        children: Vec<PyRef<'_, Term>>,
    ) -> PyResult<Term> {
        let children = self.ids_of(&children)?;
        let content = if content.len() > LONG {
            py.detach(|| Content::of(content))
        } else {
            Content::of(content)
        };
        self.table.compound(content, &children).map(Term).map_err(to_py)
    }

    /// A new term that is equal only to itself, without a digest.
    fn opaque(&self) -> PyResult<Term> {
        self.table.opaque().map(Term).map_err(to_py)
    }

    /// Input number ``position`` of a graph, of type ``type_``.
    ///
    /// Parameters
    /// ----------
    /// position : int
    ///     From 0.
    /// type_ : Term
    ///
    /// Returns
    /// -------
    /// Term
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     A term belongs to another table.
    fn input(&self, position: u32, type_: &Term) -> PyResult<Term> {
        let type_ = self.id(type_)?;
        self.table.input(position, type_).map(Term).map_err(to_py)
    }

    /// The application of ``op`` to ``inputs``, with at least one output, of the given ``types``.
    ///
    /// Parameters
    /// ----------
    /// op : Term
    /// types : sequence of Term
    ///     One for each output.
    /// inputs : sequence of Term
    ///
    /// Returns
    /// -------
    /// Term
    ///
    /// Raises
    /// ------
    /// GraphError
    ///     There are no types.
    /// ValueError
    ///     A term belongs to another table.
    fn apply(
        &self,
        op: &Term,
        types: Vec<PyRef<'_, Term>>,
        inputs: Vec<PyRef<'_, Term>>,
    ) -> PyResult<Term> {
        let op = self.id(op)?;
        let types = self.ids_of(&types)?;
        let inputs = self.ids_of(&inputs)?;
        self.table.apply(op, &types, &inputs).map(Term).map_err(to_py)
    }

    /// Output ``index`` of an application; the application itself if it has a single output.
    ///
    /// Parameters
    /// ----------
    /// apply : Term
    /// index : int
    ///     From 0.
    ///
    /// Returns
    /// -------
    /// Term
    ///
    /// Raises
    /// ------
    /// GraphError
    ///     ``apply`` is not an application.
    /// IdError
    ///     It has no such output.
    /// ValueError
    ///     A term belongs to another table.
    fn output(&self, apply: &Term, index: u32) -> PyResult<Term> {
        let apply = self.id(apply)?;
        self.table.output(apply, index).map(Term).map_err(to_py)
    }

    /// The graph that computes ``outputs`` from ``inputs``, which are `input` 0, 1, ...
    ///
    /// Parameters
    /// ----------
    /// inputs : sequence of Term
    /// outputs : sequence of Term
    ///
    /// Returns
    /// -------
    /// Term
    ///
    /// Raises
    /// ------
    /// GraphError
    ///     The inputs are not `input` 0, 1, ...
    /// ValueError
    ///     A term belongs to another table.
    fn graph(&self, inputs: Vec<PyRef<'_, Term>>, outputs: Vec<PyRef<'_, Term>>) -> PyResult<Term> {
        let inputs = self.ids_of(&inputs)?;
        let outputs = self.ids_of(&outputs)?;
        self.table.graph(&inputs, &outputs).map(Term).map_err(to_py)
    }

    /// Terms with these contents and no children.
    ///
    /// Parameters
    /// ----------
    /// contents : sequence of bytes
    ///
    /// Returns
    /// -------
    /// Terms
    fn symbols(&self, py: Python<'_>, contents: Vec<Bound<'_, PyBytes>>) -> PyResult<Terms> {
        let contents: Vec<Content> =
            contents.iter().map(|content| Content::of(content.as_bytes())).collect();
        self.detach(py, || self.table.symbols(&contents)).map(Terms).map_err(to_py)
    }

    /// Interns apply nodes given as arrays, in topological order.
    ///
    /// The numbers of variables start with the leaves; the outputs of each node follow in order.
    ///
    /// Parameters
    /// ----------
    /// leaves, ops, types : Terms, list of Term, or array_like of int
    ///     Terms, or ids of terms that other objects keep in the table.
    /// node_ops : array_like of int, shape (n_nodes,)
    ///     An index into ``ops`` for each node.
    /// input_offsets, inputs : array_like of int
    ///     Node ``i`` reads the variables ``inputs[input_offsets[i]:input_offsets[i + 1]]``.
    /// type_offsets, output_types : array_like of int
    ///     Likewise, an index into ``types`` for each output of a node.
    ///
    /// Returns
    /// -------
    /// Terms
    ///     The term of each output of each node.
    ///
    /// Raises
    /// ------
    /// GraphError
    ///     The arrays do not describe such nodes.
    /// IdError
    ///     An index is out of range, or no term has the id.
    /// ValueError
    ///     A term belongs to another table.
    #[pyo3(signature = (*, leaves, ops, types, node_ops, input_offsets, inputs, type_offsets,
                        output_types))]
    #[expect(clippy::too_many_arguments, reason = "one argument per array")]
    fn intern<'py>(
        &self,
        py: Python<'py>,
        leaves: &Bound<'py, PyAny>,
        ops: &Bound<'py, PyAny>,
        types: &Bound<'py, PyAny>,
        node_ops: &Bound<'py, PyAny>,
        input_offsets: &Bound<'py, PyAny>,
        inputs: &Bound<'py, PyAny>,
        type_offsets: &Bound<'py, PyAny>,
        output_types: &Bound<'py, PyAny>,
    ) -> PyResult<Terms> {
        let leaves = self.given("leaves", leaves)?;
        let (ops, types) = (self.given("ops", ops)?, self.given("types", types)?);
        let rows = |what: &'static str, values| ids(what, what, values);
        let node_ops = rows("node_ops", node_ops)?;
        let input_offsets = rows("input_offsets", input_offsets)?;
        let inputs = rows("inputs", inputs)?;
        let type_offsets = rows("type_offsets", type_offsets)?;
        let output_types = rows("output_types", output_types)?;
        let rows = self.detach(py, || {
            let rows = GraphRows {
                ops: node_ops,
                inputs: Rows::new("inputs", input_offsets, inputs)?,
                types: Rows::new("output_types", type_offsets, output_types)?,
            };
            rows.check(leaves.len(), ops.len(), types.len())?;
            Ok(rows)
        });
        let rows = rows.map_err(to_py)?;
        self.intern_parts(py, &rows, leaves, &ops, &types).map(Terms)
    }

    /// The structural digest of the term with this id; see `Term.digest`.
    ///
    /// Parameters
    /// ----------
    /// term : int
    ///     The id.
    ///
    /// Returns
    /// -------
    /// bytes or None
    ///     16 bytes; None if an opaque term is part of it.
    ///
    /// Raises
    /// ------
    /// IdError
    ///     No term has this id.
    fn digest<'py>(&self, py: Python<'py>, term: i64) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let term = self.table.handle(term_id("term", term)?).map_err(to_py)?;
        digest(py, &term)
    }

    /// Check every invariant of the table, in time proportional to its size.
    ///
    /// Raises
    /// ------
    /// GraphError
    ///     The table is damaged, which is a bug.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.detach(py, || self.table.check()).map_err(to_py)
    }

    /// The numbers of ``live`` terms, of applications among them (``applies``) and of ``free`` slots,
    /// the ``peak`` of live terms, and the allocated ``bytes``.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.table.stats();
        let dict = PyDict::new(py);
        dict.set_item("live", stats.live)?;
        dict.set_item("applies", stats.applies)?;
        dict.set_item("free", stats.free)?;
        dict.set_item("peak", stats.peak)?;
        dict.set_item("bytes", stats.bytes)?;
        Ok(dict)
    }

    /// Prepare for a fork of the process: until `after_fork`, no thread has the table locked unless it
    /// holds the interpreter.
    fn before_fork(&self, py: Python<'_>) {
        self.forks.fetch_add(1, Ordering::SeqCst);
        while self.detached.load(Ordering::SeqCst) > 0 {
            py.detach(std::thread::yield_now);
        }
    }

    /// End the preparation of `before_fork`, in the parent and in the child.
    fn after_fork(&self) {
        self.forks.fetch_sub(1, Ordering::SeqCst);
    }

    fn __len__(&self) -> usize {
        self.table.stats().live
    }
}

impl HashConsTable {
    /// Runs `work`, which may lock the table, without the interpreter, unless the process is about to
    /// fork: if another thread of the parent had the table locked, the child would wait for it forever.
    /// Both counters change only under the interpreter's lock.
    pub(crate) fn detach<T: Send>(&self, py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
        if self.forks.load(Ordering::SeqCst) > 0 {
            return work();
        }
        struct Detached<'a>(&'a AtomicUsize);
        impl Drop for Detached<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        self.detached.fetch_add(1, Ordering::SeqCst);
        let _detached = Detached(&self.detached);
        py.detach(work)
    }

    /// Interns the nodes of `rows`, which have been checked, part by part: handlers of signals must not
    /// run while the table is locked. If one raises, the table is as before.
    fn intern_parts(
        &self,
        py: Python<'_>,
        rows: &GraphRows,
        leaves: Vec<TermId>,
        ops: &[TermId],
        types: &[TermId],
    ) -> PyResult<Handles> {
        let mut variables = leaves;
        let mut interned: Option<Handles> = None;
        let mut rest = 0..rows.ops.len();
        loop {
            let end = rest.end.min(rest.start + PART);
            let part = self.detach(py, || {
                let terms = TermsOf { leaves: &variables, ops, types };
                let part =
                    self.table.intern_rows(&rows.part(rest.start..end), terms, Duplicates::Fold)?;
                variables.extend(part.ids());
                match &mut interned {
                    None => interned = Some(part),
                    Some(interned) => interned.append(part)?,
                }
                Ok(())
            });
            part.map_err(to_py)?;
            rest.start = end;
            match interned {
                Some(interned) if rest.is_empty() => return Ok(interned),
                _ => py.check_signals()?,
            }
        }
    }

    /// Interns the graph of `rows` whose leaves are its inputs, of the given types, and constants. Also
    /// returns the terms of its variables, by which equal variables are found.
    pub(crate) fn intern_graph(
        &self,
        inputs: &[u32],
        rows: &GraphRows,
        outputs: &[u32],
        terms: TermsOf<'_>,
        duplicates: Duplicates,
    ) -> Result<(Term, Vec<TermId>)> {
        let interned = self.table.intern_graph(inputs, rows, terms, outputs, duplicates)?;
        Ok((Term(interned.root), interned.variables))
    }

    /// Interns the nodes of `rows` and returns the terms of the variables `outputs`.
    pub(crate) fn intern_outputs(
        &self,
        rows: &GraphRows,
        outputs: &[u32],
        terms: TermsOf<'_>,
    ) -> Result<Vec<Term>> {
        let interned = self.table.intern_outputs(rows, terms, outputs)?;
        Ok(interned.into_iter().map(Term).collect())
    }

    /// The ids of terms, which must belong to this table.
    pub(crate) fn ids<'t>(&self, terms: impl Iterator<Item = &'t Term>) -> PyResult<Vec<TermId>> {
        terms.map(|term| self.id(term)).collect()
    }

    /// [`ids`](Self::ids) of a list from Python.
    pub(crate) fn ids_of(&self, terms: &[PyRef<'_, Term>]) -> PyResult<Vec<TermId>> {
        self.ids(terms.iter().map(|term| &**term))
    }

    /// The ids of terms, given as terms or as ids, which need not be in the table.
    fn given(&self, what: &'static str, terms: &Bound<'_, PyAny>) -> PyResult<Vec<TermId>> {
        if let Ok(terms) = terms.cast::<Terms>() {
            let terms = &terms.get().0;
            if !terms.table().is(&self.table) {
                return Err(other_table());
            }
            return Ok(terms.ids().to_vec());
        }
        if let Ok(list) = terms.cast::<PyList>()
            && list.iter().next().is_some_and(|first| first.cast::<Term>().is_ok())
        {
            return self.ids_of(&list.extract::<Vec<PyRef<'_, Term>>>()?);
        }
        integers(what, terms)?.iter().map(|&id| term_id(what, id)).collect()
    }

    fn id(&self, term: &Term) -> PyResult<TermId> {
        if term.0.table().is(&self.table) { Ok(term.0.id()) } else { Err(other_table()) }
    }
}
