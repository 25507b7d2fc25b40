//! Moves of nodes from one kernel to another.
//!
//! # Problem
//! Where no two kernels can be merged any more, a node may still be in the wrong one: what it reads is
//! read by the other anyway, or its result is read there only. Merges never take anything back.
//!
//! # Approach
//! Each node at the edge of its kernel is tried in the kernels that it is connected with, and goes
//! where that saves most arrays. What keeps it from going comes along: all that comes after it in its
//! own kernel if the other one is later, all that comes before it if that is earlier. If that is the
//! whole kernel, the move is a merge.
//!
//! The kernels stand in a topological order, which a move must not break: nothing that is moved may
//! read from a kernel after the one that takes it, and nothing in one before that may read it. Then
//! the quotient has no cycle afterwards, whatever else was moved; the order stays as it is. What a
//! kernel loses must leave it connected, and what it gains within the operand limit.
//!
//! *Look-ahead on ties*: a move that saves nothing may make another one possible that does. Where a
//! better plan is likely, nodes go to an earlier kernel although that saves nothing, and others after
//! them. Places in the order become less by that, so that it comes to an end. A plan that is only
//! another one, and no cheaper, is not taken.
//!
//! Where it is likely: in parts ([`super::parts`]) of which one strategy of the portfolio has made more
//! than another, and in those where some move has saved something. In others everything that was tried
//! came to the same, and that is the best plan more often than not.
//!
//! How many readers of an operand are in a kernel says what a move saves. Of an operand of few readers
//! they are counted, of others remembered; so a try takes as long as what the node reads and makes,
//! and not as its kernels are large. Those are looked at when a move would save something.
//!
//! # Rejected
//! Of 1,920 problems of 12 to 56 nodes of the families of `benchmarks/plans/generated.py`, 415 had not
//! the best plan that is known without moves, with 49 kernels too many in all and 805 arrays; with
//! what is here, 142, 42 and 175. Instead or in addition:
//!
//! - Single nodes only, and those that save something: 184, 43 and 257, on half of the way.
//! - Ties in all parts: 130, 42 and 155, for up to a fifth more time on graphs that are planned as well
//!   without.
//! - Ties to later kernels instead of earlier ones: 166; to both, one after the other: 135, 42 and 164,
//!   for half as much time again.
//! - To take plans that are no cheaper, for the merges that they make possible: three kernels less, for
//!   a search of such merges in each graph that has ties.
//! - Another topological order, the latest, after the first: 179 and not 184, for twice the time.
//! - To give all nodes of a small kernel to others: finds nothing where those moves are done.
//! - Ties among merges ([`super::improve`]) by distance, by the greatest distance, by the later kernel,
//!   or by the number of operands: 151, 157, 167 and 144, some plans worse than before.
//! - *Safe merges* before the search. A node that has one operand, and one reader, which is of its
//!   group, is with its reader in some best plan: give it to the reader's kernel. All that it reads comes
//!   before that kernel, so that no cycle comes of it. Its own kernel writes one array less, and at
//!   most one more, the operand; the other one reads one less and at most one more. What was connected by
//!   it was so by its operand. To start from those merges finds nothing that moves do not: 143, 44 and
//!   174, two plans worse than before.
//! - Merges after moves on graphs of 10^5 nodes and more: up to 200 kernels less of 40,000, for half as
//!   much time again; on most nothing.
//! - Asking whether there is a path, for moves that break the order and would be legal all the same: a
//!   search for each.
//! - The exact search with little effort for each component: to set it up takes longer than the plan.
//!
//! # Source
//! B. Kernighan, S. Lin, "An efficient heuristic procedure for partitioning graphs", Bell System
//! Technical Journal 49 (1970): partitions improved by moving what gains most. C. Fiduccia, R.
//! Mattheyses, "A linear-time heuristic for improving network partitions", Design Automation Conference
//! 1982: one node at a time, and what it gains from the numbers of each net's nodes on the two sides.

use std::collections::hash_map::Entry;

use rustc_hash::{FxHashMap, FxHashSet};

use super::cost::Interfaces;
use super::partition::Partition;
use super::parts::parts;
use super::problem::{FusionProblem, NONE, VarId};
use crate::budget::Budget;
use crate::error::Result;
use crate::graph::NodeId;

/// How many kernels a node is tried in, and how many readers of each operand are asked for theirs.
const TRIED: usize = 8;

/// Nodes that go together at most.
const TOGETHER: usize = 16;

/// Of variables of more readers than this, those in each kernel are counted once and remembered.
const FEW_READERS: usize = 16;

/// Times that all nodes are tried.
const ROUNDS: usize = 3;

/// Units of work for each node, and for each operand of a node, each about an operand, a reader of one,
/// or a node of a kernel, that is looked at.
const PER_NODE: u64 = 32;
const PER_READ: u64 = 16;

/// As many nodes more count: small graphs can be intricate.
const AT_LEAST: u64 = 256;

/// Units of work that moves are worth on a graph of so many nodes, which read so many variables.
pub(super) fn effort(n_nodes: usize, n_reads: usize) -> u64 {
    PER_NODE * (AT_LEAST + n_nodes as u64) + PER_READ * n_reads as u64
}

