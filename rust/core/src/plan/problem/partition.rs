//! A partition of the nodes into blocks, and its quotient graph.

use super::arrays::{FusionProblem, NONE};
use crate::budget::Budget;
use crate::error::Result;
use crate::graph::NodeId;
use crate::ids::check_same_length;
use crate::rows::Rows;
use crate::toposort::toposort;
use crate::union_find::{find, unite};

/// Blocks of nodes. A block is named by its smallest member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    block: Vec<NodeId>,
    /// Members of the block at the row of its name, ascending; other rows are empty.
    members: Rows,
}

impl Partition {
    /// Every node alone.
    #[must_use]
    pub fn singletons(n_nodes: usize) -> Self {
        Self { block: (0..n_nodes as u32).collect(), members: Rows::identity(n_nodes as u32) }
    }

    /// The partition in which two nodes share a block when they have the same name; a node named
    /// [`NONE`] is alone. Other names must be less than the number of nodes, or the method panics.
    /// O(n).
    pub(crate) fn from_names(names: Vec<u32>) -> Self {
        let mut smallest = vec![NONE; names.len()];
        let block = names
            .iter()
            .zip(0u32..)
            .map(|(&name, node)| {
                if name == NONE {
                    return node;
                }
                let smallest = &mut smallest[name as usize];
                if *smallest == NONE {
                    *smallest = node;
                }
                *smallest
            })
            .collect();
        Self::from_blocks(block)
    }

    /// `block[node]` is the smallest member of the block of `node`.
    fn from_blocks(block: Vec<NodeId>) -> Self {
        let members = Rows::of_blocks(&block);
        Self { block, members }
    }

    /// Name of the block of `node`: its smallest member. Panics if there is no such node, as indexing
    /// does.
    #[must_use]
    pub fn block(&self, node: NodeId) -> NodeId {
        self.block[node as usize]
    }

    /// The names of all blocks, node by node.
    #[must_use]
    pub fn blocks(&self) -> &[NodeId] {
        &self.block
    }

    /// The names of the blocks, ascending, each once.
    pub fn names(&self) -> impl Iterator<Item = NodeId> + '_ {
        (0..self.block.len() as u32).filter(|&node| self.block(node) == node)
    }

    /// Members of the block named `block`, ascending. Panics if that names no node, as indexing does.
    #[must_use]
    pub fn members(&self, block: NodeId) -> &[NodeId] {
        self.members.row(block)
    }

    /// For each node the number of its block, counted in the order of their names.
    pub(in crate::plan) fn numbers(&self) -> Vec<u32> {
        let mut number = vec![NONE; self.block.len()];
        for (name, id) in self.names().zip(0u32..) {
            number[name as usize] = id;
        }
        self.block.iter().map(|&name| number[name as usize]).collect()
    }

    /// Number of blocks whose nodes have a group.
    pub(in crate::plan) fn n_kernels(&self, problem: &FusionProblem) -> u64 {
        self.names().filter(|&name| problem.group(name).is_some()).count() as u64
    }

    /// Rejects a partition whose number of nodes differs from that of `problem`.
    pub(in crate::plan) fn check_nodes_of(&self, problem: &FusionProblem) -> Result<()> {
        check_same_length(("partition", self.block.len()), ("nodes", problem.n_nodes()))
    }

    /// Merges the blocks of each pair; O(n) for all of them.
    pub(crate) fn merge_pairs(&mut self, pairs: &[(NodeId, NodeId)]) {
        if pairs.is_empty() {
            return;
        }
        // A union-find whose roots are the smallest names.
        let mut parent = std::mem::take(&mut self.block);
        for &(a, b) in pairs {
            unite(&mut parent, a, b);
        }
        for node in 0..parent.len() as u32 {
            parent[node as usize] = find(&mut parent, node);
        }
        *self = Self::from_blocks(parent);
    }

    /// The blocks in a topological order of the quotient graph: first the blocks without
    /// dependencies, by name, then each block as soon as its last dependency is listed. O(n + m).
    ///
    /// # Errors
    /// [`crate::Error::Cycle`] lists the blocks of one cycle, if the quotient graph has one;
    /// [`crate::Error::LengthMismatch`] if this partition and `problem` differ in their numbers of
    /// nodes;
    /// [`crate::Error::Interrupted`].
    pub fn quotient_order(&self, problem: &FusionProblem, budget: &Budget) -> Result<Vec<NodeId>> {
        self.check_nodes_of(problem)?;
        let graph = problem.graph();
        let n_nodes = self.block.len() as u32;
        let mut missing = vec![0u32; self.block.len()];
        for node in 0..n_nodes {
            let block = self.block(node);
            budget.check(1 + graph.predecessors(node).len())?;
            let others = graph.predecessors(node).iter().filter(|&&p| self.block(p) != block);
            missing[block as usize] += others.count() as u32;
        }
        let mut order: Vec<NodeId> =
            self.names().filter(|&name| missing[name as usize] == 0).collect();
        let mut done = 0;
        while let Some(&block) = order.get(done) {
            done += 1;
            for &member in self.members(block) {
                budget.check(1 + graph.successors(member).len())?;
                for &client in graph.successors(member) {
                    let other = self.block(client);
                    if other == block {
                        continue;
                    }
                    missing[other as usize] -= 1;
                    if missing[other as usize] == 0 {
                        order.push(other);
                    }
                }
            }
        }
        if order.len() == self.names().count() {
            return Ok(order);
        }
        // The remaining blocks contain a cycle, which this finds.
        toposort(&graph.contracted(&self.block, budget)?, None, budget)
    }
}
