//! The table itself: terms in slots, their look-up and their creation. Callers count its handles
//! explicitly, so only [`HashConsTable`](super::HashConsTable) uses it.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{Content, Digest, Slot, Stats, TermId};
use crate::error::{Error, Result};

/// A node with one output and two inputs has four children.
pub(super) type Children = SmallVec<[Slot; 4]>;

/// The largest number of slots.
const MAX_TERMS: usize = u32::MAX as usize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Free = 0,
    Compound = 1,
    Opaque = 2,
    Input = 3,
    Apply = 4,
    Output = 5,
    Graph = 6,
}

/// A term takes 64 bytes: one cache line.
#[derive(Debug, Clone)]
pub(super) struct Term {
    pub(super) children: Children,
    /// See the table in the module's documentation; for a compound term, some bits of its content.
    pub(super) number: u32,
    /// The number of times that the term is a child of other terms.
    pub(super) parents: u32,
    pub(super) handles: u32,
    /// Distinguishes the terms that use the slot one after another.
    pub(super) generation: u32,
    /// Set by the first request.
    pub(super) digest: Option<Digest>,
    pub(super) kind: Kind,
    /// Whether the term has a digest: whether it depends on no opaque term.
    pub(super) stable: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) terms: Vec<Term>,
    pub(super) free: Vec<Slot>,
    /// Every live term but the opaque ones, by structure.
    pub(super) index: HashTable<Slot>,
    /// The contents of the compound terms.
    pub(super) contents: FxHashMap<Slot, Content>,
    pub(super) n_applies: usize,
    /// The number of children in allocations of their own.
    pub(super) n_spilled: usize,
    /// The number of empty slots that have used up their generations.
    pub(super) n_retired: usize,
    /// The generation of new slots, above those of slots that were trimmed.
    pub(super) first_generation: u32,
    pub(super) peak: usize,
    /// Memory is released when at most this many terms are left.
    pub(super) trim_at: usize,
    /// Scratch space.
    pub(super) dying: Vec<Slot>,
    #[cfg(debug_assertions)]
    pub(super) n_steps: u64,
}

impl Table {
    /// The term with this content and these children.
    ///
    /// Like every method that returns an id, it gives the caller a handle, to be returned with
    /// [`release`](Self::release). O(children) expected.
    pub(super) fn compound(&mut self, content: Content, children: &[TermId]) -> Result<TermId> {
        let children = self.slots_of(children)?;
        let slot = self.intern_compound(content, &children)?;
        Ok(self.hand_out(slot))
    }

    pub(super) fn opaque(&mut self) -> Result<TermId> {
        let slot = self.insert(Kind::Opaque, 0, &[], None)?;
        Ok(self.hand_out(slot))
    }

    pub(super) fn input(&mut self, position: u32, ty: TermId) -> Result<TermId> {
        let ty = self.slot_of(ty)?;
        let slot = self.intern(Kind::Input, position, &[ty])?;
        Ok(self.hand_out(slot))
    }

    pub(super) fn apply(
        &mut self,
        op: TermId,
        types: &[TermId],
        inputs: &[TermId],
    ) -> Result<TermId> {
        let children = self.slots_of(&[&[op], types, inputs].concat())?;
        let slot = self.intern_apply(types.len(), &children)?;
        Ok(self.hand_out(slot))
    }

    pub(super) fn output(&mut self, apply: TermId, index: u32) -> Result<TermId> {
        let slot = self.slot_of(apply)?;
        let term = self.term(slot);
        if term.kind != Kind::Apply {
            let id = apply.bits();
            return Err(Error::Inconsistent(format!("term {id} is not an apply node")));
        }
        let limit = term.number as usize;
        if index as usize >= limit {
            return Err(Error::OutOfRange { what: "output", id: index.into(), limit });
        }
        let slot = self.intern_output(slot, index)?;
        Ok(self.hand_out(slot))
    }

    pub(super) fn graph(&mut self, inputs: &[TermId], outputs: &[TermId]) -> Result<TermId> {
        let children = self.slots_of(&[inputs, outputs].concat())?;
        for (position, &slot) in children[..inputs.len()].iter().enumerate() {
            let term = self.term(slot);
            if term.kind != Kind::Input || term.number as usize != position {
                let id = inputs[position].bits();
                return Err(Error::Inconsistent(format!("term {id} is not input {position}")));
            }
        }
        let slot = self.intern(Kind::Graph, inputs.len() as u32, &children)?;
        Ok(self.hand_out(slot))
    }

    /// See [`HashConsTable::stats`](super::HashConsTable::stats).
    pub(super) fn stats(&self) -> Stats {
        Stats {
            live: self.live(),
            applies: self.n_applies,
            free: self.free.len(),
            peak: self.peak,
            bytes: self.terms.capacity() * size_of::<Term>()
                + self.free.capacity() * size_of::<Slot>()
                + self.n_spilled * size_of::<Slot>()
                + self.contents.capacity() * size_of::<(Slot, Content)>()
                + self.index.allocation_size(),
        }
    }

