//! The table's invariants, judged by building what the table keeps a second time.

use rustc_hash::{FxHashMap, FxHashSet};

use super::digest::Digest;
use super::{HashConsTable, Kind, Term, TermId};
use crate::error::{Error, Result};

/// What tells terms apart: all of a term but its id, its counts and, unless it is all that is kept
/// of the content, its digest.
type Structure<'a> = (Kind, u32, &'a [TermId], Option<Digest>);

impl HashConsTable {
    /// Checks every invariant. O(size of the table).
    ///
    /// - No two terms have the same structure, and the index finds each one, and nothing else.
    /// - Children are in the table; terms form no cycle.
    /// - Counts of parents are right, and each term has a parent or a handle.
    /// - Digests, and whether they are stable, follow from the children's.
    /// - Ids are in use or free, and not both.
    ///
    /// # Errors
    /// [`Error::Inconsistent`] says what is violated, and where.
    pub fn check(&self) -> Result<()> {
        self.check_ids_in_use()?;
        self.check_structures()?;
        self.check_counts()?;
        self.check_digests()
    }

    fn check_ids_in_use(&self) -> Result<()> {
        let free: FxHashSet<TermId> = self.free.iter().copied().collect();
        ensure(free.len() == self.free.len(), || "an id is free twice".into())?;
        for (id, term) in self.slots() {
            ensure((term.kind == Kind::Free) == free.contains(&id), || {
                format!(
                    "term {id} is {:?}, and its id is among the free: {}",
                    term.kind,
                    free.contains(&id)
                )
            })?;
        }
        let n_applies = self.slots().filter(|(_, term)| term.kind == Kind::Apply).count();
        let n_spilled: usize = self.slots().map(|(_, term)| super::spilled(term)).sum();
        ensure((n_applies, n_spilled) == (self.n_applies, self.n_spilled), || {
            format!(
                "there are {n_applies} apply terms and {n_spilled} spilled children, not {} and {}",
                self.n_applies, self.n_spilled
            )
        })
    }

    fn check_structures(&self) -> Result<()> {
        let mut rebuilt: FxHashMap<Structure<'_>, TermId> = FxHashMap::default();
        for (id, term) in self.slots() {
            if matches!(term.kind, Kind::Free | Kind::Opaque) {
                continue;
            }
            let content = (term.kind == Kind::Compound).then_some(term.digest);
            let structure = (term.kind, term.number, &*term.children, content);
            if let Some(other) = rebuilt.insert(structure, id) {
                return violated(format!("terms {other} and {id} are equal"));
            }
            let found = self.index.find(super::index_hash(term), |&found| found == id);
            ensure(found.is_some(), || format!("the index does not find term {id}"))?;
        }
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
        // Taking terms away from the roots down leaves exactly those on or below a cycle.
        let mut roots: Vec<TermId> =
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
        for (id, term) in self.slots() {
            let children = term.children.iter().map(|&child| &self.terms[child as usize]);
            let stable = children.clone().all(|child| child.stable) && term.kind != Kind::Opaque;
            ensure(term.kind == Kind::Free || term.stable == stable, || {
                format!("term {id} calls its digest stable: {}", term.stable)
            })?;
            if matches!(term.kind, Kind::Free | Kind::Compound | Kind::Opaque) {
                continue;
            }
            let parts: Vec<u8> = children.flat_map(|child| *child.digest.as_bytes()).collect();
            let digest = Digest::of(term.kind as u8, term.number, &parts);
            ensure(term.digest == digest, || {
                format!("the digest of term {id} is {}", term.digest)
            })?;
        }
        Ok(())
    }

    fn slots(&self) -> impl Iterator<Item = (TermId, &Term)> + Clone {
        (0..).zip(&self.terms)
    }
}

fn ensure(holds: bool, violation: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { violated(violation()) }
}

fn violated(violation: String) -> Result<()> {
    Err(Error::Inconsistent(format!("the hash-cons table is damaged: {violation}")))
}
