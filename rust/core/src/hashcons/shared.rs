//! A table for several threads, with handles that release their terms when dropped.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::table::Table;
use super::{Content, Digest, Duplicates, GraphRows, Stats, TermId, TermsOf};
use crate::error::Result;

/// Number of digests that are computed while the table is locked, in some milliseconds.
const PART: usize = 1 << 16;

/// See the module's documentation. Clones share the table, also between threads.
///
/// Children are given by their ids, while handles keep them in the table; an id whose term is gone
/// is refused with [`Error::NoTerm`](crate::Error::NoTerm). An id of another table may be an id of
/// this one, too; compare [`Handle::table`].
#[derive(Debug, Clone, Default)]
pub struct HashConsTable(Arc<Mutex<Table>>);

/// A handle on a term of a [`HashConsTable`], released when it is dropped.
///
/// Two handles are equal if they are on the same term of the same table.
#[derive(Debug)]
pub struct Handle {
    table: HashConsTable,
    id: TermId,
}

/// One handle on each of many terms, released together.
#[derive(Debug)]
pub struct Handles {
    table: HashConsTable,
    ids: Vec<TermId>,
}

/// A graph in the table. See [`HashConsTable::intern_graph`].
#[derive(Debug)]
pub struct InternedGraph {
    /// The graph term.
    pub root: Handle,
    /// The term of each variable of the graph. These terms have no handles, so those that the graph
    /// does not need may be gone.
    pub variables: Vec<TermId>,
}

impl HashConsTable {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Locks the table. While it is locked, the same thread must not drop a handle on it.
    fn lock(&self) -> MutexGuard<'_, Table> {
        // A panic can only happen between two changes of the table, never in the middle of one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wraps a handle on `id` that the table has given to the caller.
    fn own(&self, id: TermId) -> Handle {
        Handle { table: self.clone(), id }
    }

    /// The term with this content and these children. O(children) expected.
    ///
    /// # Errors
    /// [`Error::NoTerm`](crate::Error::NoTerm) names a child that is not in the table;
    /// [`Error::TooLarge`](crate::Error::TooLarge) if slots have run out.
    pub fn compound(&self, content: Content, children: &[TermId]) -> Result<Handle> {
        let id = self.lock().compound(content, children)?;
        Ok(self.own(id))
    }

    /// The terms with these contents and no children.
    ///
    /// # Errors
    /// As [`compound`](Self::compound); the table is then unchanged.
    pub fn symbols(&self, contents: &[Content]) -> Result<Handles> {
        let ids = self.lock().symbols(contents)?;
        Ok(Handles { table: self.clone(), ids })
    }

    /// A new term that is equal only to itself. Neither it nor any term above it has a digest.
    ///
    /// # Errors
    /// [`Error::TooLarge`](crate::Error::TooLarge) if slots have run out.
    pub fn opaque(&self) -> Result<Handle> {
        let id = self.lock().opaque()?;
        Ok(self.own(id))
    }

    /// The input of a graph at `position`, of type `ty`.
    ///
    /// # Errors
    /// As [`compound`](Self::compound).
    pub fn input(&self, position: u32, ty: TermId) -> Result<Handle> {
        let id = self.lock().input(position, ty)?;
        Ok(self.own(id))
    }

    /// `op` applied to `inputs`, with results of the given types.
    ///
    /// # Errors
    /// As [`compound`](Self::compound); [`Error::Inconsistent`](crate::Error::Inconsistent) if there
    /// are no results.
    pub fn apply(&self, op: TermId, types: &[TermId], inputs: &[TermId]) -> Result<Handle> {
        let id = self.lock().apply(op, types, inputs)?;
        Ok(self.own(id))
    }

    /// Result `index` of the apply term `apply`; the apply term itself if it has a single result.
    ///
    /// # Errors
    /// As [`compound`](Self::compound); [`Error::Inconsistent`](crate::Error::Inconsistent) if
    /// `apply` is another kind of term; [`Error::OutOfRange`](crate::Error::OutOfRange) if it has no
    /// such result.
    pub fn output(&self, apply: TermId, index: u32) -> Result<Handle> {
        let id = self.lock().output(apply, index)?;
        Ok(self.own(id))
    }

    /// The graph that computes `outputs` from `inputs`.
    ///
    /// # Errors
    /// As [`compound`](Self::compound); [`Error::Inconsistent`](crate::Error::Inconsistent) if an
    /// input is not [`input`](Self::input) of its position.
    pub fn graph(&self, inputs: &[TermId], outputs: &[TermId]) -> Result<Handle> {
        let id = self.lock().graph(inputs, outputs)?;
        Ok(self.own(id))
    }

    /// Interns the nodes of a graph, and returns handles on the term of every output of every node,
    /// in the order of the variables. O(size of the rows) expected.
    ///
    /// # Errors
    /// As [`GraphRows::check`]; [`Error::NoTerm`](crate::Error::NoTerm) names a term that is not in
    /// the table; [`Error::TooLarge`](crate::Error::TooLarge) if slots have run out. The table is
    /// then unchanged.
    pub fn intern_rows(
        &self,
        rows: &GraphRows,
        terms: TermsOf<'_>,
        duplicates: Duplicates,
    ) -> Result<Handles> {
        let ids = self.lock().intern_rows(rows, terms, duplicates)?;
        Ok(Handles { table: self.clone(), ids })
    }

