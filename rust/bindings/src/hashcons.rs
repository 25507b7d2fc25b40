//! The hash-cons table for Python.

use std::sync::atomic::{AtomicUsize, Ordering};

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use pytensor_fuse_core::hashcons::{
    Content, Duplicates, GraphRows, Handle, SharedTable, TermId, TermsOf,
};
use pytensor_fuse_core::{Error, Result, Rows};

use crate::errors::{other_table, to_py};
use crate::ids::Ids;

/// Contents longer than this are hashed without the interpreter.
const LONG: usize = 1 << 16;

/// Nodes that are interned before handlers of signals may run: a fraction of a second.
const PART: usize = 1 << 19;

/// A table in which every structure is there once, under one id.
///
/// What it holds are terms: ops, types and constants by their content (`compound`) or by nothing
/// but themselves (`opaque`), inputs of graphs, applications of ops, their outputs, and graphs.
/// Two graphs are equal exactly when their terms are. Terms are counted: one that nothing needs is
/// freed, and its id used again. Safe to use from several threads.
///
/// Making a term takes time proportional to its number of children, expected (A. P. Ershov, "On
/// programming of arithmetic operations", CACM 1(8), 1958).
#[pyclass(frozen, module = "pytensor_fuse._core")]
pub(crate) struct HashConsTable {
    /// While it is locked no Python object is made or freed: that may collect garbage, and a `Term`
    /// in it would wait for the lock for good.
    table: SharedTable,
    /// Calls that run without the interpreter, hence maybe with the table locked.
    detached: AtomicUsize,
    /// Calls of `before_fork` that wait for their `after_fork`.
    forks: AtomicUsize,
}

/// A term of a `HashConsTable`, which stays in the table as long as this object lives.
///
/// Equal if it is the same term of the same table.
#[pyclass(frozen, weakref, module = "pytensor_fuse._core")]
pub(crate) struct Term(Handle);

type IdArray<'py> = Bound<'py, PyArray1<u32>>;

#[pymethods]
impl Term {
    /// Id of the term, which other terms may have later.
    #[getter]
    fn id(&self) -> TermId {
        self.0.id()
    }

    /// The structural digest: 16 bytes that depend on nothing but the structure, in any process.
    /// None if an opaque term is part of it.
    #[getter]
    fn digest<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.0.digest().map(|digest| PyBytes::new(py, digest.as_bytes()))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| other.get().0 == self.0)
    }

    fn __hash__(&self) -> u64 {
        self.0.id().into()
    }
}

#[pymethods]
impl HashConsTable {
    #[new]
    fn new() -> Self {
        let table = SharedTable::new();
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
        let id = self.table.lock().compound(content, &children);
        id.map(|id| self.own(id)).map_err(to_py)
    }

    /// A term unlike any other, without a digest.
    fn opaque(&self) -> PyResult<Term> {
        let id = self.table.lock().opaque();
        id.map(|id| self.own(id)).map_err(to_py)
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
        let id = self.table.lock().input(position, type_);
        id.map(|id| self.own(id)).map_err(to_py)
    }

