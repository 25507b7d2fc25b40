//! Dense ancestor sets: reachability in one bit test, for graphs that are small enough.

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::graph::{Graph, NodeId};
use crate::ids::{check_id, check_ids};
use crate::toposort::toposort;
use fixedbitset::{Block, FixedBitSet};

/// The default memory limit of ancestor sets: 1 GiB, enough for some 92,000 nodes.
pub const DEFAULT_MEMORY_LIMIT: u64 = 1 << 30;

/// The set of ancestors of every node: the nodes from which a path leads to it, and itself.
///
/// A contraction gives all members of a block the same ancestors: after [`AncestorSets::contract`],
/// paths are those of the quotient graph, where members of one block reach each other.
///
/// Sets of descendants are the ancestor sets of [`Graph::transposed`].
///
/// # Memory
/// One bit per pair of nodes, `n^2 / 8` bytes; see [`AncestorSets::memory_needed`].
/// [`crate::quotient`] answers the same questions about contraction in memory that is linear in
/// the graph.
///
/// # Source
/// Transitive closure by one pass in topological order, as in R. Sedgewick, K. Wayne,
/// "Algorithms", 4th edition (2011), section 4.2.
///
/// # Examples
/// ```
/// use pytensor_fuse_core::{Budget, Error, Graph, ancestors::AncestorSets};
///
/// // 0 -> 1 -> 2 and 0 -> 3
/// let budget = Budget::unlimited();
/// let graph = Graph::new(4, &[0, 1, 0], &[1, 2, 3], &budget)?;
/// let mut sets = AncestorSets::new(&graph, None, &budget)?;
/// assert_eq!(sets.ancestors(2)?, [0, 1, 2]);
/// assert!(!sets.is_ancestor(1, 3)?);
///
/// assert!(!sets.can_contract(&[0, 2], &budget)?);
/// sets.contract(&[2, 3], &budget)?;
/// assert!(sets.is_ancestor(1, 3)?);
///
/// let needed = AncestorSets::memory_needed(4);
/// let error = AncestorSets::new(&graph, Some(10), &budget).unwrap_err();
/// assert_eq!(error, Error::MemoryLimit { n_nodes: 4, needed, limit: 10 });
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AncestorSets {
    /// Bit `a` of row `b`: a path leads from `a` to `b`. Reflexive and transitive.
    rows: Vec<FixedBitSet>,
    /// The smallest node of the block that each node is in.
    blocks: Vec<NodeId>,
}

impl AncestorSets {
    /// The ancestor sets of `graph`.
    ///
    /// # Arguments
    /// * `memory_limit`: the maximum number of bytes of the rows; `None` means
    ///   [`DEFAULT_MEMORY_LIMIT`].
    ///
    /// # Errors
    /// [`Error::MemoryLimit`], before anything is allocated; [`Error::Cycle`];
    /// [`Error::Interrupted`].
    ///
    /// # Complexity
    /// O(m n / 64).
    pub fn new(graph: &Graph, memory_limit: Option<u64>, budget: &Budget) -> Result<Self> {
        let n_nodes = graph.n_nodes();
        let needed = Self::memory_needed(n_nodes);
        let limit = memory_limit.unwrap_or(DEFAULT_MEMORY_LIMIT);
        if needed > limit {
            return Err(Error::MemoryLimit { n_nodes, needed, limit });
        }
        let order = toposort(graph, None, budget)?;
        let mut rows = vec![FixedBitSet::new(); n_nodes];
        for node in order {
            let mut row = FixedBitSet::with_capacity(n_nodes);
            row.insert(node as usize);
            budget.check(n_nodes / Block::BITS as usize)?;
            for &before in graph.predecessors(node) {
                budget.check(1)?;
                // If an ancestor is in the row, so are its own ancestors.
                if !row.contains(before as usize) {
                    budget.check(n_nodes / Block::BITS as usize)?;
                    row.union_with(&rows[before as usize]);
                }
            }
            rows[node as usize] = row;
        }
        Ok(Self { rows, blocks: (0..n_nodes as NodeId).collect() })
    }

    /// Bytes that the rows of a graph of `n_nodes` nodes take.
    #[must_use]
    pub fn memory_needed(n_nodes: usize) -> u64 {
        let words = n_nodes.div_ceil(Block::BITS as usize);
        let row = words as u64 * size_of::<Block>() as u64 + size_of::<FixedBitSet>() as u64;
        (n_nodes as u64).saturating_mul(row)
    }

