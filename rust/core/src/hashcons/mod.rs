//! A hash-cons table: every structure once, under one id.
//!
//! # Problem
//! "Are these two graphs the same?" costs a walk over both if each is a structure of its own. If
//! instead every node is looked up by what it is made of before it is made, equal nodes are one
//! node, bottom up, and two graphs are equal exactly when their roots are the same id.
//!
//! # Terms
//! What the table holds are *terms*, each identified by its kind, a number, and its children:
//!
//! | kind | number | children | identified by |
//! |---|---|---|---|
//! | compound | | any | its content (bytes) and children: an op, a type, a constant |
//! | opaque | | | itself alone: something without a value that could be compared |
//! | input | position | its type | |
//! | apply | output types | op, output types, inputs | |
//! | output | index | the apply term | an apply term with one output stands for that output |
//! | graph | inputs | inputs, outputs | |
//!
//! Children are interned before their parents, so that terms form an acyclic graph and equality of
//! children is equality of ids.
//!
//! # Digests
//! A term's [`Digest`] is computed from those of its children when it is interned. Ids are an
//! accident of the process; digests are not, except below an opaque term, where there is none.
//! Nodes are still found by their children's ids, which is exact; only the contents of compound
//! terms are told apart by a hash.
//!
//! # Lifetime
//! A term lives as long as a parent or a handle needs it. Handles are counted apart from parents,
//! so that a caller who gives one back twice gets an error and breaks nothing. Ids are used again.
//! A count that reaches its limit stays there: the term is never freed, which is safe.
//!
//! # Rejected
//! - Weak references to nodes that are objects of their own (as PyTensor's frozen nodes are): each
//!   costs an allocation, a key that holds its parts, and a callback when it dies.
//! - A table that only grows (as compilers use for one run): processes that compile for days do
//!   not end.
//! - Looking nodes up by digest: it would have to be computed also for the nodes that are there,
//!   most of them.
//!
//! # Source
//! A. P. Ershov, "On programming of arithmetic operations", CACM 1(8), 1958 (value numbering by
//! hashing); E. Goto, "Monocopy and associative algorithms in an extended Lisp", TR 74-03,
//! University of Tokyo, 1974 (hash-consing); J.-C. Filliâtre and S. Conchon, "Type-safe modular
//! hash-consing", ML Workshop 2006.
//!
//! # Example
//! ```
//! use pytensor_fuse_core::hashcons::{Content, HashConsTable};
//!
//! let mut table = HashConsTable::new();
//! let double = table.compound(Content::of(b"float64"), &[])?;
//! let exp = table.compound(Content::of(b"exp"), &[])?;
//! let x = table.input(0, double)?;
//! let once = table.apply(exp, &[double], &[x])?;
//! let again = table.apply(exp, &[double], &[x])?;
//! assert_eq!(once, again);
//! for id in [double, exp, x, once, again] {
//!     table.release(id)?;
//! }
//! assert_eq!(table.stats().live, 0);
//! # Ok::<(), pytensor_fuse_core::Error>(())
//! ```

mod batch;
mod check;
mod digest;
mod shared;
#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use smallvec::SmallVec;

pub use batch::{Duplicates, GraphRows, InternedGraph, TermsOf};
pub use digest::{Content, Digest};
pub use shared::{Handle, SharedTable};

use crate::error::{Error, Result};

/// Terms are dense ids; those of freed terms are used again.
pub type TermId = u32;

/// An op with one output has four with two inputs.
type Children = SmallVec<[TermId; 4]>;

/// Ids that there can be.
const MAX_TERMS: usize = u32::MAX as usize;

/// A table that holds fewer terms than one in this many of its slots gives memory back.
const SPARSE: usize = 8;

/// Smaller tables are not worth the effort.
const MIN_SLOTS: usize = 1 << 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Free = 0,
    Compound = 1,
    Opaque = 2,
    Input = 3,
    Apply = 4,
    Output = 5,
    Graph = 6,
}

#[derive(Debug, Clone)]
struct Term {
    digest: Digest,
    children: Children,
    /// See the table in the module's documentation.
    number: u32,
    /// Times that other terms have it as a child.
    parents: u32,
    handles: u32,
    kind: Kind,
    /// Whether the digest means the same in every process.
    stable: bool,
}

