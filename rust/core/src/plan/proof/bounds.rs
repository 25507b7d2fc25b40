//! What no plan can be cheaper than.
//!
//! # Problem
//! A plan by itself does not say how far it is from the best one.
//!
//! # Approach
//! Bounds that are admissible, for what is left of a component once some of it is planned:
//!
//! - *Kernels of a part*: nodes that are apart in pairs, as those of a path that leaves the part and
//!   comes back each time, are in as many kernels, and so are such as are excluded in pairs for
//!   other reasons ([`Levels::kernels`]).
//! - *Kernels of all parts jointly* ([`Joint`]): a plan is a sequence of kernels, each of one part.
//!   Let a kernel have any nodes of its part that are ready, connected or not and as many operands as
//!   it likes: then it is never wrong to take all that are ready, as more is ready afterwards. What
//!   is left to choose is the sequence of parts; the shortest is found by a search.
//! - *Kernels that the operand limit takes* ([`kernels_by_limit`]): what a part reads and writes has to
//!   go through kernels of so many operands, and what connects these is an operand more.
//! - *Arrays*: readers of a variable that are apart in pairs, or in different parts, read it as often;
//!   and it is written if one of them is not where it is made ([`Levels::arrays`]).
//!
//! Each is a sum over things that one kernel contributes to at most once, so that planning a kernel
//! lowers the bound by no more than it costs: the bounds are consistent.
//!
//! # Source
//! Bounds from relaxed problems: J. Pearl, "Heuristics" (1984), chapter 4. Chains of pairs that
//! exclude one another are cliques, and their number of colors is their length: D. Welsh, M. Powell,
//! The Computer Journal 10 (1967).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::component::Component;
use super::least_closed::least_closed;
use super::masks::Mask;
use crate::budget::Budget;
use crate::error::Result;
use crate::graph::NodeId;
use crate::plan::problem::cost::Interfaces;
use crate::plan::problem::{FusionProblem, NONE, Partition};

/// Sets such that each that what is left meets is a kernel, or an array, that has to come yet.
pub(in crate::plan) struct Levels<const W: usize> {
    kernels: Vec<Mask<W>>,
    /// With the node that makes the variable; while that node is left, the reading counts in `owned`.
    arrays: Vec<(Mask<W>, Option<usize>)>,
    /// For each node the arrays that its result counts, at least, as long as the node is left.
    owned: Vec<u64>,
}

impl<const W: usize> Levels<W> {
    /// # Errors
    /// [`crate::Error::Interrupted`].
    pub(in crate::plan) fn new(component: &Component<W>, budget: &Budget) -> Result<Self> {
        let mut levels =
            Self { kernels: Vec::new(), arrays: Vec::new(), owned: vec![0; component.nodes.len()] };
        for &part in &component.parts {
            budget.check(PER_CHAIN * W * part.len())?;
            levels.kernels.extend(longest(component, part));
        }
        for variable in component.variables.iter().filter(|variable| !variable.is_constant) {
            for (part, &nodes) in component.parts.iter().enumerate() {
                let readers = variable.readers & nodes;
                budget.check(W + PER_CHAIN * W * readers.len())?;
                if readers.is_empty() {
                    continue;
                }
                let chains = longest(component, readers);
                if let Some(owner) = variable.owner {
                    let own = component.part[owner] as usize == part;
                    let elsewhere = if own { readers & component.excluded[owner] } else { readers };
                    let n_readings = chains.iter().filter(|chain| chain.meets(elsewhere)).count();
                    levels.owned[owner] += n_readings as u64;
                }
                levels.arrays.extend(chains.into_iter().map(|chain| (chain, variable.owner)));
            }
            if let Some(owner) = variable.owner {
                let own = component.parts[component.part[owner] as usize];
                let inside = own.without(component.excluded[owner]);
                let is_written = variable.is_needed || !variable.readers.is_within(inside);
                levels.owned[owner] += u64::from(is_written);
            }
        }
        Ok(levels)
    }

    /// Fewest kernels for `rest`, which has all that comes after any of it.
    pub(in crate::plan) fn kernels(&self, rest: Mask<W>) -> u64 {
        self.kernels.iter().filter(|level| level.meets(rest)).count() as u64
    }

    /// Fewest arrays that kernels of `rest`, which has all that comes after any of it, read and write.
    pub(super) fn arrays(&self, rest: Mask<W>) -> u64 {
        self.arrays_of(rest, rest)
    }

