//! Regions of a graph, each of which is compiled as one.
//!
//! # Problem
//! Some nodes are *native*. Native nodes can form regions, each of which runs as one, so no path
//! may leave a region and come back, and the graph of all regions and other nodes must be acyclic.
//! Each region is a call, so there should be few regions, and few edges between them.
//!
//! # Approach
//! The *level* of a node is the largest number of times that a path to it leads from a native node
//! to one that is not. The native nodes of one level can be one region, connected or not: no path
//! between two of them leads through any other node. On a path with the most changes, no two native
//! nodes of different levels can share a region, so no partition has fewer regions.
//!
//! Levels alone separate nodes that belong together: a node without native ancestors is of level 0,
//! wherever it is read. So connected blocks are formed first, and levels are those of blocks.
//! Blocks may need more levels than nodes; the levels of nodes are used in this case.
//!
//! # Source
//! K. Kennedy, K. McKinley, "Maximizing loop parallelism and improving data locality via loop
//! fusion and distribution", LCPC 1993: typed fusion. This is the case of one type without
//! fusion-preventing edges.

use crate::budget::Budget;
use crate::convex::{NEVER, convex_subgraphs};
use crate::error::Result;
use crate::graph::Graph;
use crate::ids::check_same_length;
use crate::quotient::Quotient;
use crate::toposort::toposort;

/// Partitions the nodes into as few regions of native nodes as possible, and other nodes alone.
///
/// # Arguments
/// * `is_native`: one per node.
///
/// # Returns
/// The number of the region of each node. Every edge between two regions goes from a smaller to a
/// larger number. A node that is not native is a region of its own; a region of native nodes need
/// not be connected. The result is deterministic.
///
/// # Errors
/// [`crate::Error::Cycle`] if the graph has one, [`crate::Error::LengthMismatch`] unless there is
/// one entry per node, [`crate::Error::Interrupted`].
///
/// # Complexity
/// That of [`convex_subgraphs`]; the rest is O(n log n + m).
///
/// # Examples
/// ```
/// use pytensor_fuse_core::{Budget, Error, Graph, regions::native_regions};
///
/// let budget = Budget::unlimited();
/// // 0 -> 1 -> 2 -> 3 with 1 not native, and 4 -> 3: the region of 4 is that of its reader.
/// let graph = Graph::new(5, &[0, 1, 2, 4], &[1, 2, 3, 3], &budget)?;
/// let regions = native_regions(&graph, &[true, false, true, true, true], &budget)?;
/// assert_eq!(regions, [0, 1, 2, 2, 2]);
/// # Ok::<(), Error>(())
/// ```
pub fn native_regions(graph: &Graph, is_native: &[bool], budget: &Budget) -> Result<Vec<u32>> {
    check_same_length(("is_native", is_native.len()), ("nodes", graph.n_nodes()))?;
    let nodes: Vec<u32> = (0..graph.n_nodes() as u32).collect();
    let labels: Vec<i64> = is_native.iter().map(|&native| if native { 0 } else { NEVER }).collect();
    let blocks = convex_subgraphs(graph, &labels, budget)?;
    let of_nodes = by_level(graph, &nodes, is_native, budget)?;
    let of_blocks = by_level(graph, &blocks, is_native, budget)?;
    let regions = if of_blocks.1 > of_nodes.1 { of_nodes.0 } else { of_blocks.0 };
    Ok(Quotient::from_blocks(graph, &regions, budget)?.partition())
}

