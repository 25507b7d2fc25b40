//! Convex sets of nodes: those that can be contracted without making a cycle.
//!
//! A set is convex if no path leaves it and comes back. A partition into convex sets can still
//! have a cycle in its quotient graph (`a1 -> b1` and `b2 -> a2` with blocks `{a1, a2}` and
//! `{b1, b2}`), so [`convex_subgraphs`] considers all blocks together.

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::graph::{Graph, NodeId};
use crate::ids::{check_id, check_same_length};
use crate::quotient::{BlockId, Quotient};

/// Number of steps for sorting a block among others.
const SORTED: usize = 8;

/// The label of a node that stays alone.
pub const NEVER: i64 = -1;

/// Whether no path between two of `nodes` leads through another node.
///
/// # Arguments
/// * `nodes`: node ids, repetitions allowed.
///
/// # Errors
/// [`Error::OutOfRange`] names an id that the graph does not have; [`Error::Interrupted`].
///
/// # Complexity
/// O(n + m): a search from the edges that leave the set.
///
/// # Examples
/// ```
/// use pytensor_fuse_core::{Budget, Error, Graph, convex::is_convex};
///
/// let budget = Budget::unlimited();
/// let graph = Graph::new(3, &[0, 1, 0], &[1, 2, 2], &budget)?;
/// assert!(is_convex(&graph, &[0, 1], &budget)?);
/// assert!(!is_convex(&graph, &[0, 2], &budget)?);
/// # Ok::<(), Error>(())
/// ```
pub fn is_convex(graph: &Graph, nodes: &[NodeId], budget: &Budget) -> Result<bool> {
    let mut is_member = vec![false; graph.n_nodes()];
    for &node in nodes {
        check_id("node", node, graph.n_nodes())?;
        is_member[node as usize] = true;
    }
    let mut is_outside = vec![false; graph.n_nodes()];
    let mut stack: Vec<NodeId> = Vec::new();
    let leave = |node: NodeId, stack: &mut Vec<NodeId>, is_outside: &mut Vec<bool>| {
        for &next in graph.successors(node) {
            if !is_member[next as usize] && !is_outside[next as usize] {
                is_outside[next as usize] = true;
                stack.push(next);
            }
        }
    };
    for &node in nodes {
        budget.check(1 + graph.successors(node).len())?;
        leave(node, &mut stack, &mut is_outside);
    }
    while let Some(node) = stack.pop() {
        budget.check(1 + graph.successors(node).len())?;
        if graph.successors(node).iter().any(|&next| is_member[next as usize]) {
            return Ok(false);
        }
        leave(node, &mut stack, &mut is_outside);
    }
    Ok(true)
}

/// Partitions the nodes into connected blocks of one label each, such that the quotient graph of
/// all blocks together is acyclic and no two adjacent blocks of one label can still be merged.
///
/// # Arguments
/// * `labels`: one per node: [`NEVER`] (-1), or a group `>= 0`. Only nodes of one group, joined by
///   edges within the group, share a block.
///
/// # Returns
/// The number of the block of each node. Blocks are numbered in a topological order of the
/// quotient: every edge between two blocks goes from a smaller to a larger number. The result is
/// deterministic. It is one of many maximal partitions, and not always a smallest one: finding
/// that is NP-hard.
///
/// # Errors
/// [`Error::Cycle`] if the graph has one, [`Error::LengthMismatch`] unless there is one label per
/// node, [`Error::Inconsistent`] names a label below -1; [`Error::Interrupted`].
///
/// # Complexity
/// That of [`crate::toposort`], and one search of [`Quotient`] per tested pair of adjacent blocks.
/// The searches are short on graphs with short edges: near-linear there, O(m^2) at worst.
///
/// # Source
/// Greedy contraction on a maintained topological order, as [`crate::quotient`] describes. Typed
/// fusion (K. Kennedy, K. McKinley, "Typed fusion with applications to parallel and sequential
/// code generation", Rice University TR93-208, 1993) as a first pass was measured: it took longer
/// than all merges together and left slightly more blocks.
///
/// # Examples
/// ```
/// use pytensor_fuse_core::{Budget, Error, Graph, convex::convex_subgraphs};
///
/// let budget = Budget::unlimited();
/// // 0 -> 1 -> 3 -> 4 and 0 -> 2 -> 3: node 2 is in the way of fusing 0 and 1 with 3 and 4.
/// let graph = Graph::new(5, &[0, 1, 3, 0, 2], &[1, 3, 4, 2, 3], &budget)?;
/// assert_eq!(convex_subgraphs(&graph, &[0, 0, -1, 0, 0], &budget)?, [0, 0, 1, 2, 2]);
/// assert_eq!(convex_subgraphs(&graph, &[0, 0, 0, 0, 0], &budget)?, [0, 0, 0, 0, 0]);
/// # Ok::<(), Error>(())
/// ```
pub fn convex_subgraphs(graph: &Graph, labels: &[i64], budget: &Budget) -> Result<Vec<u32>> {
    check_same_length(("labels", labels.len()), ("nodes", graph.n_nodes()))?;
    if let Some(node) = labels.iter().position(|&label| label < NEVER) {
        return Err(Error::Inconsistent(format!(
            "node {node} has label {}; labels are -1 (never fused) or a group >= 0",
            labels[node]
        )));
    }
    let singletons: Vec<BlockId> = (0..graph.n_nodes() as BlockId).collect();
    let mut quotient = Quotient::from_blocks(graph, &singletons, budget)?;
    merge_along_edges(&mut quotient, graph, labels, budget)?;
    merge_to_fixpoint(&mut quotient, labels, budget)?;
    Ok(quotient.partition())
}