    /// ``op`` applied to ``inputs``, with outputs of ``types``, at least one.
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
        let id = self.table.lock().apply(op, &types, &inputs);
        id.map(|id| self.own(id)).map_err(to_py)
    }

    /// Output ``index`` of an application; of one with a single output, that application itself.
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
    ///     ``apply`` is no application.
    /// IdError
    ///     It has no such output.
    /// ValueError
    ///     A term belongs to another table.
    fn output(&self, apply: &Term, index: u32) -> PyResult<Term> {
        let apply = self.id(apply)?;
        let id = self.table.lock().output(apply, index);
        id.map(|id| self.own(id)).map_err(to_py)
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
        let id = self.table.lock().graph(&inputs, &outputs);
        id.map(|id| self.own(id)).map_err(to_py)
    }

    /// Terms with these contents and no children.
    ///
    /// Parameters
    /// ----------
    /// contents : sequence of bytes
    ///
    /// Returns
    /// -------
    /// numpy.ndarray of uint32
    ///     Their ids. The terms stay until these are given to `release`.
    fn symbols<'py>(
        &self,
        py: Python<'py>,
        contents: Vec<Bound<'py, PyBytes>>,
    ) -> PyResult<IdArray<'py>> {
        let contents: Vec<Content> =
            contents.iter().map(|content| Content::of(content.as_bytes())).collect();
        let ids = self.detach(py, || {
            let mut table = self.table.lock();
            let mut ids = Vec::with_capacity(contents.len());
            for content in contents {
                match table.compound(content, &[]) {
                    Ok(id) => ids.push(id),
                    Err(error) => {
                        table.release_all(&ids)?;
                        return Err(error);
                    }
                }
            }
            Ok(ids)
        });
        let ids = ids.map_err(to_py)?;
        Ok(PyArray1::from_vec(py, ids))
    }

    /// Interns apply nodes given as arrays, in topological order.
    ///
    /// Variables are numbered: the leaves, then the outputs of each node in turn.
    ///
    /// Parameters
    /// ----------
    /// leaves, ops, types : array_like of int
    ///     Ids of terms.
    /// node_ops : array_like of int, shape (n_nodes,)
    ///     For each node an index into ``ops``.
    /// input_offsets, inputs : array_like of int
    ///     Node ``i`` reads the variables ``inputs[input_offsets[i]:input_offsets[i + 1]]``.
    /// type_offsets, output_types : array_like of int
    ///     Likewise, for each output of a node an index into ``types``.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray of uint32
    ///     The term of each output of each node. They stay until they are given to `release`.
    ///
    /// Raises
    /// ------
    /// GraphError
    ///     The arrays are not such nodes.
    /// IdError
    ///     An index is out of range, or an id is not in the table.
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
    ) -> PyResult<IdArray<'py>> {
        let ids = |what: &'static str, values| Ids::new(what, values)?.to_u32(what);
        let leaves = ids("leaves", leaves)?;
        let (ops, types) = (ids("ops", ops)?, ids("types", types)?);
        let node_ops = ids("node_ops", node_ops)?;
        let input_offsets = ids("input_offsets", input_offsets)?;
        let inputs = ids("inputs", inputs)?;
        let type_offsets = ids("type_offsets", type_offsets)?;
        let output_types = ids("output_types", output_types)?;
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
        Ok(PyArray1::from_vec(py, self.intern_parts(py, &rows, leaves, &ops, &types)?))
    }

    /// Gives up the terms with these ids, once for each time that `intern` or `symbols` gave them.
    /// What a `Term` keeps is not to be given up: the object does that when it goes.
    ///
    /// Parameters
    /// ----------
    /// ids : array_like of int
    ///
    /// Raises
    /// ------
    /// IdError
    ///     There is no such term, or nothing of it to give up. Those before it are given up.
    fn release(&self, py: Python<'_>, ids: &Bound<'_, PyAny>) -> PyResult<()> {
        let ids = Ids::new("ids", ids)?.to_u32("ids")?;
        self.detach(py, || self.table.lock().release_all(&ids)).map_err(to_py)
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
    ///     There is no such term.
    fn digest<'py>(&self, py: Python<'py>, term: u32) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let digest = self.table.lock().digest(term);
        Ok(digest.map_err(to_py)?.map(|digest| PyBytes::new(py, digest.as_bytes())))
    }

    /// Checks every invariant of the table; takes time proportional to its size.
    ///
    /// Raises
    /// ------
    /// GraphError
    ///     The table is damaged, which is a bug.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.detach(py, || self.table.lock().check()).map_err(to_py)
    }

    /// What the table holds: ``live`` terms, of them ``applies``, ids that are ``free``, the
    /// ``peak`` of live terms, and ``bytes`` allocated.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.table.lock().stats();
        let dict = PyDict::new(py);
        dict.set_item("live", stats.live)?;
        dict.set_item("applies", stats.applies)?;
        dict.set_item("free", stats.free)?;
        dict.set_item("peak", stats.peak)?;
        dict.set_item("bytes", stats.bytes)?;
        Ok(dict)
    }

    /// Makes the table ready for a fork of the process: no thread has it locked from when this
    /// returns until `after_fork`, except while it holds the interpreter.
    fn before_fork(&self, py: Python<'_>) {
        self.forks.fetch_add(1, Ordering::SeqCst);
        while self.detached.load(Ordering::SeqCst) > 0 {
            py.detach(std::thread::yield_now);
        }
    }

    /// Ends what `before_fork` began, in the parent and in the child.
    fn after_fork(&self) {
        self.forks.fetch_sub(1, Ordering::SeqCst);
    }

    fn __len__(&self) -> usize {
        self.table.lock().stats().live
    }
}

impl HashConsTable {
    /// Runs `work`, which may lock the table, without the interpreter, unless the process is about
    /// to fork: a child in which a thread that is not there has the table locked would wait for
    /// it for good. Both counters change only under the interpreter's lock.
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

