//! Clusters by barrier depth: typed fusion, one group at a time.
//!
//! # Problem
//! Within one group, two nodes may share a cluster only if no path between them leaves the group.
//!
//! # Approach
//! The *depth* of a node is the largest number of times that a path leads out of the group and
//! back into it before it reaches the node. Nodes of one depth can all be merged at once: a path
//! from one to another through something outside would give the second a greater depth.
//!
//! The groups are taken one after the other, the largest first, each on the quotient graph that the
//! earlier ones left, so that the clusters of *all* groups together stay acyclic (joint cycles,
//! where each cluster alone is convex, cannot arise). A depth is then cut into its connected
//! parts: parts of a set that can be contracted are joined by no path that leaves the set, and by
//! none inside it, so that they can be contracted each by itself.
//!
//! An ordering without data counts as a way out of the group and back: nodes of one depth are then
//! joined by data alone, which keeps them in one part.
//!
//! Counting depths from the sources or from the sinks gives two different partitions; neither is
//! always better.
//!
//! # Rejected
//! Depths of all groups at once, on the graph as it was: clusters that are convex each by itself can
//! make a cycle together.
//!
//! # Source
//! K. Kennedy and K. S. McKinley, "Maximizing loop parallelism and improving data locality via
//! loop fusion and distribution", LCPC 1993: greedy typed fusion, linear in the graph.

use super::partition::Partition;
use super::parts::{connections, parts};
use super::problem::{FusionProblem, NONE};
use crate::error::Result;
use crate::graph::NodeId;
use crate::interrupt;

/// From which end depths are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// A node joins the earliest cluster that it can.
    FromSources,
    /// A node joins the latest cluster that it can.
    FromSinks,
}

/// A partition whose clusters together form an acyclic quotient graph, each connected by data
/// flow or by shared operands. The operand limit is not looked at.
///
/// # Complexity
/// O((n + m) log n) for each group that two nodes or more belong to; O(n + m) memory.
///
/// # Errors
/// [`crate::Error::Cycle`] never for a checked problem: it would mean that the partition is wrong.
pub(super) fn fuse_by_depth(problem: &FusionProblem, direction: Direction) -> Result<Partition> {
    let mut partition = Partition::singletons(problem.n_nodes());
    // Groups read different variables as links, so that one list serves them all.
    let mut newest_reader = vec![NONE; problem.n_variables()];
    for group in groups_by_size(problem) {
        interrupt::check(problem.n_nodes())?;
        let order = partition.quotient_order(problem)?;
        let depths = depths(problem, &partition, &order, group, direction);
        merge_equal_depths(problem, &mut partition, group, &depths, &mut newest_reader);
    }
    Ok(partition)
}

/// Whether no plan has fewer kernels than `partition`, which keeps connected nodes of one group
/// apart in some places.
///
/// Every kernel lies in one connected part of a group. A part that is one kernel cannot be less. In
/// another, the nodes of a path that leaves the part and comes back to it have to be in different
/// kernels each time: if there are as many kernels as that takes, there cannot be fewer. An answer
/// of no means that this does not prove it.
///
/// # Complexity
/// O(n + m), and again for each part that is several kernels.
pub(super) fn has_fewest_kernels(problem: &FusionProblem, partition: &Partition) -> bool {
    let n_nodes = problem.n_nodes() as u32;
    let parts = parts(problem);
    let mut n_kernels = vec![0u32; problem.n_nodes()];
    for block in partition.names().filter(|&block| problem.group(block).is_some()) {
        n_kernels[parts.block(block) as usize] += 1;
    }
    let mut depth = vec![0u32; problem.n_nodes()];
    (0..n_nodes).filter(|&part| n_kernels[part as usize] > 1).all(|part| {
        let is_in = |node: NodeId| parts.block(node) == part;
        let mut deepest = 0;
        if interrupt::is_requested(problem.n_nodes()) {
            return false;
        }
        for node in 0..n_nodes {
            let before =
                problem.graph().predecessors(node).iter().map(|&source| {
                    depth[source as usize] + u32::from(is_in(source) && !is_in(node))
                });
            depth[node as usize] = before.max().unwrap_or(0);
            if is_in(node) {
                deepest = deepest.max(depth[node as usize]);
            }
        }
        deepest + 1 == n_kernels[part as usize]
    })
}

/// Groups of two nodes or more, the largest first, then by number.
fn groups_by_size(problem: &FusionProblem) -> Vec<u32> {
    let mut size = vec![0u32; problem.n_groups()];
    for node in 0..problem.n_nodes() as u32 {
        if let Some(group) = problem.group(node) {
            size[group as usize] += 1;
        }
    }
    let mut groups: Vec<u32> =
        (0..size.len() as u32).filter(|&group| size[group as usize] > 1).collect();
    groups.sort_by_key(|&group| (std::cmp::Reverse(size[group as usize]), group));
    groups
}

/// Depth of each block, indexed by its representative node.
fn depths(
    problem: &FusionProblem,
    partition: &Partition,
    order: &[NodeId],
    group: u32,
    direction: Direction,
) -> Vec<u32> {
    let graph = problem.graph();
    let in_group = |node: NodeId| problem.group(node) == Some(group);
    let mut depth = vec![0u32; problem.n_nodes()];
    let mut visit = |block: NodeId| {
        let mut deepest = 0;
        for &member in partition.members(block) {
            let neighbors = match direction {
                Direction::FromSources => graph.predecessors(member),
                Direction::FromSinks => graph.successors(member),
            };
            for &neighbor in neighbors {
                let other = partition.block(neighbor);
                if other == block {
                    continue;
                }
                let has_data = match direction {
                    Direction::FromSources => problem.has_data(neighbor, member),
                    Direction::FromSinks => problem.has_data(member, neighbor),
                };
                let leaves_group = in_group(other) && !(in_group(block) && has_data);
                deepest = deepest.max(depth[other as usize] + u32::from(leaves_group));
            }
        }
        depth[block as usize] = deepest;
    };
    match direction {
        Direction::FromSources => order.iter().for_each(|&block| visit(block)),
        Direction::FromSinks => order.iter().rev().for_each(|&block| visit(block)),
    }
    depth
}

fn merge_equal_depths(
    problem: &FusionProblem,
    partition: &mut Partition,
    group: u32,
    depth: &[u32],
    newest_reader: &mut [NodeId],
) {
    // The nodes of a group are alone in their blocks until its turn comes.
    let mut members: Vec<NodeId> =
        (0..problem.n_nodes() as u32).filter(|&node| problem.group(node) == Some(group)).collect();
    members.sort_by_key(|&node| depth[node as usize]);
    // Members come depth by depth, so the newest reader is of the same depth if any is.
    let same_depth = |a: NodeId, b: NodeId| depth[a as usize] == depth[b as usize];
    let pairs = connections(problem, members, newest_reader, same_depth);
    partition.merge_pairs(&pairs);
}