/// Unites the blocks of native nodes of each level, and returns the region of each node and the
/// number of levels with native nodes.
fn by_level(
    graph: &Graph,
    blocks: &[u32],
    is_native: &[bool],
    budget: &Budget,
) -> Result<(Vec<u32>, u32)> {
    let contracted = graph.contracted(blocks, budget)?;
    let mut native = vec![false; contracted.n_nodes()];
    blocks.iter().zip(is_native).for_each(|(&block, &is)| native[block as usize] = is);
    let mut levels = vec![0u32; contracted.n_nodes()];
    for block in toposort(&contracted, None, budget)? {
        let before = contracted.predecessors(block);
        budget.check(1 + before.len())?;
        let level = before.iter().map(|&other| {
            let leaves = native[other as usize] && !native[block as usize];
            levels[other as usize] + u32::from(leaves)
        });
        levels[block as usize] = level.max().unwrap_or(0);
    }
    // Levels without native blocks have no region.
    let mut region_of_level: Vec<Option<u32>> = Vec::new();
    let mut n_regions = 0;
    let mut regions = vec![0; native.len()];
    for block in 0..native.len() {
        let level = levels[block] as usize;
        region_of_level.resize(region_of_level.len().max(level + 1), None);
        let known = if native[block] { region_of_level[level] } else { None };
        regions[block] = known.unwrap_or(n_regions);
        if known.is_none() {
            n_regions += 1;
        }
        if native[block] {
            region_of_level[level] = Some(regions[block]);
        }
    }
    let n_levels = region_of_level.iter().flatten().count() as u32;
    Ok((blocks.iter().map(|&block| regions[block as usize]).collect(), n_levels))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::error::Error;
    use crate::testing::{dags, is_acyclic};
    use proptest::prelude::*;

    fn problems(max_nodes: usize) -> impl Strategy<Value = (Graph, Vec<bool>)> {
        dags(max_nodes).prop_flat_map(|graph| {
            let natives = proptest::collection::vec(any::<bool>(), graph.n_nodes());
            (Just(graph), natives)
        })
    }

    fn is_partition(graph: &Graph, is_native: &[bool], regions: &[u32]) -> bool {
        let together = |a: usize, b: usize| a != b && regions[a] == regions[b];
        (0..regions.len()).all(|a| is_native[a] || (0..regions.len()).all(|b| !together(a, b)))
            && graph.edges().all(|(a, b)| regions[a as usize] <= regions[b as usize])
    }

    fn n_native(is_native: &[bool], regions: &[u32]) -> usize {
        let mut found: Vec<u32> =
            (0..regions.len()).filter(|&i| is_native[i]).map(|i| regions[i]).collect();
        found.sort_unstable();
        found.dedup();
        found.len()
    }

    /// The least number of regions, found by trying all partitions of the native nodes.
    fn fewest(graph: &Graph, is_native: &[bool]) -> usize {
        fn go(graph: &Graph, natives: &[usize], blocks: &mut Vec<u32>, used: &[u32]) -> usize {
            let Some((&node, rest)) = natives.split_first() else { return used.len() };
            let own = blocks[node];
            let mut best = usize::MAX;
            for choice in used.iter().copied().chain([own]) {
                blocks[node] = choice;
                let mut dense = blocks.clone();
                let mut numbers = dense.clone();
                numbers.sort_unstable();
                numbers.dedup();
                dense.iter_mut().for_each(|block| {
                    *block = numbers.binary_search(block).unwrap() as u32;
                });
                // Further merges do not remove a cycle, unless they merge all of it.
                let used: Vec<u32> = if choice == own {
                    used.iter().copied().chain([own]).collect()
                } else {
                    used.to_vec()
                };
                let found = go(graph, rest, blocks, &used);
                if found < best
                    && (!rest.is_empty()
                        || is_acyclic(&graph.contracted(&dense, &Budget::unlimited()).unwrap()))
                {
                    best = found;
                }
            }
            blocks[node] = own;
            best
        }
        let natives: Vec<usize> = (0..is_native.len()).filter(|&i| is_native[i]).collect();
        let mut blocks: Vec<u32> = (0..is_native.len() as u32).collect();
        go(graph, &natives, &mut blocks, &[])
    }

    #[test]
    fn nothing_and_no_native_node() {
        let empty = Graph::new(0, &[], &[], &Budget::unlimited()).unwrap();
        assert_eq!(native_regions(&empty, &[], &Budget::unlimited()).unwrap(), [0u32; 0]);
        let graph = Graph::new(3, &[2], &[0], &Budget::unlimited()).unwrap();
        let mut regions = native_regions(&graph, &[false; 3], &Budget::unlimited()).unwrap();
        regions.sort_unstable();
        assert_eq!(regions, [0, 1, 2]);
    }

    #[test]
    fn what_is_not_connected_is_one_region() {
        let graph = Graph::new(4, &[0, 2], &[1, 3], &Budget::unlimited()).unwrap();
        assert_eq!(native_regions(&graph, &[true; 4], &Budget::unlimited()).unwrap(), [0; 4]);
    }

    #[test]
    fn nodes_are_taken_where_blocks_need_more() {
        // 0 and 4 are a block, which comes after 1 and before 5.
        let is_native = [true, true, false, false, true, true];
        let graph =
            Graph::new(6, &[1, 0, 2, 0, 3], &[2, 3, 4, 4, 5], &Budget::unlimited()).unwrap();
        let blocks =
            convex_subgraphs(&graph, &[0, 0, NEVER, NEVER, 0, 0], &Budget::unlimited()).unwrap();
        assert_eq!(blocks[0], blocks[4]);
        assert_eq!(by_level(&graph, &blocks, &is_native, &Budget::unlimited()).unwrap().1, 3);
        assert_eq!(
            native_regions(&graph, &is_native, &Budget::unlimited()).unwrap(),
            [0, 0, 1, 2, 3, 3]
        );
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let cycle = Graph::new(2, &[0, 1], &[1, 0], &Budget::unlimited()).unwrap();
        assert!(matches!(
            native_regions(&cycle, &[true], &Budget::unlimited()),
            Err(Error::LengthMismatch { .. })
        ));
        for natives in [[true, true], [true, false], [false, false]] {
            let refused = native_regions(&cycle, &natives, &Budget::unlimited());
            assert_eq!(refused, Err(Error::Cycle { nodes: vec![0, 1] }));
        }
    }

    proptest! {
        #[test]
        fn regions_are_few((graph, is_native) in problems(8)) {
            let regions = native_regions(&graph, &is_native, &Budget::unlimited()).unwrap();
            prop_assert!(is_partition(&graph, &is_native, &regions));
            prop_assert_eq!(n_native(&is_native, &regions), fewest(&graph, &is_native));
        }

        #[test]
        fn no_two_regions_can_be_merged((graph, is_native) in problems(25)) {
            let regions = native_regions(&graph, &is_native, &Budget::unlimited()).unwrap();
            prop_assert!(is_partition(&graph, &is_native, &regions));
            prop_assert!(is_acyclic(&graph.contracted(&regions, &Budget::unlimited()).unwrap()));
            let natives: Vec<usize> = (0..regions.len()).filter(|&i| is_native[i]).collect();
            for &a in &natives {
                for &b in natives.iter().filter(|&&b| regions[b] != regions[a]) {
                    let merged: Vec<u32> = regions
                        .iter()
                        .map(|&region| if region == regions[b] { regions[a] } else { region })
                        .collect();
                    prop_assert!(!is_acyclic(&graph.contracted(&merged, &Budget::unlimited()).unwrap()));
                }
            }
        }
    }
}