    /// Bytes that the rows take.
    #[must_use]
    pub fn memory_used(&self) -> u64 {
        Self::memory_needed(self.n_nodes())
    }

    /// Number of nodes.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.rows.len()
    }

    /// Whether a path leads from `ancestor` to `node`. Every node is its own ancestor. O(1).
    ///
    /// # Errors
    /// [`Error::OutOfRange`] names an id that the graph does not have, as in all methods.
    pub fn is_ancestor(&self, ancestor: NodeId, node: NodeId) -> Result<bool> {
        check_id("node", ancestor, self.n_nodes())?;
        Ok(self.row(node)?.contains(ancestor as usize))
    }

    /// The ancestors of `node`, itself included, by id. O(n).
    ///
    /// # Errors
    /// [`Error::OutOfRange`].
    pub fn ancestors(&self, node: NodeId) -> Result<Vec<NodeId>> {
        Ok(to_ids(self.row(node)?))
    }

    /// The nodes of which `node` is an ancestor, itself included, by id. O(n): one bit of every
    /// row.
    ///
    /// # Errors
    /// [`Error::OutOfRange`].
    pub fn descendants(&self, node: NodeId) -> Result<Vec<NodeId>> {
        check_id("node", node, self.n_nodes())?;
        let reached = (0..self.n_nodes()).filter(|&other| self.rows[other].contains(node as usize));
        Ok(reached.map(|other| other as NodeId).collect())
    }

    /// The nodes that are an ancestor of at least one of `nodes`, themselves included, by id.
    /// O(k n / 64) for k nodes.
    ///
    /// # Errors
    /// [`Error::OutOfRange`]; [`Error::Interrupted`].
    pub fn union(&self, nodes: &[NodeId], budget: &Budget) -> Result<Vec<NodeId>> {
        Ok(to_ids(&self.union_row(nodes, budget)?))
    }

    /// Whether `nodes` can be contracted without making a cycle: whether no path leads from one of
    /// them to another through a node outside. Nodes contracted with one of them earlier count as
    /// inside.
    ///
    /// # Errors
    /// [`Error::OutOfRange`]; [`Error::Interrupted`].
    ///
    /// # Complexity
    /// O(k n / 64 + u n / 64) for k nodes with u ancestors.
    pub fn can_contract(&self, nodes: &[NodeId], budget: &Budget) -> Result<bool> {
        Ok(self.obstacle(nodes, budget)?.is_none())
    }

    /// Contracts `nodes`: they, and all nodes that depend on one of them, get the ancestors of all.
    ///
    /// # Errors
    /// [`Error::Contraction`] names a node in the way if [`AncestorSets::can_contract`] is false;
    /// [`Error::OutOfRange`]; [`Error::Interrupted`]. Nothing has changed then.
    ///
    /// # Complexity
    /// That of [`AncestorSets::can_contract`], and O(n^2 / 64) to find the nodes that depend on
    /// them.
    pub fn contract(&mut self, nodes: &[NodeId], budget: &Budget) -> Result<()> {
        if let Some(through) = self.obstacle(nodes, budget)? {
            return Err(Error::Contraction { through });
        }
        let members = self.member_set(nodes);
        let union = self.union_row(nodes, budget)?;
        // No check of the budget comes later, since changed rows would have to be restored.
        budget.check(self.n_nodes() * self.words())?;
        for row in self.rows.iter_mut().filter(|row| !row.is_disjoint(&members)) {
            row.union_with(&union);
        }
        let joined = self.blocks_of(nodes);
        if let Some(smallest) = joined.ones().next() {
            for block in self.blocks.iter_mut().filter(|block| joined.contains(**block as usize)) {
                *block = smallest as NodeId;
            }
        }
        Ok(())
    }

    /// The smallest node outside that lies on a path between two of `nodes`.
    fn obstacle(&self, nodes: &[NodeId], budget: &Budget) -> Result<Option<NodeId>> {
        let union = self.union_row(nodes, budget)?;
        let members = self.member_set(nodes);
        let joined = self.blocks_of(nodes);
        for node in union.ones() {
            budget.check(self.words())?;
            let is_inside = joined.contains(self.blocks[node] as usize);
            if !is_inside && !self.rows[node].is_disjoint(&members) {
                return Ok(Some(node as NodeId));
            }
        }
        Ok(None)
    }

    /// The blocks that `nodes`, whose ids have been checked, are in.
    fn blocks_of(&self, nodes: &[NodeId]) -> FixedBitSet {
        let mut blocks = FixedBitSet::with_capacity(self.n_nodes());
        blocks.extend(nodes.iter().map(|&node| self.blocks[node as usize] as usize));
        blocks
    }

    /// The approximate number of words of a row.
    fn words(&self) -> usize {
        1 + self.n_nodes() / Block::BITS as usize
    }

    fn row(&self, node: NodeId) -> Result<&FixedBitSet> {
        check_id("node", node, self.n_nodes())?;
        Ok(&self.rows[node as usize])
    }

    fn union_row(&self, nodes: &[NodeId], budget: &Budget) -> Result<FixedBitSet> {
        check_ids("node", nodes, self.n_nodes())?;
        let mut union = FixedBitSet::with_capacity(self.n_nodes());
        // Each node counts once, even if it is given several times.
        for node in self.member_set(nodes).ones() {
            budget.check(self.words())?;
            union.union_with(&self.rows[node]);
        }
        Ok(union)
    }

    /// `nodes`, whose ids have been checked, as a bitset.
    fn member_set(&self, nodes: &[NodeId]) -> FixedBitSet {
        let mut members = FixedBitSet::with_capacity(self.n_nodes());
        members.extend(nodes.iter().map(|&node| node as usize));
        members
    }
}

