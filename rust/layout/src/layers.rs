//! The columns of nodes, and the bends of edges over several columns.
//!
//! # Problem
//! Edges go from left to right, and those over several columns go around the nodes between.
//!
//! # Approach
//! The layer of a node is the length of its longest path to a sink, so that a node with one reader
//! stands beside it. An edge gets a bend in each layer between its ends, a vertex with a place in its
//! column like a node; so all links connect neighboring layers.
//!
//! # Rejected
//! - Layers that minimize the total length of edges (network simplex): 13 s, while the rest of the
//!   layout takes less than one.
//! - Bends for every edge: a graph of long edges has many times more bends than nodes.
//!
//! # Source
//! K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of hierarchical system
//! structures", IEEE Transactions on Systems, Man, and Cybernetics 11 (1981), for layers and bends
//! (dummy vertices).

use petgraph::unionfind::UnionFind;
use pytensor_fuse_core::toposort::toposort;
use pytensor_fuse_core::{Budget, Graph, NodeId, Result};

/// The length of the longest path from each node to a sink. The time is that of [`toposort`].
pub(super) fn layers(graph: &Graph, budget: &Budget) -> Result<Vec<u32>> {
    let mut layers = vec![0; graph.n_nodes()];
    for &node in toposort(graph, None, budget)?.iter().rev() {
        budget.check(1 + graph.successors(node).len())?;
        let after = graph.successors(node).iter().map(|&next| layers[next as usize] + 1);
        layers[node as usize] = after.max().unwrap_or(0);
    }
    Ok(layers)
}

/// The graph with bends, a proper layering: every link leads to the next column.
pub(super) struct LayeredGraph {
    /// The layer of each vertex, counted from the sinks.
    pub(super) layers: Vec<u32>,
    /// As [`super::Layout::bends`].
    pub(super) bends: Vec<u32>,
    /// Pairs of vertices, sorted, each once.
    pub(super) links: Vec<(u32, u32)>,
}

impl LayeredGraph {
    /// Adds bends to all edges, except those that are so long that the drawing would not be linear in
    /// the graph. O(m log m).
    pub(super) fn new(mut layers: Vec<u32>, (sources, targets): (&[NodeId], &[NodeId])) -> Self {
        let n_nodes = layers.len();
        let span = |(&a, &b): (&u32, &u32)| layers[a as usize] - layers[b as usize];
        let spans: Vec<u32> = sources.iter().zip(targets).map(span).collect();
        let longest = longest_bent(&spans, 1000 + n_nodes);
        let mut bends = vec![n_nodes as u32];
        let mut links = Vec::with_capacity(sources.len());
        for ((&source, &target), &span) in sources.iter().zip(targets).zip(&spans) {
            // Every node keeps a reader in the next column, since edges of span 1 are never left out.
            if span <= longest {
                let mut last = source;
                for step in 1..span {
                    let bend = layers.len() as u32;
                    layers.push(layers[source as usize] - step);
                    links.push((last, bend));
                    last = bend;
                }
                links.push((last, target));
            }
            bends.push(layers.len() as u32);
        }
        links.sort_unstable();
        links.dedup();
        Self { layers, bends, links }
    }

    /// The vertices of each connected component, ascending. Components are ordered by their first
    /// vertices.
    pub(super) fn components(&self) -> Vec<Vec<u32>> {
        let mut union = UnionFind::new(self.layers.len());
        for &(a, b) in &self.links {
            union.union(a, b);
        }
        let mut position = vec![usize::MAX; self.layers.len()];
        let mut components: Vec<Vec<u32>> = Vec::new();
        for (vertex, root) in (0u32..).zip(union.into_labeling()) {
            let position = &mut position[root as usize];
            if *position == usize::MAX {
                *position = components.len();
                components.push(Vec::new());
            }
            components[*position].push(vertex);
        }
        components
    }
}

/// The longest span of edges whose bends, with those of all shorter edges, are at most `budget`.
pub(super) fn longest_bent(spans: &[u32], budget: usize) -> u32 {
    let mut sorted = spans.to_vec();
    sorted.sort_unstable();
    let mut n_bends = 0usize;
    let mut longest = 1;
    for equal in sorted.chunk_by(|a, b| a == b) {
        n_bends += (equal[0] as usize - 1) * equal.len();
        if n_bends > budget {
            break;
        }
        longest = equal[0];
    }
    longest
}
