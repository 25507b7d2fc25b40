//! Topological order, with ties broken by a key of the caller.

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::graph::{Graph, NodeId};
use crate::ids::check_same_length;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The topological order that takes, at every step, the ready node with the smallest
/// `(key, id)`.
///
/// # Arguments
/// * `graph`: the graph; parallel edges are allowed.
/// * `key`: one number per node, or `None` to break ties by id alone.
///
/// # Returns
/// All nodes, sources before targets. It is the only order with the property above, so it depends
/// only on the graph and the key.
///
/// # Errors
/// [`Error::Cycle`] with the nodes of one cycle, [`Error::LengthMismatch`] if `key` does not have
/// one entry per node, [`Error::Interrupted`].
///
/// # Complexity
/// O(n log n + m). Without a key, O(n + m) when every edge goes from a smaller to a larger id:
/// the order is then that of the ids.
///
/// # Source
/// A. B. Kahn, "Topological sorting of large networks", Communications of the ACM 5 (1962), with
/// a heap for the ready nodes.
///
/// # Examples
/// ```
/// use pytensor_fuse_core::{Budget, Error, Graph, toposort::toposort};
///
/// let budget = Budget::unlimited();
/// let graph = Graph::new(4, &[2, 2, 0, 1], &[0, 1, 3, 3], &budget)?;
/// assert_eq!(toposort(&graph, None, &budget)?, [2, 0, 1, 3]);
/// assert_eq!(toposort(&graph, Some(&[5, 4, 0, 0]), &budget)?, [2, 1, 0, 3]);
///
/// let cyclic = Graph::new(4, &[0, 3, 1, 2], &[3, 1, 3, 0], &budget)?;
/// assert_eq!(toposort(&cyclic, None, &budget), Err(Error::Cycle { nodes: vec![1, 3] }));
/// # Ok::<(), Error>(())
/// ```
pub fn toposort(graph: &Graph, key: Option<&[i64]>, budget: &Budget) -> Result<Vec<NodeId>> {
    budget.check(graph.n_edges())?;
    match key {
        None if graph.edges().all(|(source, target)| source < target) => {
            Ok((0..graph.n_nodes() as NodeId).collect())
        }
        None => kahn(graph, |_| (), budget),
        Some(key) => {
            check_same_length(("key", key.len()), ("nodes", graph.n_nodes()))?;
            kahn(graph, |node| key[node as usize], budget)
        }
    }
}

fn kahn<K: Ord>(graph: &Graph, key: impl Fn(NodeId) -> K, budget: &Budget) -> Result<Vec<NodeId>> {
    let nodes = 0..graph.n_nodes() as NodeId;
    let mut waiting: Vec<usize> =
        nodes.clone().map(|node| graph.predecessors(node).len()).collect();
    let is_ready = |node: &NodeId| waiting[*node as usize] == 0;
    let mut ready: BinaryHeap<_> =
        nodes.filter(is_ready).map(|node| Reverse((key(node), node))).collect();
    let mut order = Vec::with_capacity(graph.n_nodes());
    while let Some(Reverse((_, node))) = ready.pop() {
        order.push(node);
        budget.check(8 + graph.successors(node).len())?;
        for &next in graph.successors(node) {
            waiting[next as usize] -= 1;
            if waiting[next as usize] == 0 {
                ready.push(Reverse((key(next), next)));
            }
        }
    }
    match waiting.iter().position(|&count| count > 0) {
        None => Ok(order),
        Some(start) => Err(Error::Cycle { nodes: one_cycle(graph, &waiting, start as NodeId) }),
    }
}