    pub(super) fn live(&self) -> usize {
        self.terms.len() - self.free.len() - self.n_retired
    }

    pub(super) fn reserve(&mut self, n_terms: usize) {
        self.terms.reserve(n_terms.saturating_sub(self.free.len()));
        self.index.reserve(n_terms, |&slot| index_hash(&self.terms[slot as usize]));
    }

    pub(super) fn term(&self, slot: Slot) -> &Term {
        &self.terms[slot as usize]
    }

    /// The id of the live term in `slot`.
    pub(super) fn id_of(&self, slot: Slot) -> TermId {
        TermId { generation: self.term(slot).generation, slot }
    }

    /// The slot of the term `id`, if it is live.
    pub(super) fn slot_of(&self, id: TermId) -> Result<Slot> {
        match self.terms.get(id.slot as usize) {
            Some(term) if term.kind != Kind::Free && term.generation == id.generation => {
                Ok(id.slot)
            }
            _ => Err(Error::NoTerm { id: id.bits(), limit: self.terms.len() }),
        }
    }

    /// The slots of terms, if all are live.
    pub(super) fn slots_of(&self, ids: &[TermId]) -> Result<Vec<Slot>> {
        ids.iter().map(|&id| self.slot_of(id)).collect()
    }

    pub(super) fn intern_compound(&mut self, content: Content, children: &[Slot]) -> Result<Slot> {
        let number = content.low();
        let hash = structure_hash(Kind::Compound, number, children);
        let found = self.index.find(hash, |&slot| {
            let term = &self.terms[slot as usize];
            term.kind == Kind::Compound
                && term.children[..] == *children
                && self.contents.get(&slot) == Some(&content)
        });
        if let Some(&slot) = found {
            return Ok(slot);
        }
        let slot = self.insert(Kind::Compound, number, children, Some(hash))?;
        self.contents.insert(slot, content);
        Ok(slot)
    }

    pub(super) fn intern_apply(&mut self, n_types: usize, children: &[Slot]) -> Result<Slot> {
        if n_types == 0 {
            return Err(Error::Inconsistent("an apply node has no outputs".into()));
        }
        self.intern(Kind::Apply, n_types as u32, children)
    }

    pub(super) fn intern_output(&mut self, apply: Slot, index: u32) -> Result<Slot> {
        if self.term(apply).number == 1 {
            return Ok(apply);
        }
        self.intern(Kind::Output, index, &[apply])
    }

    /// The term of this structure, whose children are live. Not for compound terms.
    pub(super) fn intern(&mut self, kind: Kind, number: u32, children: &[Slot]) -> Result<Slot> {
        let hash = structure_hash(kind, number, children);
        let found = self.index.find(hash, |&slot| {
            let term = &self.terms[slot as usize];
            term.children[..] == *children && term.kind == kind && term.number == number
        });
        match found {
            Some(&slot) => Ok(slot),
            None => self.insert(kind, number, children, Some(hash)),
        }
    }

    /// Adds a new term, without parents or handles yet.
    fn insert(
        &mut self,
        kind: Kind,
        number: u32,
        children: &[Slot],
        hash: Option<u64>,
    ) -> Result<Slot> {
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
        let mut term = Term {
            children: Children::from_slice(children),
            number,
            parents: 0,
            handles: 0,
            generation: self.first_generation,
            digest: None,
            kind,
            stable,
        };
        self.n_spilled += spilled(&term);
        self.n_applies += usize::from(kind == Kind::Apply);
        let slot = match self.free.pop() {
            Some(slot) => {
                let place = &mut self.terms[slot as usize];
                term.generation = place.generation;
                *place = term;
                slot
            }
            None => {
                self.terms.push(term);
                (self.terms.len() - 1) as Slot
            }
        };
        if let Some(hash) = hash {
            self.index.insert_unique(hash, slot, |&slot| index_hash(&self.terms[slot as usize]));
        }
        self.peak = self.peak.max(self.live());
        Ok(slot)
    }
}

pub(super) fn spilled(term: &Term) -> usize {
    if term.children.spilled() { term.children.len() } else { 0 }
}

/// The hash of `term` in the index.
pub(super) fn index_hash(term: &Term) -> u64 {
    structure_hash(term.kind, term.number, &term.children)
}

pub(super) fn structure_hash(kind: Kind, number: u32, children: &[Slot]) -> u64 {
    let mut hasher = FixedState::default().build_hasher();
    hasher.write_u64((kind as u64) << 32 | u64::from(number));
    for &child in children {
        hasher.write_u32(child);
    }
    hasher.finish()
}