/// Tries to merge the ends of each edge once, in topological order of the sources. Each node must
/// be a block of its own before.
///
/// This pass does nearly all merges, in an order that keeps blocks local and thus searches short:
/// growing each block to the end before the next, as [`merge_to_fixpoint`] does, took two to three
/// times as long.
fn merge_along_edges(
    quotient: &mut Quotient,
    graph: &Graph,
    labels: &[i64],
    budget: &Budget,
) -> Result<()> {
    let sources: Vec<NodeId> = quotient.blocks().collect();
    for source in sources {
        let label = labels[source as usize];
        let has_label = |node: &&NodeId| label != NEVER && labels[**node as usize] == label;
        for &target in graph.successors(source).iter().filter(has_label) {
            if quotient.can_merge(source, target, budget)? {
                quotient.merge(source, target, budget)?;
            }
        }
    }
    Ok(())
}

/// Merges adjacent blocks of one label until none can be.
///
/// Merging two blocks removes nothing from any path between two others, so a refused pair needs
/// another test only after one of the two has grown: hence the worklist.
fn merge_to_fixpoint(quotient: &mut Quotient, labels: &[i64], budget: &Budget) -> Result<()> {
    let is_fusable = |block: &BlockId| labels[*block as usize] != NEVER;
    let starts: Vec<BlockId> = quotient.blocks().filter(is_fusable).collect();
    let (mut after, mut before) = (Vec::new(), Vec::new());
    for start in starts {
        // A block that was merged into an earlier one is done.
        if quotient.find(start) != start {
            continue;
        }
        let mut block = start;
        let mut has_grown = true;
        while has_grown {
            has_grown = false;
            quotient.successors(block, &mut after, budget)?;
            quotient.predecessors(block, &mut before, budget)?;
            let label = labels[block as usize];
            after.retain(|&other| labels[other as usize] == label);
            before.retain(|&other| labels[other as usize] == label);
            // Nearest first: blocks between two others can only obstruct their merge.
            after.sort_by_cached_key(|&other| quotient.position(other));
            before.sort_by_cached_key(|&other| std::cmp::Reverse(quotient.position(other)));
            budget.check(SORTED * (after.len() + before.len()))?;
            for &other in after.iter().chain(&before) {
                if quotient.can_merge(block, other, budget)? {
                    block = quotient.merge(block, other, budget)?;
                    has_grown = true;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::testing::{dags, digraphs, is_acyclic, reachability};
    use proptest::prelude::*;

    fn labelled_dags() -> impl Strategy<Value = (Graph, Vec<i64>)> {
        dags(14).prop_flat_map(|graph| {
            let labels = proptest::collection::vec(NEVER..3, graph.n_nodes());
            (Just(graph), labels)
        })
    }

    /// Whether the nodes of one block are connected by the edges between them.
    fn is_connected(graph: &Graph, blocks: &[u32], block: u32) -> bool {
        let members: Vec<usize> = (0..blocks.len()).filter(|&i| blocks[i] == block).collect();
        let mut reached = vec![members[0]];
        let mut cursor = 0;
        while let Some(&node) = reached.get(cursor) {
            for (a, b) in graph.edges() {
                for (from, to) in [(a as usize, b as usize), (b as usize, a as usize)] {
                    if from == node && blocks[to] == block && !reached.contains(&to) {
                        reached.push(to);
                    }
                }
            }
            cursor += 1;
        }
        reached.len() == members.len()
    }

    fn check(graph: &Graph, labels: &[i64], blocks: &[u32]) {
        assert!(is_acyclic(&graph.contracted(blocks, &Budget::unlimited()).unwrap()));
        assert!(graph.edges().all(|(a, b)| blocks[a as usize] <= blocks[b as usize]));
        for (node, &block) in blocks.iter().enumerate() {
            let mates = (0..blocks.len()).filter(|&other| blocks[other] == block);
            if labels[node] == NEVER {
                assert_eq!(mates.count(), 1);
            } else {
                assert!(mates.into_iter().all(|other| labels[other] == labels[node]));
            }
            assert!(is_connected(graph, blocks, block));
        }
        for (a, b) in graph.edges() {
            let (a, b) = (a as usize, b as usize);
            if blocks[a] != blocks[b] && labels[a] == labels[b] && labels[a] != NEVER {
                let merged: Vec<u32> =
                    blocks.iter().map(|&c| if c == blocks[b] { blocks[a] } else { c }).collect();
                assert!(
                    !is_acyclic(&graph.contracted(&merged, &Budget::unlimited()).unwrap()),
                    "not maximal"
                );
            }
        }
    }

    #[test]
    fn blocks_are_acyclic_together() {
        // a1 -> b1 and b2 -> a2 with the bridges a1 -> a2 and b2 -> b1.
        let graph = Graph::new(4, &[0, 3, 0, 3], &[1, 2, 2, 1], &Budget::unlimited()).unwrap();
        let labels = [0, 1, 0, 1];
        let blocks = convex_subgraphs(&graph, &labels, &Budget::unlimited()).unwrap();
        check(&graph, &labels, &blocks);
        assert_eq!(blocks.iter().max(), Some(&2));
    }

    #[test]
    fn bad_labels_are_refused() {
        let graph = Graph::new(2, &[0], &[1], &Budget::unlimited()).unwrap();
        assert!(matches!(
            convex_subgraphs(&graph, &[0], &Budget::unlimited()),
            Err(Error::LengthMismatch { .. })
        ));
        assert!(matches!(
            convex_subgraphs(&graph, &[0, -2], &Budget::unlimited()),
            Err(Error::Inconsistent(_))
        ));
        assert!(matches!(
            is_convex(&graph, &[2], &Budget::unlimited()),
            Err(Error::OutOfRange { id: 2, .. })
        ));
    }

    #[test]
    fn cycles_are_refused() {
        let graph = Graph::new(2, &[0, 1], &[1, 0], &Budget::unlimited()).unwrap();
        assert_eq!(
            convex_subgraphs(&graph, &[0, 0], &Budget::unlimited()),
            Err(Error::Cycle { nodes: vec![0, 1] })
        );
    }

    proptest! {
        #[test]
        fn partitions_are_legal_and_maximal((graph, labels) in labelled_dags()) {
            let blocks = convex_subgraphs(&graph, &labels, &Budget::unlimited()).unwrap();
            check(&graph, &labels, &blocks);
        }

        #[test]
        fn convexity_is_by_paths(
            ((n_nodes, edges), picks) in (digraphs(10), any::<u16>())
        ) {
            let (sources, targets): (Vec<_>, Vec<_>) = edges.into_iter().unzip();
            let graph = Graph::new(n_nodes, &sources, &targets, &Budget::unlimited()).unwrap();
            let is_member = |node: usize| picks >> node & 1 == 1;
            let nodes: Vec<_> =
                (0..n_nodes).filter(|&i| is_member(i)).map(|i| i as NodeId).collect();
            let reach = reachability(&graph);
            let comes_back = |outside: usize| {
                (0..n_nodes).any(|a| is_member(a) && reach[a][outside])
                    && (0..n_nodes).any(|b| is_member(b) && reach[outside][b])
            };
            let expected = !(0..n_nodes).any(|node| !is_member(node) && comes_back(node));
            prop_assert_eq!(is_convex(&graph, &nodes, &Budget::unlimited()).unwrap(), expected);
        }
    }
}
