//! Rows compared with the closure of the quotient, which searches find.

#![allow(clippy::unwrap_used)]

use super::bits::intersects;
use super::*;
use crate::testing::{digraphs, is_acyclic, reachability};
use proptest::prelude::*;

fn members(row: &[u64], n_nodes: usize) -> Vec<NodeId> {
    (0..n_nodes as NodeId).filter(|&node| is_in(row, node)).collect()
}

/// The ancestors of each node in the quotient by `blocks`, by searches.
fn expected(graph: &Graph, blocks: &[u32]) -> Vec<Vec<NodeId>> {
    let reach = reachability(&graph.contracted(blocks, &Budget::unlimited()).unwrap());
    let ancestors = |&block: &u32| {
        let is_before = |other: u32| other == block || reach[other as usize][block as usize];
        (0u32..).zip(blocks).filter(|&(_, &b)| is_before(b)).map(|(node, _)| node).collect()
    };
    blocks.iter().map(ancestors).collect()
}

#[test]
fn limits_are_in_bytes() {
    assert!(fits(0, 0));
    assert!(fits(64, 512));
    assert!(!fits(65, 65 * 16 - 1));
    assert!(!fits(usize::MAX, usize::MAX - 1));
}

proptest! {
    #[test]
    fn rows_are_the_closure_of_the_quotient(
        (n_nodes, edges) in digraphs(100),
        picks in proptest::collection::vec(
            (proptest::collection::vec(any::<u16>(), 2..4), any::<u8>()), 0..90
        )
    ) {
        let (sources, targets): (Vec<_>, Vec<_>) =
            edges.iter().map(|&(a, b)| (a.min(b), a.max(b))).unzip();
        let graph = Graph::new(n_nodes, &sources, &targets, &Budget::unlimited()).unwrap();
        let budget = Budget::unlimited();
        let mut closure = DenseClosure::new(&graph, &budget).unwrap();
        let mut blocks: Vec<u32> = (0..n_nodes as u32).collect();
        let mut clusters: Vec<Vec<NodeId>> = Vec::new();
        // Members from which another is reached: their sets are not maintained.
        let mut inner: Vec<NodeId> = Vec::new();
        for (pick, action) in picks.iter().filter(|_| n_nodes > 0) {
            let mut nodes: Vec<NodeId> =
                pick.iter().map(|&node| NodeId::from(node) % n_nodes as u32).collect();
            nodes.sort_unstable();
            nodes.dedup();
            let mut merged = blocks.clone();
            nodes.iter().for_each(|&node| merged[node as usize] = nodes[0]);
            let is_new = nodes.iter().all(|node| !clusters.concat().contains(node));
            if !is_new || !is_acyclic(&graph.contracted(&merged, &Budget::unlimited()).unwrap()) {
                continue;
            }
            let mut combined = closure.empty_row();
            for &node in &nodes {
                closure.refresh(node).unwrap();
                or_into(&mut combined, closure.row(node));
            }
            let leads_inside = |node: NodeId| {
                let mut clients = graph.successors(node).iter();
                clients.len() > 0 && clients.all(|client| nodes.contains(client))
            };
            let (within, outputs): (Vec<NodeId>, Vec<NodeId>) =
                nodes.iter().copied().partition(|&node| leads_inside(node));
            inner.extend(within);
            if outputs.len() > 1 {
                closure.contract(&outputs, &combined).unwrap();
            }
            clusters.push(nodes);
            blocks = merged;
            // Some rows catch up now, others later or by all contractions at once.
            match action {
                0..40 => closure.settle(usize::from(*action) << 10).unwrap(),
                _ => closure.refresh(NodeId::from(*action) % n_nodes as u32).unwrap(),
            }
        }
        let expected = expected(&graph, &blocks);
        for node in (0..n_nodes as NodeId).filter(|node| !inner.contains(node)) {
            closure.refresh(node).unwrap();
            prop_assert_eq!(members(closure.row(node), n_nodes), &expected[node as usize][..]);
        }
        for (a, b) in edges {
            closure.refresh(a).unwrap();
            closure.refresh(b).unwrap();
            let [in_a, in_b] = [a, b].map(|node| members(closure.row(node), n_nodes));
            let by_last = in_a.iter().rev().cmp(in_b.iter().rev());
            prop_assert_eq!(closure.compare(a, b), by_last);
            let has_common = in_a.iter().any(|node| in_b.contains(node));
            prop_assert_eq!(intersects(closure.row(a), closure.row(b)), has_common);
        }
    }
}
