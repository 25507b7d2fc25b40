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
//! A term's [`Digest`] is computed from those of its children when it is first asked for, and kept.
//! Ids are an accident of the process; digests are not, except above an opaque term, where there is
//! none. Terms are found by their children's ids, which is exact; only the contents of compound
//! terms are told apart by a hash.
//!
//! # Lifetime
//! A term lives as long as a parent or a handle needs it. A [`Handle`] is an object, which gives
//! itself back when it is dropped: nobody can give back what is not his. A [`TermId`] is a number
//! and keeps nothing alive; it names one term for good, for a slot whose term has been freed goes
//! to the next one under another generation. An id whose term is gone is refused. Counts that reach
//! their limit stay there: such a term is never freed, and such a slot never used again.
//!
//! # Rejected
//! - Weak references to nodes that are objects of their own (as PyTensor's frozen nodes are): each
//!   costs an allocation, a key that holds its parts, and a callback when it dies.
//! - A table that only grows (as compilers use for one run): processes that compile for days do
//!   not end.
//! - Looking nodes up by digest: it would have to be computed also for the nodes that are there,
//!   most of them.
//! - Digests of all terms as they are made: most are never asked for, and computing them took more
//!   than half of the time of interning a graph.
//! - Ids that are slots alone, given back by whoever says so: a second `release` by mistake took the
//!   term of somebody else, and the next one in its place was equal to it.
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

/// Where the table keeps a term: a dense id, used again once the term is gone.
type Slot = u32;

/// The name of a term, which no other term of its table ever has.
///
/// It is a number, and keeps no term alive. Terms of different tables may have the same.
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

/// What a table holds. See [`HashConsTable::stats`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Terms.
    pub live: usize,
    /// Terms among them that are applications of an op.
    pub applies: usize,
    /// Slots that wait to be used again.
    pub free: usize,
    /// The most terms there have been at once.
    pub peak: usize,
    /// Bytes allocated, as the allocator was asked for them.
    pub bytes: usize,
}