/// Moves nodes between the blocks of `partition`, a legal plan. The plan that comes of it is cheaper;
/// None if there is none.
///
/// # Arguments
/// * `order`: the blocks in a topological order, that of [`Partition::quotient_order`].
/// * `doubtful`: nodes of parts where a better plan is likely: moves that save nothing are tried there.
///   May be empty: then there are none.
/// * `budget`: its effort is units of work that it may take, [`effort`] for instance.
///
/// # Complexity
/// O(n + m), and in proportion to the effort.
///
/// # Errors
/// [`crate::Error::Interrupted`].
pub(super) fn move_nodes(
    problem: &FusionProblem,
    partition: &Partition,
    order: &[NodeId],
    doubtful: &[bool],
    budget: &Budget,
) -> Result<Option<Partition>> {
    budget.check(problem.n_nodes())?;
    let edge = at_the_edge(problem, partition, budget)?;
    if !edge.contains(&true) {
        return Ok(None);
    }
    let mut mover = Mover::new(problem, partition, order, edge, budget);
    mover.try_all(|_| true)?;
    let mut doubtful = doubtful.to_vec();
    if !mover.changed.is_empty() {
        mark_parts(problem, &mover.changed, &mut doubtful, budget)?;
    }
    if doubtful.contains(&true) {
        mover.ties_go_earlier = true;
        mover.try_all(|node| doubtful[node as usize])?;
    }
    Ok(mover.is_cheaper.then(|| Partition::from_names(mover.block)))
}

/// Which nodes are connected with one of another kernel. O(n + m).
fn at_the_edge(
    problem: &FusionProblem,
    partition: &Partition,
    budget: &Budget,
) -> Result<Vec<bool>> {
    let mut edge = vec![false; problem.n_nodes()];
    for variable in 0..problem.n_variables() as VarId {
        let readers = problem.clients(variable);
        let owner = problem.owner(variable);
        budget.check(1 + 2 * readers.len())?;
        if owner != NONE && problem.group(owner).is_some() {
            for &reader in readers {
                if partition.block(reader) != partition.block(owner)
                    && problem.group(reader) == problem.group(owner)
                {
                    edge[owner as usize] = true;
                    edge[reader as usize] = true;
                }
            }
        }
        if let link @ Some(_) = problem.link(variable) {
            let siblings = || readers.iter().filter(|&&reader| problem.group(reader) == link);
            let mut blocks = siblings().map(|&sibling| partition.block(sibling));
            let first = blocks.next();
            if blocks.any(|block| Some(block) != first) {
                siblings().for_each(|&sibling| edge[sibling as usize] = true);
            }
        }
    }
    Ok(edge)
}

/// Marks the nodes of the parts in which kernels have changed.
fn mark_parts(
    problem: &FusionProblem,
    changed: &FxHashMap<NodeId, Vec<NodeId>>,
    marked: &mut Vec<bool>,
    budget: &Budget,
) -> Result<()> {
    marked.resize(problem.n_nodes(), false);
    let parts = parts(problem, budget)?;
    for &label in changed.keys() {
        let part = parts.block(label);
        if !marked[part as usize] {
            parts.members(part).iter().for_each(|&node| marked[node as usize] = true);
        }
    }
    Ok(())
}

struct Mover<'a> {
    problem: &'a FusionProblem,
    partition: &'a Partition,
    /// The label of the kernel of each node: that of its smallest member at first.
    block: Vec<NodeId>,
    /// Members of the kernels that are not as in the partition any more, by label.
    changed: FxHashMap<NodeId, Vec<NodeId>>,
    /// The place of each label in a topological order.
    place: Vec<u32>,
    /// Nodes that have somewhere to go without loss, as far as it is known.
    can_go: Vec<bool>,
    /// Nodes that are to be tried.
    due: Vec<bool>,
    /// Whether nodes go to an earlier kernel although that saves nothing.
    ties_go_earlier: bool,
    /// Whether anything was saved.
    is_cheaper: bool,
    /// For variables of many readers, those in each kernel, by label.
    readers: FxHashMap<VarId, FxHashMap<NodeId, usize>>,
    /// Made when the limit has to be asked for.
    interfaces: Option<Interfaces<'a>>,
    /// The search that was the last to come to each node.
    reached: Vec<u32>,
    n_searches: u32,
    /// What is being tried: kernels, nodes that would go, and what these read and make.
    targets: Vec<NodeId>,
    set: Vec<NodeId>,
    /// Each as often as it is read, with 1, or made, with 0.
    variables: Vec<(VarId, u32)>,
    budget: &'a Budget,
}

impl<'a> Mover<'a> {
    fn new(
        problem: &'a FusionProblem,
        partition: &'a Partition,
        order: &[NodeId],
        edge: Vec<bool>,
        budget: &'a Budget,
    ) -> Self {
        let mut place = vec![NONE; problem.n_nodes()];
        for (&block, position) in order.iter().zip(0u32..) {
            place[block as usize] = position;
        }
        Self {
            problem,
            partition,
            block: partition.blocks().to_vec(),
            changed: FxHashMap::default(),
            place,
            can_go: edge,
            due: vec![false; problem.n_nodes()],
            ties_go_earlier: false,
            is_cheaper: false,
            readers: FxHashMap::default(),
            interfaces: None,
            reached: Vec::new(),
            n_searches: 0,
            targets: Vec::new(),
            set: Vec::new(),
            variables: Vec::new(),
            budget,
        }
    }