    /// Interns the nodes of `rows`, which have been checked, part by part: a handler of a signal
    /// must not run while the table is locked. If one raises, the table is as it was.
    fn intern_parts(
        &self,
        py: Python<'_>,
        rows: &GraphRows,
        leaves: Vec<TermId>,
        ops: &[TermId],
        types: &[TermId],
    ) -> PyResult<Vec<TermId>> {
        let n_leaves = leaves.len();
        let mut variables = leaves;
        let mut rest = 0..rows.ops.len();
        while !rest.is_empty() {
            let end = rest.end.min(rest.start + PART);
            let part = self.detach(py, || {
                let terms = TermsOf { leaves: &variables, ops, types };
                let rows = rows.part(rest.start..end);
                self.table.lock().intern_rows(&rows, terms, Duplicates::Fold)
            });
            rest.start = end;
            let part = part.map(|part| variables.extend(part)).map_err(to_py);
            let may_go_on = if rest.is_empty() { Ok(()) } else { py.check_signals() };
            if let Err(error) = part.and(may_go_on) {
                let computed = &variables[n_leaves..];
                self.detach(py, || self.table.lock().release_all(computed)).map_err(to_py)?;
                return Err(error);
            }
        }
        Ok(variables.split_off(n_leaves))
    }

    /// Interns the graph of `rows` whose leaves are its inputs, of these types, and constants.
    /// Also returns the terms of its leaves and of its nodes' outputs, to tell equal ones by.
    pub(crate) fn intern_graph(
        &self,
        inputs: &[u32],
        rows: &GraphRows,
        outputs: &[u32],
        terms: TermsOf<'_>,
        duplicates: Duplicates,
    ) -> Result<(Term, Vec<TermId>, Vec<TermId>)> {
        let mut leaves = Vec::with_capacity(inputs.len() + terms.leaves.len());
        let mut table = self.table.lock();
        let interned = (|| {
            for (position, &ty) in (0u32..).zip(inputs) {
                let limit = terms.types.len();
                let Some(&ty) = terms.types.get(ty as usize) else {
                    return Err(Error::OutOfRange { what: "type", id: ty.into(), limit });
                };
                leaves.push(table.input(position, ty)?);
            }
            leaves.extend(terms.leaves);
            let terms = TermsOf { leaves: &leaves, ..terms };
            table.intern_graph(rows, terms, inputs.len(), outputs, duplicates)
        })();
        table.release_all(&leaves[..leaves.len().min(inputs.len())])?;
        drop(table);
        let interned = interned?;
        Ok((self.own(interned.root), leaves, interned.computed))
    }

    /// Interns the nodes of `rows` and returns the terms of the variables `outputs`.
    pub(crate) fn intern_outputs(
        &self,
        rows: &GraphRows,
        outputs: &[u32],
        terms: TermsOf<'_>,
    ) -> Result<Vec<Term>> {
        let n_leaves = terms.leaves.len();
        let mut table = self.table.lock();
        let computed = table.intern_rows(rows, terms, Duplicates::Fold)?;
        let term_of = |&variable: &u32| {
            let variable = variable as usize;
            let id = match variable.checked_sub(n_leaves) {
                None => terms.leaves.get(variable),
                Some(output) => computed.get(output),
            };
            let limit = n_leaves + computed.len();
            id.copied().ok_or(Error::OutOfRange { what: "output", id: variable as i64, limit })
        };
        let ids: Result<Vec<TermId>> = outputs.iter().map(term_of).collect();
        let retained = ids.and_then(|ids| {
            ids.iter().try_for_each(|&id| table.retain(id))?;
            Ok(ids)
        });
        table.release_all(&computed)?;
        drop(table);
        Ok(retained?.into_iter().map(|id| self.own(id)).collect())
    }

    /// A handle got from the table, as an object.
    pub(crate) fn own(&self, id: TermId) -> Term {
        Term(self.table.own(id))
    }

    /// Ids of terms that are this table's.
    pub(crate) fn ids<'t>(&self, terms: impl Iterator<Item = &'t Term>) -> PyResult<Vec<TermId>> {
        terms.map(|term| self.id(term)).collect()
    }

    /// [`ids`](Self::ids) of a list from Python.
    pub(crate) fn ids_of(&self, terms: &[PyRef<'_, Term>]) -> PyResult<Vec<TermId>> {
        self.ids(terms.iter().map(|term| &**term))
    }

    fn id(&self, term: &Term) -> PyResult<TermId> {
        if term.0.table().is(&self.table) { Ok(term.0.id()) } else { Err(other_table()) }
    }
}