/// What a table holds. See [`HashConsTable::stats`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Terms.
    pub live: usize,
    /// Terms among them that are applications of an op.
    pub applies: usize,
    /// Ids that wait to be used again.
    pub free: usize,
    /// The most terms there have been at once.
    pub peak: usize,
    /// Bytes allocated, as the allocator was asked for them.
    pub bytes: usize,
}

/// See the module.
#[derive(Debug, Default)]
pub struct HashConsTable {
    terms: Vec<Term>,
    free: Vec<TermId>,
    /// Every live term but the opaque ones, by structure.
    index: HashTable<TermId>,
    n_applies: usize,
    /// Children that are not inside their terms.
    n_spilled: usize,
    n_opaque_made: u64,
    peak: usize,
    /// Memory is given back when no more terms than this are left.
    trim_at: usize,
    /// Scratch space.
    parts: Vec<u8>,
    dying: Vec<TermId>,
    #[cfg(debug_assertions)]
    n_steps: u64,
}

impl HashConsTable {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The term with this content and these children.
    ///
    /// As every method that returns a term, it gives the caller a handle on it, to be given back
    /// with [`release`](Self::release). O(children) expected.
    ///
    /// # Errors
    /// [`Error::NoTerm`] names a child that is not in the table; [`Error::TooLarge`] if ids have
    /// run out.
    pub fn compound(&mut self, content: Content, children: &[TermId]) -> Result<TermId> {
        self.check_terms(children)?;
        let mut parts = content.0.to_vec();
        parts.extend(children.iter().flat_map(|&id| *self.term(id).digest.as_bytes()));
        let digest = Digest::of(Kind::Compound as u8, 0, &parts);
        let hash = digest.low();
        let found = self.index.find(hash, |&id| {
            let term = &self.terms[id as usize];
            term.kind == Kind::Compound && term.digest == digest
        });
        let id = match found {
            Some(&id) => id,
            None => self.insert(Kind::Compound, 0, children, digest, Some(hash))?,
        };
        Ok(self.hand_out(id))
    }

    /// A term unlike any other; it has no stable digest, nor has any term above it.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if ids have run out.
    pub fn opaque(&mut self) -> Result<TermId> {
        self.n_opaque_made += 1;
        // Terms above it that differ must have different digests, hence so must opaque terms.
        let digest = Digest::of(Kind::Opaque as u8, 0, &self.n_opaque_made.to_le_bytes());
        let id = self.insert(Kind::Opaque, 0, &[], digest, None)?;
        Ok(self.hand_out(id))
    }

    /// The input of a graph at `position`, of type `ty`.
    ///
    /// # Errors
    /// As [`compound`](Self::compound).
    pub fn input(&mut self, position: u32, ty: TermId) -> Result<TermId> {
        self.check_terms(&[ty])?;
        let id = self.intern(Kind::Input, position, &[ty])?;
        Ok(self.hand_out(id))
    }

    /// `op` applied to `inputs`, with results of the given types.
    ///
    /// # Errors
    /// As [`compound`](Self::compound); [`Error::Inconsistent`] if there are no results.
    pub fn apply(&mut self, op: TermId, types: &[TermId], inputs: &[TermId]) -> Result<TermId> {
        let children: Vec<TermId> = [&[op], types, inputs].concat();
        self.check_terms(&children)?;
        let id = self.intern_apply(types.len(), &children)?;
        Ok(self.hand_out(id))
    }

    /// Result `index` of the apply term `apply`, which is that term itself if it has but one.
    ///
    /// # Errors
    /// As [`compound`](Self::compound); [`Error::Inconsistent`] if `apply` is another kind of
    /// term; [`Error::OutOfRange`] if it has no such result.
    pub fn output(&mut self, apply: TermId, index: u32) -> Result<TermId> {
        self.check_terms(&[apply])?;
        let term = self.term(apply);
        if term.kind != Kind::Apply {
            return Err(Error::Inconsistent(format!("term {apply} is not an apply node")));
        }
        let limit = term.number as usize;
        if index as usize >= limit {
            return Err(Error::OutOfRange { what: "output", id: index.into(), limit });
        }
        let id = self.intern_output(apply, index)?;
        Ok(self.hand_out(id))
    }