fn to_ids(row: &FixedBitSet) -> Vec<NodeId> {
    row.ones().map(|node| node as NodeId).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::testing::{dags, is_acyclic, reachability};
    use proptest::prelude::*;

    /// The expected rows for the quotient of `graph` by `blocks`.
    fn expected_rows(graph: &Graph, blocks: &[u32]) -> Vec<Vec<NodeId>> {
        let reach = reachability(&graph.contracted(blocks, &Budget::unlimited()).unwrap());
        let reaches = |a: u32, b: u32| a == b || reach[a as usize][b as usize];
        let row = |b: u32| {
            let nodes = 0..blocks.len() as NodeId;
            nodes.filter(move |&a| reaches(blocks[a as usize], b)).collect()
        };
        blocks.iter().map(|&block| row(block)).collect()
    }

    #[test]
    fn rows_of_any_width() {
        for n in [0u32, 1, 63, 64, 65, 127, 128, 129, 300] {
            let targets: Vec<NodeId> = (1..n).collect();
            let sources: Vec<NodeId> = (0..n.saturating_sub(1)).collect();
            let graph = Graph::new(n as usize, &sources, &targets, &Budget::unlimited()).unwrap();
            let sets = AncestorSets::new(&graph, None, &Budget::unlimited()).unwrap();
            for node in 0..n {
                assert!(sets.ancestors(node).unwrap().into_iter().eq(0..=node));
                assert!(sets.descendants(node).unwrap().into_iter().eq(node..n));
            }
        }
    }

    #[test]
    fn the_memory_limit_comes_before_the_allocation() {
        let n_nodes = 3_000_000;
        let graph = Graph::new(n_nodes, &[], &[], &Budget::unlimited()).unwrap();
        let needed = AncestorSets::memory_needed(n_nodes);
        assert!(needed > 1 << 40);
        assert_eq!(
            AncestorSets::new(&graph, None, &Budget::unlimited()).unwrap_err(),
            Error::MemoryLimit { n_nodes, needed, limit: DEFAULT_MEMORY_LIMIT }
        );
        assert_eq!(AncestorSets::memory_needed(usize::MAX), u64::MAX);
    }

    #[test]
    fn the_limit_itself_is_allowed() {
        let graph = Graph::new(100, &[], &[], &Budget::unlimited()).unwrap();
        let needed = AncestorSets::memory_needed(100);
        assert!(AncestorSets::new(&graph, Some(needed), &Budget::unlimited()).is_ok());
        assert!(AncestorSets::new(&graph, Some(needed - 1), &Budget::unlimited()).is_err());
    }

    #[test]
    fn unknown_ids_are_named() {
        let graph = Graph::new(2, &[0], &[1], &Budget::unlimited()).unwrap();
        let mut sets = AncestorSets::new(&graph, None, &Budget::unlimited()).unwrap();
        let error = Error::OutOfRange { what: "node", id: 2, limit: 2 };
        assert_eq!(sets.is_ancestor(2, 0).unwrap_err(), error);
        assert_eq!(sets.is_ancestor(0, 2).unwrap_err(), error);
        assert_eq!(sets.ancestors(2).unwrap_err(), error);
        assert_eq!(sets.descendants(2).unwrap_err(), error);
        assert_eq!(sets.union(&[0, 2], &Budget::unlimited()).unwrap_err(), error);
        assert_eq!(sets.can_contract(&[0, 2], &Budget::unlimited()).unwrap_err(), error);
        assert_eq!(sets.contract(&[0, 2], &Budget::unlimited()).unwrap_err(), error);
    }

    #[test]
    fn a_cycle_is_refused() {
        let graph = Graph::new(2, &[0, 1], &[1, 0], &Budget::unlimited()).unwrap();
        assert_eq!(
            AncestorSets::new(&graph, None, &Budget::unlimited()).unwrap_err(),
            Error::Cycle { nodes: vec![0, 1] }
        );
    }

    #[test]
    fn a_refused_contraction_changes_nothing() {
        let graph = Graph::new(3, &[0, 1], &[1, 2], &Budget::unlimited()).unwrap();
        let mut sets = AncestorSets::new(&graph, None, &Budget::unlimited()).unwrap();
        let before = sets.clone();
        assert_eq!(
            sets.contract(&[0, 2], &Budget::unlimited()),
            Err(Error::Contraction { through: 1 })
        );
        assert_eq!(sets, before);
    }

    proptest! {
        #[test]
        fn rows_are_reachability(graph in dags(20)) {
            let n_nodes = graph.n_nodes() as NodeId;
            let sets = AncestorSets::new(&graph, None, &Budget::unlimited()).unwrap();
            let transposed = AncestorSets::new(&graph.transposed(), None, &Budget::unlimited()).unwrap();
            let reach = reachability(&graph);
            for a in 0..n_nodes {
                for b in 0..n_nodes {
                    let expected = a == b || reach[a as usize][b as usize];
                    prop_assert_eq!(sets.is_ancestor(a, b).unwrap(), expected);
                    prop_assert_eq!(transposed.is_ancestor(b, a).unwrap(), expected);
                }
                prop_assert_eq!(sets.descendants(a).unwrap(), transposed.ancestors(a).unwrap());
            }
        }

        #[test]
        fn contractions_agree_with_recomputation(
            graph in dags(12),
            picks in proptest::collection::vec(any::<u16>(), 0..12)
        ) {
            let n_nodes = graph.n_nodes() as NodeId;
            let mut blocks: Vec<u32> = (0..n_nodes).collect();
            let mut sets = AncestorSets::new(&graph, None, &Budget::unlimited()).unwrap();
            for pick in picks {
                // Two to four nodes, to give legal contractions a chance.
                let nodes: Vec<NodeId> = (0..n_nodes)
                    .filter(|&node| pick.rotate_right(node) & 1 == 1)
                    .take(2 + pick as usize % 3)
                    .collect();
                let joined: Vec<u32> = nodes.iter().map(|&node| blocks[node as usize]).collect();
                let merged: Vec<u32> = blocks
                    .iter()
                    .map(|block| if joined.contains(block) { joined[0] } else { *block })
                    .collect();
                let legal = is_acyclic(&graph.contracted(&merged, &Budget::unlimited()).unwrap());
                prop_assert_eq!(sets.can_contract(&nodes, &Budget::unlimited()).unwrap(), legal);
                let union = sets.union(&nodes, &Budget::unlimited()).unwrap();
                let mut naive: Vec<NodeId> =
                    nodes.iter().flat_map(|&node| sets.ancestors(node).unwrap()).collect();
                naive.sort_unstable();
                naive.dedup();
                prop_assert_eq!(union, naive);
                prop_assert_eq!(sets.contract(&nodes, &Budget::unlimited()).is_ok(), legal);
                if legal {
                    blocks = merged;
                }
                for (node, row) in expected_rows(&graph, &blocks).into_iter().enumerate() {
                    prop_assert_eq!(sets.ancestors(node as NodeId).unwrap(), row);
                }
            }
        }
    }
}