    /// Tries the nodes for which `may_move` holds, and again those near others that have moved.
    fn try_all(&mut self, may_move: impl Fn(NodeId) -> bool) -> Result<()> {
        self.due.clone_from(&self.can_go);
        for _ in 0..ROUNDS {
            let mut has_moved = false;
            self.budget.check(self.problem.n_nodes())?;
            for node in 0..self.problem.n_nodes() as NodeId {
                if self.due[node as usize] && !self.budget.is_spent() && may_move(node) {
                    has_moved |= self.try_to_move(node)?;
                }
            }
            if !has_moved {
                break;
            }
        }
        Ok(())
    }

    fn members(&self, label: NodeId) -> &[NodeId] {
        self.changed.get(&label).map_or_else(|| self.partition.members(label), Vec::as_slice)
    }

    /// The place of the kernel of a node.
    fn place_of(&self, node: NodeId) -> u32 {
        self.place[self.block[node as usize] as usize]
    }

    /// Moves the node, with what must come along, where that saves a kernel or else most arrays, if
    /// it saves enough.
    fn try_to_move(&mut self, node: NodeId) -> Result<bool> {
        let from = self.block[node as usize];
        let mut best: Option<(bool, usize, NodeId)> = None;
        let mut can_go = false;
        self.find_targets(node)?;
        for i in 0..self.targets.len() {
            let to = self.targets[i];
            if !self.collect(node, to)? {
                continue;
            }
            let Some(saved) = self.saved(from, to)? else { continue };
            can_go = true;
            let is_merge = self.set.len() == self.members(from).len();
            let is_earlier = self.place[to as usize] < self.place[from as usize];
            let is_enough = is_merge || saved > 0 || (self.ties_go_earlier && is_earlier);
            let is_better = best.is_none_or(|best| (is_merge, saved) > (best.0, best.1));
            if is_enough && is_better && self.may_go(from, to)? {
                best = Some((is_merge, saved, to));
            }
        }
        self.can_go[node as usize] = can_go;
        self.due[node as usize] = false;
        let Some((is_merge, saved, to)) = best else { return Ok(false) };
        self.is_cheaper |= is_merge || saved > 0;
        self.collect(node, to)?;
        self.carry_out(from, to)?;
        Ok(true)
    }

    /// Takes note of the other kernels that the node is connected with and that are not beyond any
    /// other that it reads from or that reads it.
    fn find_targets(&mut self, node: NodeId) -> Result<()> {
        self.targets.clear();
        let (problem, from) = (self.problem, self.block[node as usize]);
        let (graph, here) = (problem.graph(), self.place_of(node));
        let (reads, mut n_asked) = (problem.reads(node), 0);
        let n_near = graph.predecessors(node).len() + graph.successors(node).len();
        self.budget.work(1 + n_near)?;
        let places = |nodes: &'a [NodeId]| nodes.iter().map(|&other| self.place_of(other));
        let earlier = places(graph.predecessors(node)).filter(|&place| place != here);
        let later = places(graph.successors(node)).filter(|&place| place != here);
        let (first, last) = (earlier.max().unwrap_or(0), later.min().unwrap_or(NONE));
        let group = problem.group(node);
        let owners = reads.iter().map(|&variable| problem.owner(variable));
        let siblings = reads
            .iter()
            .filter(|&&variable| problem.link(variable) == group)
            .flat_map(|&variable| problem.clients(variable).iter().take(TRIED));
        let clients = problem.clients(problem.output(node)).iter().take(TRIED);
        for other in owners.filter(|&owner| owner != NONE).chain(clients.chain(siblings).copied()) {
            let to = self.block[other as usize];
            n_asked += 1;
            if to != from
                && (first..=last).contains(&self.place[to as usize])
                && problem.group(other) == group
                && !self.targets.contains(&to)
            {
                self.targets.push(to);
                if self.targets.len() == TRIED {
                    break;
                }
            }
        }
        self.budget.work(n_asked.max(reads.len()))
    }