    /// The graph that computes `outputs` from `inputs`.
    ///
    /// # Errors
    /// As [`compound`](Self::compound); [`Error::Inconsistent`] if an input is not
    /// [`input`](Self::input) of its position.
    pub fn graph(&mut self, inputs: &[TermId], outputs: &[TermId]) -> Result<TermId> {
        let children = [inputs, outputs].concat();
        self.check_terms(&children)?;
        for (position, &id) in inputs.iter().enumerate() {
            let term = self.term(id);
            if term.kind != Kind::Input || term.number as usize != position {
                return Err(Error::Inconsistent(format!("term {id} is not input {position}")));
            }
        }
        let id = self.intern(Kind::Graph, inputs.len() as u32, &children)?;
        Ok(self.hand_out(id))
    }

    /// One more handle on a term.
    ///
    /// # Errors
    /// [`Error::NoTerm`] if it is not in the table.
    pub fn retain(&mut self, id: TermId) -> Result<()> {
        self.check_terms(&[id])?;
        self.hand_out(id);
        Ok(())
    }

    /// Gives a handle on a term back. The term is freed if nothing else needs it, and then what it
    /// alone needed; O(terms freed) expected.
    ///
    /// # Errors
    /// [`Error::NoTerm`] if there is no such term, or no handle on it.
    pub fn release(&mut self, id: TermId) -> Result<()> {
        self.check_terms(&[id])?;
        let limit = self.terms.len();
        let term = &mut self.terms[id as usize];
        if term.handles == 0 {
            return Err(Error::NoTerm { id, limit });
        }
        // A count at its limit has lost track.
        if term.handles < u32::MAX {
            term.handles -= 1;
        }
        self.free_if_unused(id);
        self.trim();
        self.step();
        Ok(())
    }

    /// The structural digest of a term, or none if there is an opaque term below it.
    ///
    /// # Errors
    /// [`Error::NoTerm`] if it is not in the table.
    pub fn digest(&self, id: TermId) -> Result<Option<Digest>> {
        self.check_terms(&[id])?;
        let term = self.term(id);
        Ok(term.stable.then_some(term.digest))
    }

