//! Strongly connected components.
//!
//! # Problem
//! The nodes of a cycle have no topological order, but the components of nodes that reach one
//! another have one.
//!
//! # Approach
//! One depth-first search with a stack of its own, so that no graph is too deep for it. A component
//! is complete when the search leaves the first node of the component that it met.
//!
//! # Rejected
//! Two searches, on the graph and on its reverse: the same result, but each edge is read twice.
//!
//! # Source
//! R. Tarjan, "Depth-first search and linear graph algorithms", SIAM Journal on Computing 1 (1972).
//! As in E. Nuutila and E. Soisalon-Soininen, "On finding the strongly connected components in a
//! directed graph", Information Processing Letters 49 (1994), nodes are put on the second stack
//! only when the search leaves them.

use crate::budget::Budget;
use crate::error::Result;
use crate::graph::{Graph, NodeId};

const UNSEEN: u32 = u32::MAX;

/// The component of each node. Components have dense numbers in a topological order: every edge
/// between two of them goes from a smaller to a larger number.
///
/// # Errors
/// [`crate::Error::Interrupted`].
///
/// # Complexity
/// O(n + m).
///
/// # Examples
/// ```
/// use pytensor_fuse_core::{Budget, Graph, scc::components};
///
/// // 0 -> 1 <-> 2 -> 3
/// let budget = Budget::unlimited();
/// let graph = Graph::new(4, &[0, 1, 2, 2], &[1, 2, 1, 3], &budget)?;
/// assert_eq!(components(&graph, &budget)?, [0, 1, 1, 2]);
/// # Ok::<(), pytensor_fuse_core::Error>(())
/// ```
pub fn components(graph: &Graph, budget: &Budget) -> Result<Vec<u32>> {
    let n_nodes = graph.n_nodes() as u32;
    // The time at which a node was met; once its component is complete, the number of the
    // component.
    let mut mark = vec![UNSEEN; graph.n_nodes()];
    let mut is_done = vec![false; graph.n_nodes()];
    // For each node, a time no later than its own: that of an open node that the search has reached
    // by edges from this node and from nodes below it.
    let mut lowest = vec![UNSEEN; graph.n_nodes()];
    let mut waiting: Vec<NodeId> = Vec::new();
    let mut path: Vec<(NodeId, u32)> = Vec::new();
    let (mut time, mut n_components) = (0u32, 0u32);
    // A component is complete after all components that it leads to. Starting from the last node
    // keeps the numbers, which are reversed in the end, near the order of the ids.
    for start in (0..n_nodes).rev() {
        if mark[start as usize] != UNSEEN {
            continue;
        }
        path.push((start, 0));
        while let Some((node, position)) = path.last_mut() {
            let (node, next) = (*node, *position as usize);
            if next == 0 && mark[node as usize] == UNSEEN {
                mark[node as usize] = time;
                lowest[node as usize] = time;
                time += 1;
                budget.check(4 + graph.successors(node).len())?;
            }
            if let Some(&target) = graph.successors(node).get(next) {
                *position += 1;
                if mark[target as usize] == UNSEEN {
                    path.push((target, 0));
                } else if !is_done[target as usize] {
                    let low = lowest[node as usize].min(lowest[target as usize]);
                    lowest[node as usize] = low;
                }
                continue;
            }
            path.pop();
            if lowest[node as usize] == mark[node as usize] {
                let members =
                    waiting.iter().rposition(|&other| mark[other as usize] < mark[node as usize]);
                let first = members.map_or(0, |position| position + 1);
                for member in waiting.drain(first..).chain([node]) {
                    mark[member as usize] = n_components;
                    is_done[member as usize] = true;
                }
                n_components += 1;
            } else {
                waiting.push(node);
            }
            if let Some(&(parent, _)) = path.last()
                && !is_done[node as usize]
            {
                let low = lowest[parent as usize].min(lowest[node as usize]);
                lowest[parent as usize] = low;
            }
        }
    }
    Ok(mark.into_iter().map(|number| n_components - 1 - number).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::testing::{dags, digraphs, reachability};
    use proptest::prelude::*;

    #[test]
    fn a_long_path_and_a_long_cycle() {
        let n_nodes = 200_000;
        let sources: Vec<u32> = (0..n_nodes - 1).collect();
        let targets: Vec<u32> = (1..n_nodes).collect();
        let path = Graph::new(n_nodes as usize, &sources, &targets, &Budget::unlimited()).unwrap();
        assert_eq!(
            components(&path, &Budget::unlimited()).unwrap(),
            (0..n_nodes).collect::<Vec<_>>()
        );
        let (sources, targets) =
            ([&sources[..], &[n_nodes - 1]].concat(), [&targets[..], &[0]].concat());
        let cycle = Graph::new(n_nodes as usize, &sources, &targets, &Budget::unlimited()).unwrap();
        assert_eq!(components(&cycle, &Budget::unlimited()).unwrap(), vec![0; n_nodes as usize]);
    }

    #[test]
    fn no_nodes() {
        assert_eq!(
            components(
                &Graph::new(0, &[], &[], &Budget::unlimited()).unwrap(),
                &Budget::unlimited()
            ),
            Ok(Vec::new())
        );
    }

    proptest! {
        #[test]
        fn components_reach_themselves((n_nodes, edges) in digraphs(14)) {
            let (sources, targets): (Vec<_>, Vec<_>) = edges.iter().copied().unzip();
            let graph = Graph::new(n_nodes, &sources, &targets, &Budget::unlimited()).unwrap();
            let found = components(&graph, &Budget::unlimited()).unwrap();
            let reach = reachability(&graph);
            for a in 0..n_nodes {
                for b in 0..n_nodes {
                    let together = a == b || (reach[a][b] && reach[b][a]);
                    prop_assert_eq!(found[a] == found[b], together);
                    prop_assert!(!reach[a][b] || found[a] <= found[b]);
                }
            }
            let n_components = found.iter().map(|&c| c + 1).max().unwrap_or(0);
            prop_assert!((0..n_components).all(|c| found.contains(&c)));
        }

        #[test]
        fn what_has_no_cycle_has_a_component_for_each_node(graph in dags(14)) {
            let mut found = components(&graph, &Budget::unlimited()).unwrap();
            found.sort_unstable();
            prop_assert!(found.into_iter().eq(0..graph.n_nodes() as u32));
        }
    }
}
