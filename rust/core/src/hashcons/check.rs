//! Checks of the table's invariants, which rebuild the data that the table maintains.

use rustc_hash::{FxHashMap, FxHashSet};

use super::table::{Kind, Table, Term, index_hash, spilled};
use super::{Content, Slot, TermId};
use crate::error::{Error, Result};

/// The structure of a term, which distinguishes it: all but its slot, its counts and its digest.
type Structure<'a> = (Kind, u32, &'a [Slot], Option<&'a Content>);

impl Table {
    /// Checks every invariant. O(size of the table).
    ///
    /// - No two terms have the same structure, and the index finds each term, and nothing else.
    /// - Children are in the table; terms form no cycle.
    /// - Counts of parents are right, and each term has a parent or a handle.
    /// - Compound terms have a content, and others none.
    /// - Known digests, and whether they are stable, follow from those of the children, which are
    ///   also known.
    /// - Each slot is either in use, free or retired.
    ///
    /// # Errors
    /// [`Error::Inconsistent`] names the violated invariant and its place.
    pub(super) fn check(&self) -> Result<()> {
        self.check_ids_in_use()?;
        self.check_counts()?;
        self.check_structures()?;
        self.check_digests()
    }

    fn check_ids_in_use(&self) -> Result<()> {
        let free: FxHashSet<Slot> = self.free.iter().copied().collect();
        ensure(free.len() == self.free.len(), || "a slot is free twice".into())?;
        let is_retired =
            |term: &Term| term.kind == Kind::Free && term.generation >= TermId::N_GENERATIONS;
        for (slot, term) in self.slots() {
            let is_free = term.kind == Kind::Free && !is_retired(term);
            ensure(is_free == free.contains(&slot), || {
                format!(
                    "term {slot} is {:?} of generation {}, and its slot is among the free: {}",
                    term.kind,
                    term.generation,
                    free.contains(&slot)
                )
            })?;
        }
        let n_retired = self.slots().filter(|(_, term)| is_retired(term)).count();
        ensure(n_retired == self.n_retired, || {
            format!("{n_retired} slots are retired, not {}", self.n_retired)
        })?;
        let n_applies = self.slots().filter(|(_, term)| term.kind == Kind::Apply).count();
        let n_spilled: usize = self.slots().map(|(_, term)| spilled(term)).sum();
        ensure((n_applies, n_spilled) == (self.n_applies, self.n_spilled), || {
            format!(
                "there are {n_applies} apply terms and {n_spilled} spilled children, not {} and {}",
                self.n_applies, self.n_spilled
            )
        })
    }

    fn check_structures(&self) -> Result<()> {
        let mut rebuilt: FxHashMap<Structure<'_>, Slot> = FxHashMap::default();
        let mut n_contents = 0;
        for (id, term) in self.slots() {
            if matches!(term.kind, Kind::Free | Kind::Opaque) {
                continue;
            }
            let content = self.contents.get(&id);
            ensure(content.is_some() == (term.kind == Kind::Compound), || {
                format!("term {id} is {:?} and has a content: {}", term.kind, content.is_some())
            })?;
            n_contents += usize::from(content.is_some());
            let structure = (term.kind, term.number, &*term.children, content);
            if let Some(other) = rebuilt.insert(structure, id) {
                return violated(format!("terms {other} and {id} are equal"));
            }
            let found = self.index.find(index_hash(term), |&found| found == id);
            ensure(found.is_some(), || format!("the index does not find term {id}"))?;
        }
        ensure(n_contents == self.contents.len(), || {
            format!("there are {} contents of {n_contents} terms", self.contents.len())
        })?;
        ensure(rebuilt.len() == self.index.len(), || {
            format!("the index has {} entries for {} terms", self.index.len(), rebuilt.len())
        })
    }

    fn check_counts(&self) -> Result<()> {
        let mut parents = vec![0u64; self.terms.len()];
        for (id, term) in self.slots() {
            for &child in &term.children {
                let is_live = self.terms.get(child as usize).is_some_and(|t| t.kind != Kind::Free);
                ensure(is_live, || format!("child {child} of term {id} is not in the table"))?;
                parents[child as usize] += 1;
            }
        }
        for ((id, term), &counted) in self.slots().zip(&parents) {
            if term.kind == Kind::Free || term.parents == u32::MAX {
                continue;
            }
            ensure(u64::from(term.parents) == counted, || {
                format!("term {id} counts {} parents, not {counted}", term.parents)
            })?;
            ensure(term.parents > 0 || term.handles > 0, || format!("nothing needs term {id}"))?;
        }
        // Removing terms from the roots down leaves exactly those on or below a cycle.
        let mut roots: Vec<Slot> =
            (0u32..).zip(&parents).filter(|&(_, &n)| n == 0).map(|(id, _)| id).collect();
        let mut n_taken = 0;
        while let Some(id) = roots.pop() {
            n_taken += 1;
            for &child in &self.terms[id as usize].children {
                parents[child as usize] -= 1;
                if parents[child as usize] == 0 {
                    roots.push(child);
                }
            }
        }
        ensure(n_taken == self.terms.len(), || "terms form a cycle".into())
    }

    fn check_digests(&self) -> Result<()> {
        let mut parts = Vec::new();
        for (id, term) in self.slots() {
            let children = term.children.iter().map(|&child| &self.terms[child as usize]);
            let stable = children.clone().all(|child| child.stable) && term.kind != Kind::Opaque;
            ensure(term.kind == Kind::Free || term.stable == stable, || {
                format!("term {id} calls its digest stable: {}", term.stable)
            })?;
            let Some(digest) = term.digest else { continue };
            let are_known = children.clone().all(|child| child.digest.is_some());
            ensure(stable && are_known && term.kind != Kind::Free, || {
                format!("term {id} has a digest that nothing gave it")
            })?;
            ensure(digest == self.digest_from_children(id, &mut parts), || {
                format!("the digest of term {id} is {digest}")
            })?;
        }
        Ok(())
    }

    fn slots(&self) -> impl Iterator<Item = (Slot, &Term)> + Clone {
        (0..).zip(&self.terms)
    }
}

fn ensure(holds: bool, violation: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { violated(violation()) }
}

fn violated(violation: String) -> Result<()> {
    Err(Error::Inconsistent(format!("the hash-cons table is damaged: {violation}")))
}