    /// What the table holds. O(1).
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            live: self.live(),
            applies: self.n_applies,
            free: self.free.len(),
            peak: self.peak,
            bytes: self.terms.capacity() * size_of::<Term>()
                + self.free.capacity() * size_of::<TermId>()
                + self.n_spilled * size_of::<TermId>()
                + self.index.allocation_size(),
        }
    }

    fn live(&self) -> usize {
        self.terms.len() - self.free.len()
    }

    fn reserve(&mut self, n_terms: usize) {
        self.terms.reserve(n_terms.saturating_sub(self.free.len()));
        self.index.reserve(n_terms, |&id| index_hash(&self.terms[id as usize]));
    }

    fn term(&self, id: TermId) -> &Term {
        &self.terms[id as usize]
    }

    /// A predicate on arguments: all of `ids` are live terms.
    fn check_terms(&self, ids: &[TermId]) -> Result<()> {
        let is_live =
            |id: TermId| self.terms.get(id as usize).is_some_and(|term| term.kind != Kind::Free);
        match ids.iter().find(|&&id| !is_live(id)) {
            None => Ok(()),
            Some(&id) => Err(Error::NoTerm { id, limit: self.terms.len() }),
        }
    }

    fn hand_out(&mut self, id: TermId) -> TermId {
        let handles = &mut self.terms[id as usize].handles;
        *handles = handles.saturating_add(1);
        self.step();
        id
    }

    fn intern_apply(&mut self, n_types: usize, children: &[TermId]) -> Result<TermId> {
        if n_types == 0 {
            return Err(Error::Inconsistent("an apply node has no outputs".into()));
        }
        self.intern(Kind::Apply, n_types as u32, children)
    }

    fn intern_output(&mut self, apply: TermId, index: u32) -> Result<TermId> {
        if self.term(apply).number == 1 {
            return Ok(apply);
        }
        self.intern(Kind::Output, index, &[apply])
    }

    /// The term of this structure, whose children are live.
    fn intern(&mut self, kind: Kind, number: u32, children: &[TermId]) -> Result<TermId> {
        let hash = structure_hash(kind, number, children);
        let found = self.index.find(hash, |&id| {
            let term = &self.terms[id as usize];
            term.children[..] == *children && term.kind == kind && term.number == number
        });
        if let Some(&id) = found {
            return Ok(id);
        }
        let mut parts = std::mem::take(&mut self.parts);
        parts.clear();
        for &child in children {
            parts.extend_from_slice(self.term(child).digest.as_bytes());
        }
        let digest = Digest::of(kind as u8, number, &parts);
        self.parts = parts;
        self.insert(kind, number, children, digest, Some(hash))
    }

    /// Adds a term that is not there, without parents or handles yet.
    fn insert(
        &mut self,
        kind: Kind,
        number: u32,
        children: &[TermId],
        digest: Digest,
        hash: Option<u64>,
    ) -> Result<TermId> {
        if self.free.is_empty() && self.terms.len() >= MAX_TERMS {
            let (what, count) = ("the hash-cons table", self.terms.len() + 1);
            return Err(Error::TooLarge { what, count, limit: MAX_TERMS });
        }
        let mut stable = kind != Kind::Opaque;
        for &child in children {
            let child = &mut self.terms[child as usize];
            child.parents = child.parents.saturating_add(1);
            stable &= child.stable;
        }
        let children = Children::from_slice(children);
        let term = Term { digest, children, number, parents: 0, handles: 0, kind, stable };
        self.n_spilled += spilled(&term);
        self.n_applies += usize::from(kind == Kind::Apply);
        let id = match self.free.pop() {
            Some(id) => {
                self.terms[id as usize] = term;
                id
            }
            None => {
                self.terms.push(term);
                (self.terms.len() - 1) as TermId
            }
        };
        if let Some(hash) = hash {
            self.index.insert_unique(hash, id, |&id| index_hash(&self.terms[id as usize]));
        }
        self.peak = self.peak.max(self.live());
        Ok(id)
    }

    fn free_if_unused(&mut self, id: TermId) {
        let mut dying = std::mem::take(&mut self.dying);
        dying.push(id);
        while let Some(id) = dying.pop() {
            let term = &mut self.terms[id as usize];
            if term.parents > 0 || term.handles > 0 {
                continue;
            }
            if term.kind != Kind::Opaque
                && let Ok(entry) = self.index.find_entry(index_hash(term), |&other| other == id)
            {
                entry.remove();
            }
            self.n_applies -= usize::from(term.kind == Kind::Apply);
            term.kind = Kind::Free;
            self.n_spilled -= spilled(term);
            let children = std::mem::take(&mut term.children);
            self.free.push(id);
            for &child in &children {
                let parents = &mut self.terms[child as usize].parents;
                if *parents < u32::MAX {
                    *parents -= 1;
                }
                // Not each time: a child may be there twice, and it dies once.
                if *parents == 0 {
                    dying.push(child);
                }
            }
        }
        self.dying = dying;
    }

    /// Gives memory back after many terms were freed; O(1) amortized over those.
    fn trim(&mut self) {
        let live = self.live();
        let sparse = self.terms.len() / SPARSE;
        if self.terms.len() <= MIN_SLOTS || live >= sparse {
            // Not before twice as many are in use: else a few that come and go would have it search
            // the whole table each time.
            if self.terms.len() <= MIN_SLOTS || live >= 2 * sparse {
                self.trim_at = usize::MAX;
            }
            return;
        }
        if live > self.trim_at {
            return;
        }
        // Slots above one that is in use must wait for it; try again when half of these are gone.
        self.trim_at = live / 2;
        let used = self.terms.iter().rposition(|term| term.kind != Kind::Free);
        self.terms.truncate(used.map_or(0, |last| last + 1));
        let n_slots = self.terms.len();
        self.free.retain(|&id| (id as usize) < n_slots);
        self.terms.shrink_to_fit();
        self.free.shrink_to_fit();
        self.index.shrink_to_fit(|&id| index_hash(&self.terms[id as usize]));
    }

    /// Under debug assertions the whole table is checked after 1, 2, 4, 8, ... steps.
    fn step(&mut self) {
        #[cfg(debug_assertions)]
        {
            self.n_steps += 1;
            if self.n_steps.is_power_of_two() {
                assert_eq!(self.check(), Ok(()));
            }
        }
    }
}

fn spilled(term: &Term) -> usize {
    if term.children.spilled() { term.children.len() } else { 0 }
}

/// Where the index keeps `term`.
fn index_hash(term: &Term) -> u64 {
    match term.kind {
        // Its content is known by its digest alone.
        Kind::Compound => term.digest.low(),
        _ => structure_hash(term.kind, term.number, &term.children),
    }
}

fn structure_hash(kind: Kind, number: u32, children: &[TermId]) -> u64 {
    let mut hasher = FixedState::default().build_hasher();
    hasher.write_u64((kind as u64) << 32 | u64::from(number));
    for &child in children {
        hasher.write_u32(child);
    }
    hasher.finish()
}