/// A cycle, in edge order from its smallest id. The walk leads backward from `start`, since each
/// waiting node has a waiting predecessor.
fn one_cycle(graph: &Graph, waiting: &[usize], start: NodeId) -> Vec<NodeId> {
    const UNSEEN: usize = usize::MAX;
    let mut position = vec![UNSEEN; graph.n_nodes()];
    let mut walk = Vec::new();
    let mut node = start;
    while position[node as usize] == UNSEEN {
        position[node as usize] = walk.len();
        walk.push(node);
        let back = graph.predecessors(node).iter().find(|&&before| waiting[before as usize] > 0);
        node = back.copied().unwrap_or(node);
    }
    let mut cycle = walk.split_off(position[node as usize]);
    cycle.reverse();
    let smallest = (0..cycle.len()).min_by_key(|&i| cycle[i]).unwrap_or(0);
    cycle.rotate_left(smallest);
    cycle
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::testing::{dags, digraphs, is_acyclic};
    use proptest::prelude::*;

    /// Repeatedly takes the smallest `(key, id)` among the nodes whose predecessors are all taken.
    fn naive(graph: &Graph, key: &[i64]) -> Vec<NodeId> {
        let mut order: Vec<NodeId> = Vec::new();
        while let Some(node) = (0..graph.n_nodes() as NodeId)
            .filter(|node| !order.contains(node))
            .filter(|&node| graph.predecessors(node).iter().all(|p| order.contains(p)))
            .min_by_key(|&node| (key[node as usize], node))
        {
            order.push(node);
        }
        order
    }

    #[test]
    fn a_key_of_another_length_is_refused() {
        let graph = Graph::new(2, &[], &[], &Budget::unlimited()).unwrap();
        assert_eq!(
            toposort(&graph, Some(&[0]), &Budget::unlimited()),
            Err(Error::LengthMismatch { left: "key", left_len: 1, right: "nodes", right_len: 2 })
        );
    }

    #[test]
    fn the_cycle_leaves_out_what_only_hangs_on_it() {
        // 4 -> 0 -> 2 -> 3 -> 0, and 3 -> 1.
        let graph =
            Graph::new(5, &[4, 0, 2, 3, 3], &[0, 2, 3, 0, 1], &Budget::unlimited()).unwrap();
        assert_eq!(
            toposort(&graph, None, &Budget::unlimited()),
            Err(Error::Cycle { nodes: vec![0, 2, 3] })
        );
    }

    #[test]
    fn deep_chains_do_not_recurse() {
        let n = 200_000;
        let sources: Vec<NodeId> = (1..n).rev().collect();
        let targets: Vec<NodeId> = (0..n - 1).rev().collect();
        let order = toposort(
            &Graph::new(n as usize, &sources, &targets, &Budget::unlimited()).unwrap(),
            None,
            &Budget::unlimited(),
        )
        .unwrap();
        assert!(order.iter().copied().eq((0..n).rev()));
    }

    proptest! {
        #[test]
        fn agrees_with_the_naive_order(
            (graph, key) in dags(14).prop_flat_map(|graph| {
                let key = proptest::collection::vec(-2i64..=2, graph.n_nodes());
                (Just(graph), key)
            })
        ) {
            let ties = vec![0; graph.n_nodes()];
            prop_assert_eq!(toposort(&graph, None, &Budget::unlimited()).unwrap(), naive(&graph, &ties));
            prop_assert_eq!(toposort(&graph, Some(&key), &Budget::unlimited()).unwrap(), naive(&graph, &key));
        }

        #[test]
        fn a_cycle_is_a_cycle((n_nodes, edges) in digraphs(10)) {
            let (sources, targets): (Vec<_>, Vec<_>) = edges.iter().copied().unzip();
            let graph = Graph::new(n_nodes, &sources, &targets, &Budget::unlimited()).unwrap();
            match toposort(&graph, None, &Budget::unlimited()) {
                Ok(order) => {
                    prop_assert!(is_acyclic(&graph));
                    prop_assert_eq!(order.len(), n_nodes);
                }
                Err(Error::Cycle { nodes }) => {
                    prop_assert_eq!(nodes.iter().min(), nodes.first());
                    for (i, &node) in nodes.iter().enumerate() {
                        let next = nodes[(i + 1) % nodes.len()];
                        prop_assert!(graph.successors(node).contains(&next));
                        prop_assert!(!nodes[..i].contains(&node));
                    }
                }
                Err(other) => prop_assert!(false, "{}", other),
            }
        }
    }
}
