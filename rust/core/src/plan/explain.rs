//! Why two nodes do not share a cluster.

use std::collections::VecDeque;

use super::cost::Interfaces;
use super::partition::Partition;
use super::problem::{FusionProblem, NONE};
use crate::graph::NodeId;

/// What keeps two nodes apart in a plan, or that nothing does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// They share a cluster.
    Together,
    /// This one of the two has no group.
    NoGroup(NodeId),
    /// They have different groups.
    OtherGroup,
    /// Neither cluster reads the other, and no operand may bring them together.
    NotConnected,
    /// A path leads from one cluster to the other through these nodes. Neighbours in the path are
    /// an edge, or members of one cluster.
    Cycle(Vec<NodeId>),
    /// Together they would have this many operands.
    OperandLimit(usize),
    /// They could share a cluster; the search did not come to it.
    Possible,
}

/// Explains why `a` and `b` do not share a block of `partition`.
///
/// # Complexity
/// O(n + m).
#[must_use]
pub fn explain(problem: &FusionProblem, partition: &Partition, a: NodeId, b: NodeId) -> Verdict {
    let (block_a, block_b) = (partition.block(a), partition.block(b));
    if block_a == block_b {
        return Verdict::Together;
    }
    if let Some(node) = [a, b].into_iter().find(|&node| problem.group(node).is_none()) {
        return Verdict::NoGroup(node);
    }
    if problem.group(a) != problem.group(b) {
        return Verdict::OtherGroup;
    }
    let (members_a, members_b) = (partition.members(block_a), partition.members(block_b));
    if !connected(problem, partition, members_a, members_b) {
        return Verdict::NotConnected;
    }
    let path = path_through(problem, partition, block_a, block_b)
        .or_else(|| path_through(problem, partition, block_b, block_a));
    if let Some(path) = path {
        return Verdict::Cycle(path);
    }
    let together: Vec<NodeId> = members_a.iter().chain(members_b).copied().collect();
    match Interfaces::new(problem).of(&together).operands() {
        operands if operands > problem.max_operands() => Verdict::OperandLimit(operands),
        _ => Verdict::Possible,
    }
}

fn connected(
    problem: &FusionProblem,
    partition: &Partition,
    members_a: &[NodeId],
    members_b: &[NodeId],
) -> bool {
    let reads = |readers: &[NodeId], block: NodeId| {
        readers.iter().flat_map(|&node| problem.inputs(node)).any(|&variable| {
            let owner = problem.owner(variable);
            owner != NONE && partition.block(owner) == block
        })
    };
    let group = problem.group(members_a[0]);
    let may_link = |&&variable: &&u32| problem.link(variable) == group;
    let operands_a: rustc_hash::FxHashSet<u32> =
        members_a.iter().flat_map(|&node| problem.inputs(node)).filter(may_link).copied().collect();
    let mut operands_b = members_b.iter().flat_map(|&node| problem.inputs(node));
    reads(members_a, partition.block(members_b[0]))
        || reads(members_b, partition.block(members_a[0]))
        || operands_b.any(|variable| operands_a.contains(variable))
}

/// The shortest path from a member of `from` to a member of `to` that leaves both, if there is
/// one.
fn path_through(
    problem: &FusionProblem,
    partition: &Partition,
    from: NodeId,
    to: NodeId,
) -> Option<Vec<NodeId>> {
    let mut parent = vec![NONE; problem.n_nodes()];
    let mut entered = vec![false; problem.n_nodes()];
    let mut queue: VecDeque<NodeId> = partition.members(from).iter().copied().collect();
    while let Some(node) = queue.pop_front() {
        for &next in problem.graph().successors(node) {
            let block = partition.block(next);
            if block == to && partition.block(node) != from {
                let mut path = vec![next];
                let mut step = node;
                while step != NONE {
                    path.push(step);
                    step = parent[step as usize];
                }
                path.reverse();
                return Some(path);
            }
            if block == from || block == to || entered[block as usize] {
                continue;
            }
            entered[block as usize] = true;
            parent[next as usize] = node;
            for &member in partition.members(block) {
                if member != next {
                    parent[member as usize] = next;
                }
                queue.push_back(member);
            }
        }
    }
    None
}