    /// Makes `set` the node and what must come along to the kernel `to`. Whether these may go, as far
    /// as the order is asked.
    fn collect(&mut self, node: NodeId, to: NodeId) -> Result<bool> {
        let graph = self.problem.graph();
        let (here, there) = (self.place_of(node), self.place[to as usize]);
        self.set.clear();
        self.set.push(node);
        let mut n_done = 0;
        while let Some(&next) = self.set.get(n_done) {
            n_done += 1;
            let others =
                if there > here { graph.successors(next) } else { graph.predecessors(next) };
            for &other in others {
                self.budget.work(1)?;
                let place = self.place_of(other);
                if place == here && !self.set.contains(&other) {
                    self.set.push(other);
                }
                let is_in_the_way =
                    place != here && if there > here { place < there } else { place > there };
                if is_in_the_way || self.set.len() > TOGETHER {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// How many readers of a variable are in each of two kernels.
    fn n_readers(&mut self, variable: VarId, kernels: [NodeId; 2]) -> Result<[usize; 2]> {
        let Self { problem, block, readers, budget, .. } = self;
        let clients = problem.clients(variable);
        let label = |client: &NodeId| block[*client as usize];
        if clients.len() <= FEW_READERS {
            budget.work(clients.len())?;
            return Ok(
                kernels.map(|own| clients.iter().filter(|&client| label(client) == own).count())
            );
        }
        let counts = match readers.entry(variable) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                budget.work(clients.len())?;
                let mut counts = FxHashMap::default();
                clients.iter().for_each(|client| *counts.entry(label(client)).or_insert(0) += 1);
                place.insert(counts)
            }
        };
        Ok(kernels.map(|own| counts.get(&own).copied().unwrap_or(0)))
    }

    /// Arrays that are saved when `set` goes to another kernel; None if there are more then.
    fn saved(&mut self, from: NodeId, to: NodeId) -> Result<Option<usize>> {
        let problem = self.problem;
        let mut variables = std::mem::take(&mut self.variables);
        variables.clear();
        for &node in &self.set {
            let read = problem.reads(node).iter().filter(|&&v| !problem.is_constant(v));
            variables.extend(read.map(|&variable| (variable, 1)));
            variables.push((problem.output(node), 0));
        }
        self.budget.work(variables.len())?;
        variables.sort_unstable();
        let (mut before, mut after) = (0, 0);
        for entries in variables.chunk_by(|a, b| a.0 == b.0) {
            let variable = entries[0].0;
            let n_readers = problem.clients(variable).len();
            let [here, there] = self.n_readers(variable, [from, to])?;
            let n_moved = entries.iter().map(|&(_, reads)| reads as usize).sum::<usize>();
            // How often the two read and write the variable, with so many readers in each.
            let n_arrays = |home: NodeId, here: usize, there: usize| {
                let is_read = [here > 0 && home != from, there > 0 && home != to];
                let n_inside = if home == from { here } else { there };
                let is_written = (home == from || home == to)
                    && (problem.is_result(variable) || n_readers > n_inside);
                is_read.into_iter().chain([is_written]).filter(|&is_one| is_one).count()
            };
            let owner = problem.owner(variable);
            let home = if owner == NONE { NONE } else { self.block[owner as usize] };
            before += n_arrays(home, here, there);
            let home = if self.set.contains(&owner) { to } else { home };
            after += n_arrays(home, here - n_moved, there + n_moved);
        }
        self.variables = variables;
        Ok(before.checked_sub(after))
    }

    /// Whether both kernels are within the operand limit and connected when `set` has gone.
    fn may_go(&mut self, from: NodeId, to: NodeId) -> Result<bool> {
        Ok(self.keeps_limit(from, to)?
            && self.leaves_connected(from)?
            && self.is_connected_with(to)?)
    }

    fn keeps_limit(&mut self, from: NodeId, to: NodeId) -> Result<bool> {
        let (problem, limit) = (self.problem, self.problem.max_operands());
        let (source, target) = (self.members(from), self.members(to));
        self.budget.work(source.len() + target.len())?;
        // No kernel has more operands than its members have, each for itself.
        let most = |nodes: &[NodeId]| -> usize {
            nodes.iter().map(|&node| problem.reads(node).len() + 1).sum()
        };
        let mut uncertain: Vec<Vec<NodeId>> = Vec::new();
        if most(source) > limit {
            let stays = |node: &NodeId| !self.set.contains(node);
            uncertain.push(source.iter().copied().filter(stays).collect());
        }
        if most(target) + most(&self.set) > limit {
            uncertain.push(target.iter().chain(&self.set).copied().collect());
        }
        for members in uncertain.iter().filter(|members| members.len() > 1) {
            let budget = self.budget;
            let interfaces =
                self.interfaces.get_or_insert_with(|| Interfaces::new(problem, budget));
            budget.spend(most(members) as u64);
            if interfaces.of(members)?.operands() > limit {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether what `set` leaves behind is connected. The kernel was, so that it is if those are that
    /// `set` was connected with.
    fn leaves_connected(&mut self, from: NodeId) -> Result<bool> {
        let problem = self.problem;
        let stays = |node: &NodeId| self.block[*node as usize] == from && !self.set.contains(node);
        let (mut touched, mut n_read) = (Vec::new(), 0);
        for &node in &self.set {
            n_read += problem.reads(node).len();
            for &variable in problem.reads(node) {
                let owner = problem.owner(variable);
                touched.extend(Some(owner).filter(|owner| *owner != NONE && stays(owner)));
                if problem.link(variable) == problem.group(node) {
                    // Those that read the same are connected: one is enough.
                    let readers = problem.clients(variable);
                    let first = readers.iter().position(stays);
                    touched.extend(first.map(|position| readers[position]));
                    n_read += first.unwrap_or(readers.len());
                }
            }
            let readers = problem.clients(problem.output(node));
            touched.extend(readers.iter().copied().filter(stays));
            n_read += readers.len();
        }
        self.budget.work(n_read)?;
        touched.sort_unstable();
        touched.dedup();
        let Some(&first) = touched.first() else { return Ok(true) };
        self.reaches(first, &touched, |mover, node| {
            mover.block[node as usize] == from && !mover.set.contains(&node)
        })
    }

    /// Whether all of `set` is connected with the kernel `to`, as its first node is.
    fn is_connected_with(&mut self, to: NodeId) -> Result<bool> {
        // Without orderings, data connects those that come along.
        if !self.problem.has_orderings() {
            return Ok(true);
        }
        let set = self.set.clone();
        self.reaches(set[0], &set, |mover, node| {
            mover.block[node as usize] == to || mover.set.contains(&node)
        })
    }

    /// Whether connections lead from `start` to all of `goals` by way of nodes that are `within`.
    fn reaches(
        &mut self,
        start: NodeId,
        goals: &[NodeId],
        within: impl Fn(&Self, NodeId) -> bool,
    ) -> Result<bool> {
        let problem = self.problem;
        let mut reached = std::mem::take(&mut self.reached);
        reached.resize(problem.n_nodes(), 0);
        self.n_searches += 1;
        reached[start as usize] = self.n_searches;
        let mut missing: FxHashSet<NodeId> = goals.iter().copied().collect();
        let mut shared: FxHashSet<VarId> = FxHashSet::default();
        let mut stack = vec![start];
        while !missing.is_empty()
            && let Some(node) = stack.pop()
        {
            missing.remove(&node);
            let mut n_read = problem.reads(node).len();
            let mut reach = |other: NodeId| {
                n_read += 1;
                if reached[other as usize] != self.n_searches && within(self, other) {
                    reached[other as usize] = self.n_searches;
                    stack.push(other);
                }
            };
            for &variable in problem.reads(node) {
                let owner = problem.owner(variable);
                if owner != NONE {
                    reach(owner);
                }
                if problem.link(variable) == problem.group(node) && shared.insert(variable) {
                    problem.clients(variable).iter().for_each(|&other| reach(other));
                }
            }
            problem.clients(problem.output(node)).iter().for_each(|&other| reach(other));
            self.budget.work(n_read)?;
        }
        self.reached = reached;
        Ok(missing.is_empty())
    }

    fn carry_out(&mut self, from: NodeId, to: NodeId) -> Result<()> {
        let set = std::mem::take(&mut self.set);
        self.budget.work(self.members(from).len() + self.members(to).len())?;
        let stays = |node: &NodeId| !set.contains(node);
        let rest = self.members(from).iter().copied().filter(stays).collect();
        let grown = self.members(to).iter().chain(&set).copied().collect();
        self.changed.insert(from, rest);
        self.changed.insert(to, grown);
        for &node in &set {
            self.block[node as usize] = to;
            for variable in self.problem.reads(node) {
                if let Some(counts) = self.readers.get_mut(variable) {
                    *counts.entry(to).or_insert(0) += 1;
                    counts.entry(from).and_modify(|count| *count -= 1);
                }
            }
            self.wake_neighbors(node)?;
        }
        self.set = set;
        Ok(())
    }

    /// Takes note that those that are connected with a node that has moved are to be tried again.
    fn wake_neighbors(&mut self, node: NodeId) -> Result<()> {
        let problem = self.problem;
        let mut n_woken = 0;
        let near = problem.reads(node).iter().flat_map(|&variable| {
            let owner = Some(problem.owner(variable)).filter(|&owner| owner != NONE);
            owner.into_iter().chain(problem.clients(variable).iter().copied().take(TRIED))
        });
        let clients = problem.clients(problem.output(node)).iter().copied().take(TRIED);
        for other in near.chain(clients) {
            n_woken += 1;
            if problem.group(other) == problem.group(node) {
                self.can_go[other as usize] = true;
                self.due[other as usize] = true;
            }
        }
        self.budget.work(n_woken)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::cell::Cell;
    use std::collections::BTreeSet;
    use std::rc::Rc;

    use super::super::adversarial_tests::Judge;
    use super::super::portfolio::{PORTFOLIO, Question};
    use super::super::proof_tests::{Random, SHAPES, random_arrays};
    use super::super::tests::{connected, moved, naive_interface};
    use super::super::{Cost, ProblemArrays, cost::cost};
    use super::*;
    use crate::rows::Rows;

    /// Random problems, and plans of theirs that merges have not been through.
    fn starts(seed: u64, n_problems: usize) -> impl Iterator<Item = (FusionProblem, Partition)> {
        let mut random = Random(seed);
        (0..n_problems).filter_map(move |number| {
            let n_nodes = 5 + random.below(60);
            let arrays = random_arrays(&mut random, n_nodes, SHAPES[number % SHAPES.len()]);
            let problem = FusionProblem::new(arrays, &Budget::unlimited()).unwrap();
            let question =
                Question { problem: &problem, strict: None, budget: &Budget::unlimited() };
            let start = (PORTFOLIO[[0, 2, 3][number % 3]].start)(&question).unwrap();
            start.quotient_order(&problem, &Budget::unlimited()).ok()?;
            let start = super::super::split::split_oversized(&problem, start, &Budget::unlimited())
                .unwrap();
            Some((problem, start))
        })
    }

    fn mover<'a>(
        problem: &'a FusionProblem,
        partition: &'a Partition,
        budget: &'a Budget,
    ) -> Mover<'a> {
        let order = partition.quotient_order(problem, budget).unwrap();
        let edge = at_the_edge(problem, partition, budget).unwrap();
        Mover::new(problem, partition, &order, edge, budget)
    }

    /// Whether two nodes of one group are connected.
    fn touch(problem: &FusionProblem, a: NodeId, b: NodeId) -> bool {
        problem.group(a).is_some()
            && problem.group(a) == problem.group(b)
            && connected(problem, &BTreeSet::from([a, b]))
    }

    /// Operands of a kernel, and how many of them are arrays.
    fn n_operands(problem: &FusionProblem, members: &BTreeSet<NodeId>) -> (usize, usize) {
        let (inputs, outputs) = naive_interface(problem, members);
        let n_constants = inputs.iter().filter(|&&v| problem.is_constant(v)).count();
        (inputs.len() + outputs.len(), inputs.len() + outputs.len() - n_constants)
    }

    #[test]
    fn the_edge_is_where_kernels_touch() {
        let mut n_edge = 0;
        for (problem, partition) in starts(51, 300) {
            let nodes = 0..problem.n_nodes() as NodeId;
            let edge = at_the_edge(&problem, &partition, &Budget::unlimited()).unwrap();
            for node in nodes.clone() {
                let is_other = |&other: &NodeId| partition.block(other) != partition.block(node);
                let mut others = nodes.clone().filter(is_other);
                let expected = others.any(|other| touch(&problem, node, other));
                assert_eq!(edge[node as usize], expected);
                n_edge += usize::from(expected);
            }
        }
        assert!(n_edge > 1000, "{n_edge}");
    }

    /// What a try says of moves, one after the other, beside what the definitions say.
    #[test]
    fn moves_are_what_their_definitions_say() {
        let mut random = Random(52);
        let (mut n_moved, mut n_merged, mut n_together, mut n_kept) = (0, 0, 0, [0; 3]);
        for (problem, partition) in starts(53, 600) {
            let nodes: Vec<NodeId> =
                (0..problem.n_nodes() as NodeId).filter(|&n| problem.group(n).is_some()).collect();
            let budget = Budget::unlimited();
            let mut mover = mover(&problem, &partition, &budget);
            for _ in 0..if nodes.is_empty() { 0 } else { 60 } {
                let node = nodes[random.below(nodes.len())];
                let from = mover.block[node as usize];
                mover.find_targets(node).unwrap();
                let targets = mover.targets.clone();
                let kernels: BTreeSet<NodeId> = nodes
                    .iter()
                    .filter(|&&other| touch(&problem, node, other))
                    .map(|&other| mover.block[other as usize])
                    .filter(|&label| label != from)
                    .collect();
                assert!(targets.iter().all(|to| kernels.contains(to)));
                assert_eq!(targets.iter().collect::<BTreeSet<_>>().len(), targets.len());
                for &to in &kernels {
                    let set = expected_set(&mover, &nodes, node, to);
                    let may_go = mover.collect(node, to).unwrap();
                    assert_eq!(may_go, set.is_some());
                    let Some(set) = set else {
                        n_kept[0] += 1;
                        continue;
                    };
                    assert_eq!(mover.set.iter().copied().collect::<BTreeSet<_>>(), set);
                    let output = problem.output(node);
                    let mut operands = problem.inputs(node).iter().chain([&output]);
                    if operands.all(|&v| problem.clients(v).len() <= TRIED) {
                        assert!(targets.contains(&to) || targets.len() == TRIED);
                    }
                    let of = |mover: &Mover<'_>, label: NodeId| -> BTreeSet<NodeId> {
                        nodes
                            .iter()
                            .copied()
                            .filter(|&n| mover.block[n as usize] == label)
                            .collect()
                    };
                    let (source, target) = (of(&mover, from), of(&mover, to));
                    let rest: BTreeSet<NodeId> = source.difference(&set).copied().collect();
                    let grown: BTreeSet<NodeId> = target.union(&set).copied().collect();
                    let arrays = |members: &BTreeSet<NodeId>| n_operands(&problem, members).1;
                    let before = arrays(&source) + arrays(&target);
                    let after = arrays(&grown) + if rest.is_empty() { 0 } else { arrays(&rest) };
                    assert_eq!(mover.saved(from, to).unwrap(), before.checked_sub(after));
                    let fits = |members: &BTreeSet<NodeId>| {
                        members.len() < 2
                            || n_operands(&problem, members).0 <= problem.max_operands()
                    };
                    let is_one = |members: &BTreeSet<NodeId>| {
                        members.is_empty() || connected(&problem, members)
                    };
                    let (keeps_limit, leaves) = (fits(&rest) && fits(&grown), is_one(&rest));
                    assert_eq!(mover.keeps_limit(from, to).unwrap(), keeps_limit);
                    assert_eq!(mover.leaves_connected(from).unwrap(), leaves);
                    assert_eq!(mover.is_connected_with(to).unwrap(), is_one(&grown));
                    let may_go = keeps_limit && leaves && is_one(&grown);
                    assert_eq!(mover.may_go(from, to).unwrap(), may_go);
                    n_kept[1] += usize::from(!keeps_limit);
                    n_kept[2] += usize::from(!leaves);
                    if may_go && random.percent(30) {
                        n_moved += 1;
                        n_merged += usize::from(rest.is_empty());
                        n_together += usize::from(set.len() > 1);
                        mover.carry_out(from, to).unwrap();
                        let sorted =
                            |nodes: &[NodeId]| nodes.iter().copied().collect::<BTreeSet<_>>();
                        assert_eq!(sorted(mover.members(from)), rest);
                        assert_eq!(sorted(mover.members(to)), grown);
                        break;
                    }
                }
            }
            let names = Partition::from_names(mover.block.clone());
            Judge::new(problem.arrays()).cost(&names);
        }
        assert!(n_moved > 1000 && n_merged > 100, "{n_moved} {n_merged}");
        assert!(n_together > 20 && n_kept.iter().all(|&n| n > 5), "{n_kept:?} {n_together}");
    }

    /// The node and all that come before it in its kernel, or after it, if nothing of another kernel
    /// stands between these and the kernel `to`.
    fn expected_set(
        mover: &Mover<'_>,
        nodes: &[NodeId],
        node: NodeId,
        to: NodeId,
    ) -> Option<BTreeSet<NodeId>> {
        let graph = mover.problem.graph();
        let (from, there) = (mover.block[node as usize], mover.place[to as usize]);
        let is_later = there > mover.place[from as usize];
        let mut set = BTreeSet::from([node]);
        loop {
            let others = set.iter().flat_map(|&next| {
                if is_later { graph.successors(next) } else { graph.predecessors(next) }
            });
            let others: Vec<NodeId> = others.copied().collect();
            let n_before = set.len();
            for other in others {
                let place = mover.place[mover.block[other as usize] as usize];
                if mover.block[other as usize] == from && nodes.contains(&other) {
                    set.insert(other);
                } else if if is_later { place < there } else { place > there } {
                    return None;
                }
            }
            if set.len() > TOGETHER {
                return None;
            }
            if set.len() == n_before {
                return Some(set);
            }
        }
    }

    #[test]
    fn moves_find_more_where_ties_are_tried() {
        let (mut more, mut all) = ([0, 0], [Cost::default(); 3]);
        for (problem, start) in starts(54, 600) {
            let before = cost(&problem, &start, &Budget::unlimited()).unwrap();
            let costs = [false, true].map(|ties| {
                let partition = moved(&problem, &start, ties);
                let after = cost(&problem, &partition, &Budget::unlimited()).unwrap();
                assert_eq!(after < before, partition != start);
                assert!(after.kernels <= before.kernels && after.arrays <= before.arrays);
                after
            });
            more[0] += usize::from(costs[0] < before);
            more[1] += usize::from(costs[1] < costs[0]);
            for (sum, cost) in all.iter_mut().zip([before, costs[0], costs[1]]) {
                sum.kernels += cost.kernels;
                sum.arrays += cost.arrays;
            }
        }
        assert!(more[0] > 200 && more[1] > 10, "{more:?} {all:?}");
        assert!(all[2] < all[1] && all[1] < all[0], "{all:?}");
    }

    /// Nodes of one group after so many variables from outside, all of which bring siblings together.
    fn problem(n_roots: usize, nodes: &[(i32, &[u32])]) -> FusionProblem {
        let (mut inputs, mut outputs) = (Rows::empty(), Rows::empty());
        for ((_, reads), made) in nodes.iter().zip(n_roots as u32..) {
            inputs.push(reads.iter().copied()).unwrap();
            outputs.push([made]).unwrap();
        }
        let n_variables = n_roots + nodes.len();
        let mut results = vec![true; n_variables];
        inputs.items().iter().for_each(|&variable| results[variable as usize] = false);
        FusionProblem::new(
            ProblemArrays {
                n_variables,
                inputs,
                outputs,
                groups: nodes.iter().map(|&(group, _)| group).collect(),
                links: vec![0; n_variables],
                constants: vec![false; n_variables],
                results,
                orderings: Vec::new(),
                max_operands: 1024,
            },
            &Budget::unlimited(),
        )
        .unwrap()
    }

    #[test]
    fn what_comes_after_a_node_goes_with_it() {
        // 0 -> 1 -> 2 -> (sum) 3 -> 4; 4 reads what 1 and 2 make. Variables 2 to 6.
        let nodes: [(i32, &[u32]); 5] =
            [(0, &[0]), (0, &[2, 1]), (0, &[3, 1]), (-1, &[2]), (0, &[5, 3, 4, 1])];
        let problem = problem(2, &nodes);
        let start = Partition::from_names(vec![0, 0, 0, 3, 4]);
        // What reads 1 and 2 is in the later kernel then, which reads 0 in their place.
        assert_eq!(moved(&problem, &start, false).blocks(), [0, 1, 1, 3, 1]);
        // Node 1 alone cannot go: 2 reads it.
        let order = start.quotient_order(&problem, &Budget::unlimited()).unwrap();
        let budget = Budget::unlimited();
        let mut mover = Mover::new(&problem, &start, &order, vec![true; nodes.len()], &budget);
        assert!(mover.collect(1, 4).unwrap());
        assert_eq!(mover.set, [1, 2]);
        assert!(mover.collect(2, 4).unwrap());
        assert_eq!(mover.set, [2]);
        // 0 is read by the sum, which is before that kernel.
        assert!(!mover.collect(0, 4).unwrap());
    }

    #[test]
    fn nothing_is_tried_without_effort() {
        for (problem, start) in starts(55, 100) {
            let order = start.quotient_order(&problem, &Budget::unlimited()).unwrap();
            let doubtful = vec![true; problem.n_nodes()];
            let moved = move_nodes(
                &problem,
                &start,
                &order,
                &doubtful,
                &Budget::unlimited().with_effort(0),
            )
            .unwrap();
            assert_eq!(moved, None);
        }
    }

    #[test]
    fn a_node_goes_where_that_saves_most() {
        // Node 2 shares one operand with 3, its kernel's other node, two with 0 and three with 1.
        let nodes: [(i32, &[u32]); 4] =
            [(0, &[1, 2]), (0, &[3, 4, 5]), (0, &[0, 1, 2, 3, 4, 5]), (0, &[0])];
        let problem = problem(6, &nodes);
        let start = Partition::from_names(vec![0, 1, 2, 2]);
        let budget = Budget::unlimited();
        let mut mover = mover(&problem, &start, &budget);
        assert!(mover.try_to_move(2).unwrap() && mover.is_cheaper);
        assert_eq!(mover.block, [0, 1, 1, 2]);
        // And does not come back; the other one follows, as a merge.
        assert!(!mover.try_to_move(2).unwrap());
        assert!(mover.try_to_move(3).unwrap());
        assert_eq!(mover.block, [0, 1, 1, 1]);
    }

    #[test]
    fn a_tie_goes_to_an_earlier_kernel_and_not_to_a_later_one() {
        // Kernels of two that a sum keeps apart, and node 4, which shares one operand with each.
        let nodes: [(i32, &[u32]); 6] =
            [(0, &[0, 1]), (0, &[0]), (-1, &[5]), (0, &[6, 2, 3]), (0, &[1, 3]), (0, &[6, 2])];
        let problem = problem(4, &nodes);
        for (names, is_late) in [([0, 0, 2, 3, 3, 3], true), ([0, 0, 2, 3, 0, 3], false)] {
            let start = Partition::from_names(names.to_vec());
            for ties in [false, true] {
                let budget = Budget::unlimited();
                let mut mover = mover(&problem, &start, &budget);
                mover.ties_go_earlier = ties;
                assert_eq!(mover.try_to_move(4).unwrap(), ties && is_late);
                assert!(!mover.is_cheaper);
            }
            // A plan that is only another one is not taken.
            assert_eq!(moved(&problem, &start, true), start);
        }
    }

    #[test]
    fn orderings_alone_take_nothing_along() {
        // Nodes 1 and 3 are connected by way of 2, and 1 has to come before 3: where 3 goes, 1 must.
        let nodes: [(i32, &[u32]); 4] = [(0, &[1]), (0, &[0]), (0, &[0, 2]), (0, &[2, 1])];
        let mut arrays = problem(3, &nodes).arrays().clone();
        arrays.orderings = vec![(1, 3)];
        let problem = FusionProblem::new(arrays, &Budget::unlimited()).unwrap();
        let start = Partition::from_names(vec![0, 1, 1, 1]);
        let budget = Budget::unlimited();
        let mut mover = mover(&problem, &start, &budget);
        assert!(mover.collect(3, 0).unwrap());
        assert_eq!(mover.set, [3, 1]);
        assert!(mover.keeps_limit(1, 0).unwrap() && mover.leaves_connected(1).unwrap());
        assert!(!mover.is_connected_with(0).unwrap() && !mover.may_go(1, 0).unwrap());
        assert!(mover.collect(1, 0).unwrap() && mover.set == [1]);
        assert!(mover.leaves_connected(1).unwrap());
    }

    /// Four readers of `n` operands, each in an order of its own, one of them in a kernel by itself.
    fn wide(n: u32, limit: u32) -> (FusionProblem, Partition) {
        let row = |node: u32| (0..n).map(|i| (i + node * (n / 3)) % n).collect();
        let rows: Vec<Vec<u32>> = (0..4).map(row).collect();
        let nodes: Vec<(i32, &[u32])> = rows.iter().map(|row| (0, &row[..])).collect();
        let mut arrays = problem(n as usize, &nodes).arrays().clone();
        arrays.max_operands = limit;
        let problem = FusionProblem::new(arrays, &Budget::unlimited()).unwrap();
        (problem, Partition::from_names(vec![0, 1, 1, 1]))
    }

    #[test]
    fn effort_counts_each_operand() {
        for (limit, may_move) in [(1024, false), (u32::MAX, true)] {
            let spent = [10_000, 20_000].map(|n| {
                let (problem, start) = wide(n, limit);
                let asked = Rc::new(Cell::new(0));
                let count = Rc::clone(&asked);
                let may_go_on = Rc::new(move || {
                    count.set(count.get() + 1);
                    true
                });
                let budget = Budget::asking(may_go_on).with_effort(1 << 40);
                let mut mover = mover(&problem, &start, &budget);
                let before = budget.effort();
                assert_eq!(mover.try_to_move(0).unwrap(), may_move);
                let spent = before - budget.effort();
                // It is asked who reads each operand, where, and whether all keep the limit.
                assert!((4..64).contains(&(spent / u64::from(n))), "{spent}");
                assert!(asked.get() >= spent >> 17, "{spent} {}", asked.get());
                spent
            });
            assert!(spent[1] < 2 * spent[0] + spent[0] / 4, "{spent:?}");
        }
    }

    #[test]
    fn small_graphs_have_as_much_effort_as_if_they_were_larger() {
        assert_eq!([0, 1, 1000].map(|n| effort(n, 2 * n)), [8192, 8256, 72_192]);
    }

    #[test]
    fn ties_are_tried_in_the_parts_in_which_something_has_moved() {
        let mut n_better = 0;
        for (problem, start) in starts(56, 300) {
            let budget = Budget::unlimited();
            let mut mover = mover(&problem, &start, &budget);
            mover.try_all(|_| true).unwrap();
            let alone =
                cost(&problem, &Partition::from_names(mover.block.clone()), &Budget::unlimited())
                    .unwrap();
            let after =
                cost(&problem, &moved(&problem, &start, false), &Budget::unlimited()).unwrap();
            assert!(after <= alone);
            n_better += usize::from(after < alone);
            let mut marked = Vec::new();
            mark_parts(&problem, &mover.changed, &mut marked, &budget).unwrap();
            let parts = parts(&problem, &Budget::unlimited()).unwrap();
            for node in 0..problem.n_nodes() as NodeId {
                let is_changed = |label: &NodeId| parts.block(*label) == parts.block(node);
                assert_eq!(marked[node as usize], mover.changed.keys().any(is_changed));
            }
        }
        assert!(n_better > 0);
    }
}
