//! A hash-cons table, which stores each structure once, under one id.
//!
//! # Problem
//! Comparing two separate graphs takes a walk over both. If instead each node is looked up by its op
//! and inputs before it is made, equal nodes are one node, bottom up, and two graphs are equal if and
//! only if their roots have the same id.
//!
//! # Terms
//! The table stores *terms*, each identified by its kind, a number, and its children:
//!
//! | kind | number | children | identified by |
//! |---|---|---|---|
//! | compound | | any | its content (bytes) and children: an op, a type, a constant |
//! | opaque | | | its identity: an object without a comparable value |
//! | input | position | its type | |
//! | apply | output types | op, output types, inputs | |
//! | output | index | the apply term | an apply term with one output stands for that output |
//! | graph | inputs | inputs, outputs | |
//!
//! Children are interned before their parents, so that terms form an acyclic graph and equality of
//! children is equality of ids.
//!
//! # Digests
//! A term's [`Digest`] is computed from those of its children on the first request, and cached. Unlike
//! ids, digests are the same in every process; a term that depends on an opaque one has none. Terms are
//! found by the ids of their children, which is exact; only contents of compound terms are compared by
//! hash.
//!
//! # Lifetime
//! A term lives as long as a parent or a handle needs it. A [`Handle`] releases its term when it is
//! dropped, so that no term is released twice. A [`TermId`] is a number and keeps nothing alive; it is
//! never reused, since the next term in the slot of a freed one gets another generation. An id whose
//! term is gone is refused. Counts that reach their limit stay there: such a term is never freed, and
//! such a slot never reused.
//!
//! # Rejected
//! - Weak references to nodes that are separate objects (as in PyTensor's frozen nodes): each costs an
//!   allocation, a key that holds its parts, and a callback when it dies.
//! - A table that only grows (as compilers use for one run): a process may compile for days.
//! - Look-ups by digest: the digests of nodes that are already known, most of them, would have to be
//!   computed, too.
//! - Digests of all terms when they are made: most are never requested, and they took more than half of
//!   the time of interning a graph.
//! - Ids without generations, and an explicit `release`: a second release by mistake freed a term that
//!   was in use, and the next term in its slot was equal to it.
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
//! let table = HashConsTable::new();
//! let double = table.compound(Content::of(b"float64"), &[])?;
//! let exp = table.compound(Content::of(b"exp"), &[])?;
//! let x = table.input(0, double.id())?;
//! let once = table.apply(exp.id(), &[double.id()], &[x.id()])?;
//! let again = table.apply(exp.id(), &[double.id()], &[x.id()])?;
//! assert_eq!(once, again);
//! let id = once.id();
//! drop((double, exp, x, once, again));
//! assert_eq!(table.stats().live, 0);
//! assert!(table.digest(id).is_err());
//! # Ok::<(), pytensor_fuse_core::Error>(())
//! ```

mod batch;
mod check;
mod digest;
mod lifetime;
mod shared;
mod table;
#[cfg(test)]
mod tests;

pub use batch::{Duplicates, GraphRows, TermsOf};
pub use digest::{Content, Digest};
pub use shared::{Handle, Handles, HashConsTable, InternedGraph};

/// The place of a term in the table: a dense id, reused after the term is freed.
type Slot = u32;

/// The id of a term, unique in its table and never reused.
///
/// It is a number, and does not keep the term alive. Terms of different tables may have the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TermId {
    generation: u32,
    slot: Slot,
}

impl TermId {
    /// Generations stay below this, so that ids fit the positive half of 64 bits.
    const N_GENERATIONS: u32 = i32::MAX as u32;

    /// The id as a number below 2⁶³.
    #[must_use]
    pub fn bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.slot)
    }

    /// The id that has these [`bits`](Self::bits), whether or not a term has it.
    #[must_use]
    pub fn from_bits(bits: u64) -> Self {
        Self { generation: (bits >> 32) as u32, slot: bits as u32 }
    }
}

/// The counts of a table. See [`HashConsTable::stats`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Terms.
    pub live: usize,
    /// Terms among them that are applications of an op.
    pub applies: usize,
    /// Slots that can be reused.
    pub free: usize,
    /// The largest number of terms at one time.
    pub peak: usize,
    /// Bytes requested from the allocator.
    pub bytes: usize,
}
