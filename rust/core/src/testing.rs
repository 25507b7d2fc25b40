//! Strategies for graphs, and a naive reachability, for property tests; the tests of
//! `pytensor-fuse-layout` include this file.

#![allow(clippy::expect_used)]

use crate::{Budget, Graph, NodeId};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// Node count and edges of a directed graph without self-loops, cycles allowed.
pub(crate) fn digraphs(max_nodes: usize) -> impl Strategy<Value = (usize, Vec<(NodeId, NodeId)>)> {
    (0..=max_nodes).prop_flat_map(|n_nodes| {
        let edge = (any::<Index>(), any::<Index>());
        vec(edge, if n_nodes < 2 { 0..=0 } else { 0..=2 * n_nodes }).prop_map(move |picks| {
            let edges = picks.iter().map(|(a, b)| {
                let source = a.index(n_nodes);
                let target = (source + 1 + b.index(n_nodes - 1)) % n_nodes;
                (source as NodeId, target as NodeId)
            });
            (n_nodes, edges.collect())
        })
    })
}

/// An acyclic graph: every edge goes forward in a random order of the nodes.
pub(crate) fn dags(max_nodes: usize) -> impl Strategy<Value = Graph> {
    digraphs(max_nodes)
        .prop_flat_map(|(n_nodes, edges)| {
            let order: Vec<NodeId> = (0..n_nodes as NodeId).collect();
            (Just(edges), Just(order).prop_shuffle())
        })
        .prop_map(|(edges, order)| {
            let forward = edges.iter().map(|&(a, b)| (a.min(b), a.max(b)));
            let (sources, targets): (Vec<_>, Vec<_>) =
                forward.map(|(a, b)| (order[a as usize], order[b as usize])).unzip();
            Graph::new(order.len(), &sources, &targets, &Budget::unlimited())
                .expect("edges are in range")
        })
}

/// `reach[a][b]`: whether a path of at least one edge leads from `a` to `b`. O(n m).
pub(crate) fn reachability(graph: &Graph) -> Vec<Vec<bool>> {
    let n_nodes = graph.n_nodes();
    let mut reach = vec![vec![false; n_nodes]; n_nodes];
    for (start, reached) in reach.iter_mut().enumerate() {
        let mut stack = vec![start as NodeId];
        while let Some(node) = stack.pop() {
            for &next in graph.successors(node) {
                if !std::mem::replace(&mut reached[next as usize], true) {
                    stack.push(next);
                }
            }
        }
    }
    reach
}

/// Whether no node reaches itself.
pub(crate) fn is_acyclic(graph: &Graph) -> bool {
    reachability(graph).iter().enumerate().all(|(node, reached)| !reached[node])
}