    /// Interns the nodes of a graph, and returns handles on the terms of its variables `outputs`.
    ///
    /// # Errors
    /// As [`intern_rows`](Self::intern_rows); [`Error::OutOfRange`](crate::Error::OutOfRange) names
    /// an output that is no variable.
    pub fn intern_outputs(
        &self,
        rows: &GraphRows,
        terms: TermsOf<'_>,
        outputs: &[u32],
    ) -> Result<Vec<Handle>> {
        let ids = self.lock().intern_outputs(rows, terms, outputs)?;
        Ok(ids.into_iter().map(|id| self.own(id)).collect())
    }

    /// Interns a graph.
    ///
    /// # Arguments
    /// * `inputs`: the type of each input of the graph, an index into the type terms.
    /// * `rows`: the nodes of the graph. The first leaves are the inputs.
    /// * `terms`: the terms that the rows refer to. The leaves are those after the inputs.
    /// * `outputs`: the outputs of the graph.
    ///
    /// # Errors
    /// As [`intern_outputs`](Self::intern_outputs).
    pub fn intern_graph(
        &self,
        inputs: &[u32],
        rows: &GraphRows,
        terms: TermsOf<'_>,
        outputs: &[u32],
        duplicates: Duplicates,
    ) -> Result<InternedGraph> {
        let interned = self.lock().intern_graph(inputs, rows, terms, outputs, duplicates);
        let (root, variables) = interned?;
        Ok(InternedGraph { root: self.own(root), variables })
    }

    /// A new handle on the term with this id.
    ///
    /// # Errors
    /// [`Error::NoTerm`](crate::Error::NoTerm) if it is not in the table.
    pub fn handle(&self, id: TermId) -> Result<Handle> {
        self.lock().retain(id)?;
        Ok(self.own(id))
    }

    /// The structural digest of a term; see [`Handle::digest`].
    ///
    /// # Errors
    /// As [`handle`](Self::handle).
    pub fn digest(&self, id: TermId) -> Result<Option<Digest>> {
        Ok(self.handle(id)?.digest())
    }

    /// The counts of the table. O(1).
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.lock().stats()
    }

    /// Checks every invariant of the table. O(its size).
    ///
    /// # Errors
    /// [`Error::Inconsistent`](crate::Error::Inconsistent) names the violated invariant and its
    /// place; a violation is a bug.
    pub fn check(&self) -> Result<()> {
        self.lock().check()
    }

    /// Whether `other` is this table, not another with equal terms.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Handle {
    /// The id of the term.
    #[must_use]
    pub fn id(&self) -> TermId {
        self.id
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &HashConsTable {
        &self.table
    }

    /// Whether the term has a digest: no opaque term is below it. O(1).
    #[must_use]
    pub fn has_digest(&self) -> bool {
        self.table.lock().term(self.id.slot).stable
    }

    /// The structural digest of the term, or none if it depends on an opaque term. O(terms below it
    /// without a known digest + their children).
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        let Ok(digest) = self.digest_asking(|| Ok::<_, Infallible>(()));
        digest
    }

    /// [`digest`](Self::digest) in parts: the table is locked for some milliseconds at a time, and
    /// `may_go_on` can end the work between two parts.
    ///
    /// # Errors
    /// Those of `may_go_on`.
    pub fn digest_asking<E>(
        &self,
        mut may_go_on: impl FnMut() -> std::result::Result<(), E>,
    ) -> std::result::Result<Option<Digest>, E> {
        let slot = self.id.slot;
        let mut pending = if self.has_digest() { vec![slot] } else { Vec::new() };
        while self.table.lock().compute_digests(&mut pending, PART) {
            may_go_on()?;
        }
        Ok(self.table.lock().term(slot).digest)
    }
}

impl Handles {
    /// The ids of the terms.
    #[must_use]
    pub fn ids(&self) -> &[TermId] {
        &self.ids
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &HashConsTable {
        &self.table
    }

    /// Takes over the handles of `others`, which are on terms of the same table.
    ///
    /// # Errors
    /// [`Error::Inconsistent`](crate::Error::Inconsistent) if they are not.
    pub fn append(&mut self, mut others: Self) -> Result<()> {
        if !self.table.is(&others.table) {
            return Err(crate::Error::Inconsistent("handles on terms of two tables".into()));
        }
        self.ids.append(&mut others.ids);
        Ok(())
    }
}

impl PartialEq for Handle {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.table.is(&other.table)
    }
}

impl Eq for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        let released = self.table.lock().release(self.id);
        debug_assert!(released.is_ok(), "a handle is given back once");
    }
}

impl Drop for Handles {
    fn drop(&mut self) {
        let released = self.table.lock().release_all(&self.ids);
        debug_assert!(released.is_ok(), "a handle is given back once");
    }
}
