//! Lower bounds on the cost of every plan.
//!
//! # Problem
//! A plan by itself does not show how far it is from the optimum.
//!
//! # Approach
//! Admissible bounds, for the remainder of a component once some of it is planned:
//!
//! - *Kernels of a part*: nodes that are pairwise apart are all in different kernels, for instance
//!   the nodes of a path that leaves the part and comes back each time; so are nodes that exclude
//!   each other pairwise for other reasons ([`Levels::kernels`]).
//! - *Kernels of all parts jointly* ([`Joint`]): a plan is a sequence of kernels, each of one part.
//!   Relax it: a kernel may have any nodes of its part that are ready, connected or not, and any
//!   number of operands. Then it is never wrong to take all that are ready, because more is ready
//!   afterwards. Only the sequence of parts remains to be chosen; a search finds the shortest.
//! - *Kernels that the operand limit requires* ([`kernels_by_limit`]): the variables that a part
//!   reads and writes have to go through kernels with limited numbers of operands, and each link
//!   between these takes a further operand.
//! - *Arrays*: readers of a variable that are pairwise apart, or in different parts, each read it
//!   separately; and it is written if one of them is not in the kernel that makes it
//!   ([`Levels::arrays`]).
//!
//! Each bound is a sum of terms to which one kernel contributes at most once, so that planning a
//! kernel lowers the bound by no more than the kernel costs: the bounds are consistent.
//!
//! # Source
//! Bounds from relaxed problems: J. Pearl, "Heuristics" (1984), chapter 4. Chains of nodes that
//! exclude one another are cliques, and their number of colors is their length: D. Welsh, M.
//! Powell, The Computer Journal 10 (1967).

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

/// Sets of nodes: each set that meets the remaining nodes stands for one kernel, or one array,
/// still to come.
pub(in crate::plan) struct Levels<const W: usize> {
    kernels: Vec<Mask<W>>,
    /// Each with the node that makes the variable; while that node remains, the reading counts in
    /// `owned`.
    arrays: Vec<(Mask<W>, Option<usize>)>,
    /// For each node a lower bound on the arrays of its result, which counts as long as the node
    /// remains.
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

    /// A lower bound on the kernels of `rest`, which contains all successors of its nodes.
    pub(in crate::plan) fn kernels(&self, rest: Mask<W>) -> u64 {
        self.kernels.iter().filter(|level| level.meets(rest)).count() as u64
    }

    /// A lower bound on the arrays that kernels of `rest` read and write. `rest` contains all
    /// successors of its nodes.
    pub(super) fn arrays(&self, rest: Mask<W>) -> u64 {
        self.arrays_of(rest, rest)
    }

    /// A lower bound on the arrays that are read and written by kernels of a set between `least`
    /// and `most`, each of which contains all successors of its nodes, and by the kernels that make
    /// the nodes in `most` only.
    ///
    /// A variable made in between counts with terms that are valid whether or not the set contains
    /// its maker: nodes that cannot share a kernel with the maker read it, and it is written for
    /// them.
    pub(super) fn arrays_of(&self, least: Mask<W>, most: Mask<W>) -> u64 {
        let owned: u64 = most.iter().map(|i| self.owned[i]).sum();
        let read = self.arrays.iter().filter(|(level, owner)| {
            level.meets(least) && owner.is_none_or(|owner| !most.contains(owner))
        });
        owned + read.count() as u64
    }
}

/// The chains of `nodes`, or the single nodes of a set that are pairwise excluded, if these are
/// more.
fn longest<const W: usize>(component: &Component<W>, nodes: Mask<W>) -> Vec<Mask<W>> {
    let chains = chains(component, nodes);
    let clique = clique(component, nodes);
    if clique.len() > chains.len() { clique.iter().map(Mask::of).collect() } else { chains }
}

/// A large set of `nodes` that are pairwise excluded, found greedily from several starts: nodes
/// that exclude most come first.
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

/// Masks that a step of the joint bound examines for each part: the part and its needs are
/// restricted to the remaining nodes, and the part is visited on a path.
const PER_PART: usize = 8;

/// Words of masks that the joint bound examines for one unit of effort.
const WORDS: usize = 64;

/// Steps that chains and cliques take for each word of each node.
const PER_CHAIN: usize = 2 * STARTS;

/// Number of starts that are tried for a clique.
const STARTS: usize = 32;

/// The levels of `nodes`, which are of one part: the k-th level has the nodes with which a chain of
/// k nodes starts, each apart from those before it.
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

/// A lower bound on the kernels of all parts of a component jointly.
///
/// The remainder after the first kernels of a plan contains the remainder after a sequence of the
/// same parts that takes all ready nodes each time. So the bound by parts for the latter holds for
/// the plan, although it may be more than the relaxed sequence takes: one of the open estimates is
/// never more than the best plan.
pub(in crate::plan) struct Joint<'a, const W: usize> {
    component: &'a Component<W>,
    levels: &'a Levels<W>,
    /// For each part its nodes and all nodes before them. A node that comes before a planned node
    /// is planned, too, so the intersection with the remaining nodes gives the needs of the part's
    /// remainder.
    needs: Vec<Mask<W>>,
    known: FxHashMap<Mask<W>, u64>,
}

impl<'a, const W: usize> Joint<'a, W> {
    pub(in crate::plan) fn new(component: &'a Component<W>, levels: &'a Levels<W>) -> Self {
        let before = |part: Mask<W>| part.iter().fold(part, |mask, i| mask | component.before[i]);
        let needs = component.parts.iter().map(|&part| before(part)).collect();
        Self { component, levels, needs, known: FxHashMap::default() }
    }

    /// A lower bound on the kernels of `rest`, which contains all successors of its nodes; a weaker
    /// one if the search does not end within `patience` steps. Charges the effort for the masks
    /// that it examines, and ends when no effort is left.
    ///
    /// # Complexity
    /// A step examines some masks for each part, those of the nodes of parts that can come first,
    /// and [`Levels`] once for each of these parts.
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
        // Estimates of the total, then the kernels so far, and the index of the remainder in
        // `states`.
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
            // Masks that this step examines: some for each part, and those of the nodes that may be
            // ready.
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

/// A lower bound on the kernels of a part from the operand limit.
///
/// Let the part read and write E distinct variables from and to elsewhere, and let it be k kernels.
/// At least k - 1 links connect these. A link through an operand that both read adds one operand to
/// E, and so does a link through a result that one makes and the other reads, if it is written
/// anyway or read by others; otherwise it adds two. With at most L operands each,
/// k L >= E + (k - 1) times that. Kernels of one node may exceed the operand limit, so L is the
/// larger of the limit and the most operands of a node.
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
            // Skipped once it is found, so that hubs are not read for each of their readers.
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
    // Nodes that read one variable twice raise the limit, although they have fewer operands.
    Ok(n_operands.saturating_sub(per_link).div_ceil(limit - per_link).max(1) as u64)
}
