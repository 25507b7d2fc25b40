//! Moves of nodes from one kernel to another.
//!
//! # Problem
//! When no two kernels can be merged any more, a node may still be in the wrong one: the other
//! kernel reads the node's operands anyway, or is the only one that reads its result. Merges never
//! undo anything.
//!
//! # Approach
//! Each node at the edge of its kernel is tried in the kernels that it is connected with, and moves
//! where that saves most arrays. Nodes that prevent the move come along: all that come after it in
//! its own kernel if the other one is later, all that come before it if that is earlier. If these
//! are the whole kernel, the move is a merge.
//!
//! The kernels are in a topological order, which a move must not break: no moved node may read from
//! a kernel after the one that takes it, and no kernel before that may read a moved node. Then the
//! quotient has no cycle afterwards, whatever else was moved, and the order stays as it is. The
//! kernel that loses nodes must stay connected, and the one that gains them within the operand
//! limit.
//!
//! *Look-ahead on ties*: a move that saves nothing may enable another one that does. Where a better
//! plan is likely, nodes go to an earlier kernel although that saves nothing, and others after
//! them. Each such move lowers a position in the order, so this terminates. A plan that is
//! different but no cheaper is not taken.
//!
//! A better plan is likely in parts ([`parts`]) that strategies of the portfolio plan at different
//! costs, and in parts where some move has saved something. In other parts all attempts had the
//! same cost, which is more often than not that of the best plan.
//!
//! The savings of a move follow from the numbers of readers of an operand in each kernel. These are
//! counted for operands with few readers, and cached for others; so a try takes time in proportion
//! to what the node reads and makes, and not to the size of the kernels. The kernels are examined
//! only when a move would save something.
//!
//! # Rejected
//! Without moves, 415 of 1,920 problems of 12 to 56 nodes of the families of
//! `benchmarks/plans/generated.py` did not have the best known plan, with 49 kernels too many in
//! all and 805 arrays; with the moves above, 142, 42 and 175. Instead or in addition:
//!
//! - Single nodes only, and only moves that save something: 184, 43 and 257.
//! - Ties in all parts: 130, 42 and 155, for up to a fifth more time on graphs that are planned as
//!   well without them.
//! - Ties to later kernels instead of earlier ones: 166; to both, one after the other: 135, 42 and
//!   164, for half as much time again.
//! - Plans that are no cheaper, for the merges that they make possible: three kernels less, for a
//!   search of such merges in each graph that has ties.
//! - A second topological order, the latest, after the first: 179 and not 184, for twice the time.
//! - Giving all nodes of a small kernel to others: this finds nothing after those moves.
//! - Ties among merges ([`super::improve`]) by distance, by the greatest distance, by the later
//!   kernel, or by the number of operands: 151, 157, 167 and 144, some plans worse than before.
//! - *Safe merges* before the search. A node that has one operand, and one reader, which is of its
//!   group, is with its reader in some best plan: move it to the reader's kernel. All that it reads
//!   comes before that kernel, so that no cycle arises. Its own kernel writes one array less, and
//!   at most one more, the operand; the other one reads one less and at most one more. Nodes that
//!   it connected are still connected by its operand. A start from those merges finds nothing that
//!   moves do not: 143, 44 and 174, two plans worse than before.
//! - Merges after moves on graphs of 10^5 nodes and more: up to 200 kernels less of 40,000, for
//!   half as much time again; on most nothing.
//! - A path search for moves that break the order and would be legal all the same: one search for
//!   each.
//! - The exact search with little effort for each component: its setup takes longer than the plan.
//!
//! # Source
//! B. Kernighan, S. Lin, "An efficient heuristic procedure for partitioning graphs", Bell System
//! Technical Journal 49 (1970): partitions improved by the moves that gain most. C. Fiduccia, R.
//! Mattheyses, "A linear-time heuristic for improving network partitions", Design Automation
//! Conference 1982: one node at a time, and its gain from the numbers of each net's nodes on the
//! two sides.
//!
//! [`parts`]: crate::plan::problem::parts

mod legality;
mod mover;
mod savings;
mod targets;
#[cfg(test)]
mod tests;

use rustc_hash::FxHashMap;

use crate::budget::Budget;
use crate::error::Result;
use crate::graph::NodeId;
use crate::plan::problem::parts::parts;
use crate::plan::problem::{FusionProblem, NONE, Partition, VarId};
use mover::Mover;

/// The number of times that all nodes are tried.
const ROUNDS: usize = 3;

/// Units of work for each node, and for each operand of a node. A unit is about the examination of
/// one operand, one reader of an operand, or one node of a kernel.
const PER_NODE: u64 = 32;
const PER_READ: u64 = 16;

/// The number added to the count of nodes, because small graphs can be intricate.
const AT_LEAST: u64 = 256;

/// Units of work that moves are worth on a graph of `n_nodes` nodes, which read `n_reads`
/// variables.
pub(in crate::plan) fn effort(n_nodes: usize, n_reads: usize) -> u64 {
    PER_NODE * (AT_LEAST + n_nodes as u64) + PER_READ * n_reads as u64
}

/// Moves nodes between the blocks of `partition`, a legal plan. Returns a cheaper plan; None if
/// moves find none.
///
/// # Arguments
/// * `order`: the blocks in a topological order, that of [`Partition::quotient_order`].
/// * `doubtful`: nodes of parts where a better plan is likely: moves that save nothing are tried
///   there. May be empty: then there are none.
/// * `budget`: its effort limits the units of work, for instance [`effort`].
///
/// # Complexity
/// O(n + m), plus time in proportion to the effort.
///
/// # Errors
/// [`crate::Error::Interrupted`].
pub(in crate::plan) fn move_nodes(
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

/// Marks the nodes that are connected with one of another kernel. O(n + m).
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

impl Mover<'_> {
    /// Tries the nodes for which `may_move` holds, and tries those near moved nodes again.
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

    /// Moves the node, with the nodes that must come along, where that saves a kernel or else most
    /// arrays, if it saves enough.
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
}