    /// Fewest arrays that are read and written by kernels of a set between `least` and `most`, each of
    /// which has all that comes after any of it, and by those that make what is in `most` only.
    ///
    /// A variable made in between counts with what is good in both cases, whether the set has its
    /// maker or not: it is read by what cannot be where it is made, and written for that.
    pub(super) fn arrays_of(&self, least: Mask<W>, most: Mask<W>) -> u64 {
        let owned: u64 = most.iter().map(|i| self.owned[i]).sum();
        let read = self.arrays.iter().filter(|(level, owner)| {
            level.meets(least) && owner.is_none_or(|owner| !most.contains(owner))
        });
        owned + read.count() as u64
    }
}

/// The chains of `nodes`, or the nodes of a set that are excluded in pairs, if these are more.
fn longest<const W: usize>(component: &Component<W>, nodes: Mask<W>) -> Vec<Mask<W>> {
    let chains = chains(component, nodes);
    let clique = clique(component, nodes);
    if clique.len() > chains.len() { clique.iter().map(Mask::of).collect() } else { chains }
}

/// Many of `nodes` that are excluded in pairs: from each start, those that exclude most first.
fn clique<const W: usize>(component: &Component<W>, nodes: Mask<W>) -> Mask<W> {
    let excluded = &component.excluded;
    let mut ordered: Vec<usize> = nodes.iter().collect();
    ordered.sort_by_key(|&i| (Reverse((excluded[i] & nodes).len()), i));
    let mut best = Mask::EMPTY;
    for &start in ordered.iter().take(STARTS) {
        let (mut chosen, mut left) = (Mask::of(start), excluded[start] & nodes);
        for &i in &ordered {
            if left.contains(i) {
                chosen.insert(i);
                left = left & excluded[i];
            }
        }
        if chosen.len() > best.len() {
            best = chosen;
        }
    }
    best
}

/// Masks that a step of the joint bound looks at for each part: it is cut out of what is left, as is what
/// it needs, and seen on a path.
const PER_PART: usize = 8;

/// Words of masks that the joint bound looks at for one of the effort.
const WORDS: usize = 64;

/// Steps that chains and cliques take for each word of each node.
const PER_CHAIN: usize = 2 * STARTS;

/// How many starts of a clique are tried.
const STARTS: usize = 32;

/// Of `nodes`, which are of one part: for 1, 2, ... those with which a chain of as many nodes starts,
/// each apart from those before it.
fn chains<const W: usize>(component: &Component<W>, nodes: Mask<W>) -> Vec<Mask<W>> {
    let mut levels: Vec<Mask<W>> = Vec::new();
    let mut ordered: Vec<usize> = nodes.iter().collect();
    ordered.reverse();
    for i in ordered {
        let later = component.apart[i] & component.after[i];
        let height = levels.iter().take_while(|level| level.meets(later)).count();
        if height == levels.len() {
            levels.push(Mask::EMPTY);
        }
        levels[..=height].iter_mut().for_each(|level| level.insert(i));
    }
    levels
}

/// Fewest kernels by all parts of a component jointly.
///
/// What is left after the first kernels of a plan has all that is left after as many sequences of the
/// same parts that take all that is ready. So the bound by parts for the latter holds for the plan,
/// although it may be more than the sequence takes: one of the estimates that are open is never more
/// than the best plan.
pub(in crate::plan) struct Joint<'a, const W: usize> {
    component: &'a Component<W>,
    levels: &'a Levels<W>,
    /// For each part all that comes before any of it. What comes before nodes that are not left is not
    /// left either, so that this tells what the part needs of what is left, whatever is left of it.
    needs: Vec<Mask<W>>,
    known: FxHashMap<Mask<W>, u64>,
}

impl<'a, const W: usize> Joint<'a, W> {
    pub(in crate::plan) fn new(component: &'a Component<W>, levels: &'a Levels<W>) -> Self {
        let before = |part: Mask<W>| part.iter().fold(part, |mask, i| mask | component.before[i]);
        let needs = component.parts.iter().map(|&part| before(part)).collect();
        Self { component, levels, needs, known: FxHashMap::default() }
    }

