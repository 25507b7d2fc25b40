//! A directed graph in compressed sparse rows, in both directions.

pub use crate::ids::MAX_NODES;

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::ids::{check_count, check_id, check_same_length};
use crate::rows::Rows;

/// Nodes are dense ids `0..n_nodes`.
pub type NodeId = u32;

/// An immutable directed graph: successors and predecessors of every node in compressed rows.
///
/// Parallel edges are kept. Within a row, neighbors stand in the order of the edge arrays, so that
/// the caller determines the order of each walk over a row.
///
/// # Memory
/// `8 * n_nodes + 8 * n_edges` bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    n_nodes: usize,
    successors: Rows,
    predecessors: Rows,
}

impl Graph {
    /// Builds the graph with edges `sources[i] -> targets[i]`; O(n + m).
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the arrays differ in length, [`Error::EdgeOutOfRange`] and
    /// [`Error::SelfLoop`] name the first bad edge, [`Error::TooLarge`] if an id or an offset
    /// would not fit 32 bits; [`Error::Interrupted`].
    ///
    /// # Examples
    /// ```
    /// use pytensor_fuse_core::{Budget, Error, Graph};
    ///
    /// let budget = Budget::unlimited();
    /// let graph = Graph::new(3, &[0, 0, 1], &[1, 2, 2], &budget)?;
    /// assert_eq!(graph.successors(0), [1, 2]);
    /// assert_eq!(graph.predecessors(2), [0, 1]);
    /// let refused = Graph::new(2, &[0, 1], &[1, 1], &budget);
    /// assert_eq!(refused, Err(Error::SelfLoop { edge: 1, node: 1 }));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn new(
        n_nodes: usize,
        sources: &[NodeId],
        targets: &[NodeId],
        budget: &Budget,
    ) -> Result<Self> {
        Self::from_ids(n_nodes, sources, targets, budget)
    }

    /// [`Graph::new`] for ids of any integer type, including signed types. Ids are checked as they
    /// are, and never copied into another type first.
    ///
    /// # Errors
    /// Those of [`Graph::new`]; a negative id is an [`Error::EdgeOutOfRange`].
    pub fn from_ids<T: Copy + Into<i64>>(
        n_nodes: usize,
        sources: &[T],
        targets: &[T],
        budget: &Budget,
    ) -> Result<Self> {
        check_count("the graph", n_nodes)?;
        check_count("the edge list", sources.len())?;
        check_same_length(("sources", sources.len()), ("targets", targets.len()))?;
        for (edge, (&source, &target)) in sources.iter().zip(targets).enumerate() {
            budget.check(1)?;
            let (source, target): (i64, i64) = (source.into(), target.into());
            // A negative id wraps to one that no graph has.
            if source as u64 >= n_nodes as u64 || target as u64 >= n_nodes as u64 {
                return Err(Error::EdgeOutOfRange {
                    edge,
                    source_id: source,
                    target_id: target,
                    n_nodes,
                });
            }
            if source == target {
                return Err(Error::SelfLoop { edge, node: source as NodeId });
            }
        }
        let id = |id: T| id.into() as NodeId;
        let edges = sources.iter().zip(targets).map(|(&source, &target)| (id(source), id(target)));
        Ok(Self {
            n_nodes,
            predecessors: Rows::grouped(n_nodes, edges.clone().map(|(a, b)| (b, a)), budget)?,
            successors: Rows::grouped(n_nodes, edges, budget)?,
        })
    }

    /// Number of nodes.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.n_nodes
    }

    /// Number of edges, including each parallel edge.
    #[must_use]
    pub fn n_edges(&self) -> usize {
        self.successors.items().len()
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

    /// The quotient graph: one node per block, one edge per edge between two different blocks.
    ///
    /// `blocks[i]` is the block of node `i`; there are `max(blocks) + 1` blocks. O(n + m).
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] unless there is one entry per node, [`Error::OutOfRange`] if a
    /// block id is not below the number of nodes; [`Error::Interrupted`].
    pub fn contracted(&self, blocks: &[u32], budget: &Budget) -> Result<Self> {
        check_same_length(("blocks", blocks.len()), ("nodes", self.n_nodes))?;
        let mut n_blocks = 0;
        for &block in blocks {
            check_id("block id", block, self.n_nodes)?;
            n_blocks = n_blocks.max(block as usize + 1);
        }
        let mut sources = Vec::with_capacity(self.n_edges());
        let mut targets = Vec::with_capacity(self.n_edges());
        for (source, target) in self.edges() {
            budget.check(1)?;
            let (source, target) = (blocks[source as usize], blocks[target as usize]);
            if source != target {
                sources.push(source);
                targets.push(target);
            }
        }
        Self::new(n_blocks, &sources, &targets, budget)
    }

    /// The edges, grouped by source.
    pub fn edges(&self) -> impl Iterator<Item = (NodeId, NodeId)> + '_ {
        (0..self.n_nodes as NodeId)
            .flat_map(|source| self.successors(source).iter().map(move |&target| (source, target)))
    }

    /// The successor rows, then the predecessor rows.
    pub(crate) fn into_rows(self) -> [Rows; 2] {
        [self.successors, self.predecessors]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::testing::digraphs;
    use proptest::prelude::*;

    #[test]
    fn parallel_edges_are_kept_in_order() {
        let graph = Graph::new(3, &[0, 1, 0, 0], &[2, 2, 1, 2], &Budget::unlimited()).unwrap();
        assert_eq!(graph.n_edges(), 4);
        assert_eq!(graph.successors(0), [2, 1, 2]);
        assert_eq!(graph.predecessors(2), [0, 1, 0]);
    }

    #[test]
    fn the_empty_graph_has_nothing() {
        let graph = Graph::new(0, &[], &[], &Budget::unlimited()).unwrap();
        assert_eq!((graph.n_nodes(), graph.n_edges()), (0, 0));
    }

    #[test]
    fn bad_edges_are_named() {
        assert_eq!(
            Graph::from_ids(3, &[0i64, 1], &[1, -1], &Budget::unlimited()),
            Err(Error::EdgeOutOfRange { edge: 1, source_id: 1, target_id: -1, n_nodes: 3 })
        );
        assert_eq!(
            Graph::from_ids(3, &[i32::MIN], &[1], &Budget::unlimited()),
            Err(Error::EdgeOutOfRange {
                edge: 0,
                source_id: i32::MIN.into(),
                target_id: 1,
                n_nodes: 3
            })
        );
        assert_eq!(
            Graph::new(3, &[0], &[3], &Budget::unlimited()),
            Err(Error::EdgeOutOfRange { edge: 0, source_id: 0, target_id: 3, n_nodes: 3 })
        );
        assert_eq!(
            Graph::new(3, &[1], &[1], &Budget::unlimited()),
            Err(Error::SelfLoop { edge: 0, node: 1 })
        );
        assert!(matches!(
            Graph::new(3, &[1], &[], &Budget::unlimited()),
            Err(Error::LengthMismatch { .. })
        ));
        assert!(matches!(
            Graph::new(usize::MAX, &[], &[], &Budget::unlimited()),
            Err(Error::TooLarge { .. })
        ));
    }

    #[test]
    fn contraction_drops_inner_edges_only() {
        let graph = Graph::new(4, &[0, 0, 1, 2], &[1, 2, 2, 3], &Budget::unlimited()).unwrap();
        let quotient = graph.contracted(&[0, 0, 1, 2], &Budget::unlimited()).unwrap();
        assert_eq!(quotient.edges().collect::<Vec<_>>(), [(0, 1), (0, 1), (1, 2)]);
        assert!(matches!(
            graph.contracted(&[0], &Budget::unlimited()),
            Err(Error::LengthMismatch { .. })
        ));
        assert!(matches!(
            graph.contracted(&[0, 0, 0, 4], &Budget::unlimited()),
            Err(Error::OutOfRange { .. })
        ));
    }

    proptest! {
        #[test]
        fn rows_hold_the_edges((n_nodes, edges) in digraphs(12)) {
            let (sources, targets): (Vec<_>, Vec<_>) = edges.iter().copied().unzip();
            let graph = Graph::new(n_nodes, &sources, &targets, &Budget::unlimited()).unwrap();
            for node in 0..n_nodes as NodeId {
                let after: Vec<_> = edges.iter().filter(|e| e.0 == node).map(|e| e.1).collect();
                let before: Vec<_> = edges.iter().filter(|e| e.1 == node).map(|e| e.0).collect();
                prop_assert_eq!(graph.successors(node), &after[..]);
                prop_assert_eq!(graph.predecessors(node), &before[..]);
            }
            prop_assert_eq!(&graph.transposed().transposed(), &graph);
            let signed = |ids: &[u32]| ids.iter().map(|&id| id.into()).collect::<Vec<i64>>();
            prop_assert_eq!(
                Graph::from_ids(n_nodes, &signed(&sources), &signed(&targets), &Budget::unlimited()),
                Ok(graph)
            );
        }
    }
}
