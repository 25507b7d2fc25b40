//! A directed graph in compressed sparse rows, both directions.

use crate::error::{Error, Result};

/// Nodes are dense ids `0..n_nodes`.
pub type NodeId = u32;

/// Node counts stay below this, so that `u32::MAX` can mean "none".
pub const MAX_NODES: usize = u32::MAX as usize - 1;

/// An immutable directed graph: successors and predecessors of every node in compressed rows.
///
/// Parallel edges are kept. Within a row, neighbours stand in the order of the edge arrays, so
/// that whatever walks a row does so in an order that its caller chose.
///
/// # Memory
/// `8 * n_nodes + 8 * n_edges` bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    n_nodes: usize,
    successors: Rows,
    predecessors: Rows,
}

/// Compressed rows: row `i` is `items[offsets[i]..offsets[i + 1]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rows {
    offsets: Vec<u32>,
    items: Vec<NodeId>,
}

impl Rows {
    /// Counting sort of `items` by `keys`, stable; O(n + m).
    fn new(n_nodes: usize, keys: &[NodeId], items: &[NodeId]) -> Self {
        let mut offsets = vec![0u32; n_nodes + 1];
        for &key in keys {
            offsets[key as usize + 1] += 1;
        }
        for i in 0..n_nodes {
            offsets[i + 1] += offsets[i];
        }
        let mut next = offsets.clone();
        let mut sorted = vec![0; items.len()];
        for (&key, &item) in keys.iter().zip(items) {
            sorted[next[key as usize] as usize] = item;
            next[key as usize] += 1;
        }
        Self { offsets, items: sorted }
    }

    fn row(&self, node: NodeId) -> &[NodeId] {
        let node = node as usize;
        &self.items[self.offsets[node] as usize..self.offsets[node + 1] as usize]
    }
}

impl Graph {
    /// Builds the graph with edges `sources[i] -> targets[i]`; O(n + m).
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the arrays differ in length, [`Error::EdgeOutOfRange`] and
    /// [`Error::SelfLoop`] name the first bad edge, [`Error::TooLarge`] if an id or an offset
    /// would not fit 32 bits.
    pub fn new(n_nodes: usize, sources: &[NodeId], targets: &[NodeId]) -> Result<Self> {
        if n_nodes > MAX_NODES {
            return Err(Error::TooLarge { what: "the graph", count: n_nodes, limit: MAX_NODES });
        }
        if sources.len() > MAX_NODES {
            return Err(Error::TooLarge {
                what: "the edge list",
                count: sources.len(),
                limit: MAX_NODES,
            });
        }
        if sources.len() != targets.len() {
            return Err(Error::LengthMismatch {
                left: "sources",
                left_len: sources.len(),
                right: "targets",
                right_len: targets.len(),
            });
        }
        for (edge, (&source, &target)) in sources.iter().zip(targets).enumerate() {
            if source as usize >= n_nodes || target as usize >= n_nodes {
                return Err(Error::EdgeOutOfRange {
                    edge,
                    source_id: source.into(),
                    target_id: target.into(),
                    n_nodes,
                });
            }
            if source == target {
                return Err(Error::SelfLoop { edge, node: source });
            }
        }
        Ok(Self {
            n_nodes,
            successors: Rows::new(n_nodes, sources, targets),
            predecessors: Rows::new(n_nodes, targets, sources),
        })
    }

    /// Number of nodes.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.n_nodes
    }

    /// Number of edges, parallel ones counted each.
    #[must_use]
    pub fn n_edges(&self) -> usize {
        self.successors.items.len()
    }

    /// Targets of the edges that leave `node`. Panics if `node` is out of range, as indexing does.
    #[must_use]
    pub fn successors(&self, node: NodeId) -> &[NodeId] {
        self.successors.row(node)
    }

    /// Sources of the edges that enter `node`. Panics if `node` is out of range.
    #[must_use]
    pub fn predecessors(&self, node: NodeId) -> &[NodeId] {
        self.predecessors.row(node)
    }

    /// The graph with every edge reversed.
    #[must_use]
    pub fn transposed(&self) -> Self {
        Self {
            n_nodes: self.n_nodes,
            successors: self.predecessors.clone(),
            predecessors: self.successors.clone(),
        }
    }
}