    /// Fewest kernels for `rest`, which has all that comes after any of it, or fewer if that is not known
    /// after as many steps as `patience`. Takes what it looks at from the effort, and ends when there is
    /// none left.
    ///
    /// # Complexity
    /// A step looks at some masks for each part, at those of the nodes of parts that can come first, and
    /// at [`Levels`] once for each of these parts.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`].
    pub(in crate::plan) fn kernels(
        &mut self,
        rest: Mask<W>,
        patience: u64,
        budget: &Budget,
    ) -> Result<u64> {
        if let Some(&known) = self.known.get(&rest) {
            return Ok(known);
        }
        let start = self.levels.kernels(rest);
        if rest.is_empty() || self.component.parts.len() == 1 {
            return Ok(start);
        }
        // Estimates of the whole, then kernels so far, and the number of what is left.
        let mut open = BinaryHeap::from([(Reverse(start), 0u64, Reverse(0usize))]);
        let mut states = vec![rest];
        let mut taken: FxHashMap<Mask<W>, u64> = FxHashMap::default();
        let mut n_tried = 0;
        let mut found = start;
        let n_parts = self.component.parts.len();
        while let Some((Reverse(estimate), so_far, Reverse(number))) = open.pop() {
            let left = states[number];
            found = estimate;
            n_tried += 1;
            if left.is_empty() || n_tried > patience || budget.is_spent() {
                break;
            }
            let sets: Vec<Mask<W>> = self.component.parts.iter().map(|&part| part & left).collect();
            let needs: Vec<Mask<W>> = self.needs.iter().map(|&needed| needed & left).collect();
            // Masks that this looks at: some for each part, and those of the nodes that may be ready.
            let mut n_masks = PER_PART * n_parts;
            for source in least_closed(&sets, &needs, &self.component.part) {
                let ready = self.component.ready(sets[source], left);
                n_masks += sets[source].len();
                if ready.is_empty() {
                    continue;
                }
                let next = left.without(ready);
                let count = so_far + 1;
                if taken.get(&next).is_none_or(|&known| count < known) {
                    taken.insert(next, count);
                    let more = self.known.get(&next).copied();
                    let more = more.unwrap_or_else(|| self.levels.kernels(next));
                    n_masks += self.levels.kernels.len();
                    let estimate = estimate.max(count + more);
                    open.push((Reverse(estimate), count, Reverse(states.len())));
                    states.push(next);
                }
            }
            budget.spend((W * n_masks).div_ceil(WORDS) as u64);
            budget.check(W * n_masks)?;
        }
        self.known.insert(rest, found);
        Ok(found)
    }
}

/// Fewest kernels that the operand limit takes for a part.
///
/// Let the part read and write E distinct variables from and to elsewhere, and be k kernels. These are
/// connected, by k - 1 links at least. A link through an operand that both read is one operand more
/// than E, and so is one through a result that one makes and the other reads if it is written anyway
/// or read by others; else it is two. With at most L operands each, k L >= E + (k - 1) times that.
/// Kernels of one node may have more operands than the limit, so that L is the greatest of these if
/// that is more.
///
/// # Complexity
/// Linear in the operands and clients of the part.
///
/// # Errors
/// [`crate::Error::Interrupted`].
pub(in crate::plan) fn kernels_by_limit(
    problem: &FusionProblem,
    parts: &Partition,
    members: &[NodeId],
    interfaces: &mut Interfaces<'_>,
    budget: &Budget,
) -> Result<u64> {
    let own = parts.block(members[0]);
    let is_in = |node: NodeId| parts.block(node) == own;
    let n_operands = interfaces.of(members)?.operands();
    if n_operands <= problem.max_operands() {
        return Ok(1);
    }
    let mut limit = problem.max_operands();
    let mut per_link = 2;
    for &node in members {
        limit = limit.max(problem.inputs(node).len() + 1);
        let output = problem.output(node);
        let readers = problem.clients(output);
        let n_inside = readers.iter().filter(|&&reader| is_in(reader)).count();
        if n_inside > 1
            || (n_inside == 1 && (n_inside < readers.len() || problem.is_result(output)))
        {
            per_link = 1;
        }
        budget.check(1 + problem.reads(node).len() + readers.len())?;
        for &variable in problem.reads(node) {
            let owner = problem.owner(variable);
            let is_inside = owner != NONE && is_in(owner);
            // Asked no more once it is found, that hubs are not read for each of their readers.
            if per_link > 1 && !is_inside {
                let clients = problem.clients(variable);
                budget.check(clients.len())?;
                if clients.iter().any(|&o| o != node && is_in(o)) {
                    per_link = 1;
                }
            }
        }
    }
    if limit <= per_link {
        return Ok(1);
    }
    // Nodes that read one variable twice have a limit above both, and fewer operands.
    Ok(n_operands.saturating_sub(per_link).div_ceil(limit - per_link).max(1) as u64)
}
