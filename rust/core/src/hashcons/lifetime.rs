//! The lifetime of terms: handles, and the release of unused terms and memory.

use super::table::{Kind, Table, index_hash, spilled};
use super::{Slot, TermId};
use crate::error::{Error, Result};

/// A table releases memory if less than one in this many of its slots is in use.
pub(super) const SPARSE: usize = 8;

/// Smaller tables never release memory.
pub(super) const MIN_SLOTS: usize = 1 << 16;

impl Table {
    /// Adds a handle on a term.
    pub(super) fn retain(&mut self, id: TermId) -> Result<()> {
        let slot = self.slot_of(id)?;
        self.hand_out(slot);
        Ok(())
    }

    /// Gives back a handle on a term. If nothing else needs the term, it is freed with the terms
    /// that only it needed; O(terms freed) expected.
    pub(super) fn release(&mut self, id: TermId) -> Result<()> {
        let slot = self.slot_of(id)?;
        let limit = self.terms.len();
        let term = &mut self.terms[slot as usize];
        if term.handles == 0 {
            return Err(Error::NoTerm { id: id.bits(), limit });
        }
        // A count at its limit may be too low.
        if term.handles < u32::MAX {
            term.handles -= 1;
        }
        self.free_unused([slot]);
        self.step();
        Ok(())
    }

    /// Gives back one handle on each of `ids`.
    pub(super) fn release_all(&mut self, ids: &[TermId]) -> Result<()> {
        ids.iter().try_for_each(|&id| self.release(id))
    }

    /// Gives the caller a handle on a term. All other terms must have a handle or a parent already,
    /// because the table may be checked afterwards.
    pub(super) fn hand_out(&mut self, slot: Slot) -> TermId {
        let id = self.hold(slot);
        self.step();
        id
    }

    /// [`hand_out`](Self::hand_out) while other new terms may still lack handles.
    pub(super) fn hold(&mut self, slot: Slot) -> TermId {
        let handles = &mut self.terms[slot as usize].handles;
        *handles = handles.saturating_add(1);
        self.id_of(slot)
    }

    /// Frees the unused terms among `slots`, and the terms that only these needed.
    pub(super) fn free_unused(&mut self, slots: impl IntoIterator<Item = Slot>) {
        let mut dying = std::mem::take(&mut self.dying);
        for slot in slots {
            dying.push(slot);
            while let Some(slot) = dying.pop() {
                self.free_if_unused(slot, &mut dying);
            }
        }
        self.dying = dying;
        self.trim();
    }

    /// Frees the term in a slot, if there is one and nothing needs it. Its children without other
    /// parents are then added to `dying`.
    fn free_if_unused(&mut self, slot: Slot, dying: &mut Vec<Slot>) {
        let term = &mut self.terms[slot as usize];
        if term.parents > 0 || term.handles > 0 || term.kind == Kind::Free {
            return;
        }
        if term.kind != Kind::Opaque
            && let Ok(entry) = self.index.find_entry(index_hash(term), |&other| other == slot)
        {
            entry.remove();
        }
        if term.kind == Kind::Compound {
            self.contents.remove(&slot);
        }
        self.n_applies -= usize::from(term.kind == Kind::Apply);
        self.n_spilled -= spilled(term);
        term.kind = Kind::Free;
        term.digest = None;
        // This invalidates the id of the term.
        term.generation += 1;
        if term.generation < TermId::N_GENERATIONS {
            self.free.push(slot);
        } else {
            self.n_retired += 1;
        }
        let children = std::mem::take(&mut term.children);
        for &child in &children {
            let parents = &mut self.terms[child as usize].parents;
            if *parents < u32::MAX {
                *parents -= 1;
            }
            // A child may occur twice, but dies once.
            if *parents == 0 {
                dying.push(child);
            }
        }
    }

    /// Releases memory after many terms were freed; O(1) amortized over those.
    fn trim(&mut self) {
        let live = self.live();
        let sparse = self.terms.len() / SPARSE;
        if self.terms.len() <= MIN_SLOTS || live >= sparse {
            // The threshold is reset only once twice as many slots are in use: otherwise a few
            // terms that come and go would cause a search of the whole table each time.
            if self.terms.len() <= MIN_SLOTS || live >= 2 * sparse {
                self.trim_at = usize::MAX;
            }
            return;
        }
        if live > self.trim_at {
            return;
        }
        // Slots below one in use cannot be released; try again when half of the terms are gone.
        self.trim_at = live / 2;
        let stays = |term: &super::table::Term| {
            term.kind != Kind::Free || term.generation >= TermId::N_GENERATIONS
        };
        let n_slots = self.terms.iter().rposition(stays).map_or(0, |last| last + 1);
        let latest = self.terms.drain(n_slots..).map(|term| term.generation).max();
        self.first_generation = self.first_generation.max(latest.unwrap_or_default());
        self.free.retain(|&slot| (slot as usize) < n_slots);
        self.terms.shrink_to_fit();
        self.free.shrink_to_fit();
        self.contents.shrink_to_fit();
        self.index.shrink_to_fit(|&slot| index_hash(&self.terms[slot as usize]));
    }

    /// Under debug assertions the whole table is checked after 1, 2, 4, 8, ... steps.
    pub(super) fn step(&mut self) {
        #[cfg(debug_assertions)]
        {
            self.n_steps += 1;
            if self.n_steps.is_power_of_two() {
                assert_eq!(self.check(), Ok(()));
            }
        }
    }
}
