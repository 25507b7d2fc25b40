//! Parts and components: sets of nodes that can be planned independently.
//!
//! # Problem
//! The search for a plan covers the whole graph at once, although most of the graph does not
//! interact with the rest.
//!
//! # Approach
//! A *part* is a set of nodes of one group connected by data or by operands that may bring siblings
//! together. A kernel is connected in the same way, so every kernel lies within one part. Contract
//! each part: the strongly connected components of that quotient, the *components*, can be planned
//! one by one, for two reasons:
//!
//! - Costs add up: the cost of a kernel depends on its members alone.
//! - Kernels of different components cannot form a cycle together. Any quotient whose blocks lie
//!   within parts maps onto the quotient by parts, edges to edges or to nothing. The image of a
//!   cycle is a closed walk whose parts all reach one another, so it lies in one component, and so
//!   do all blocks of the cycle. A plan is acyclic if and only if it is acyclic within each
//!   component.
//!
//! A part that is alone in its component is on no such cycle: no path leaves it and comes back. It
//! can be one kernel, if the operand limit allows, and this is its optimum: no plan has fewer
//! kernels, and merged kernels read and write no array that they did not before.
//!
//! Two nodes of a part that are joined by a path that leaves it are never in one kernel. Where only
//! such pairs connect a part, it splits into smaller parts, and the same argument holds for these.
//!
//! # Rejected
//! Weakly connected components of the whole graph: nearly all real graphs have only one.

use super::arrays::{FusionProblem, NONE};
use super::partition::Partition;
use crate::budget::Budget;
use crate::error::Result;
use crate::graph::NodeId;
use crate::ids::check_same_length;
use crate::rows::Rows;
use crate::scc;

/// The parts of the groups, connected by data or by operands that bring siblings together. Nodes
/// without a group are alone. O(n + m).
///
/// # Errors
/// [`crate::Error::Interrupted`].
pub fn parts(problem: &FusionProblem, budget: &Budget) -> Result<Partition> {
    let mut newest_reader = vec![NONE; problem.n_variables()];
    let nodes = 0..problem.n_nodes() as u32;
    let pairs = connections(problem, nodes, &mut newest_reader, |_, _| true, budget)?;
    let mut parts = Partition::singletons(problem.n_nodes());
    parts.merge_pairs(&pairs);
    Ok(parts)
}

/// Pairs of nodes of one group that `may_pair` allows, where one node reads the other or both read
/// an operand that brings siblings together. Each reader of an operand is paired with the reader
/// before it, which `newest_reader` holds for each variable.
pub(in crate::plan) fn connections(
    problem: &FusionProblem,
    nodes: impl IntoIterator<Item = NodeId>,
    newest_reader: &mut [NodeId],
    may_pair: impl Fn(NodeId, NodeId) -> bool,
    budget: &Budget,
) -> Result<Vec<(NodeId, NodeId)>> {
    let mut pairs = Vec::new();
    for node in nodes {
        let Some(group) = problem.group(node) else { continue };
        // This includes the union of each pair later.
        budget.check(4 * (1 + problem.reads(node).len()))?;
        for &variable in problem.reads(node) {
            let owner = problem.owner(variable);
            if owner != NONE && problem.group(owner) == Some(group) && may_pair(owner, node) {
                pairs.push((owner, node));
            }
            if problem.link(variable) == Some(group) {
                let reader = std::mem::replace(&mut newest_reader[variable as usize], node);
                if reader != NONE && reader != node && may_pair(reader, node) {
                    pairs.push((reader, node));
                }
            }
        }
    }
    Ok(pairs)
}

/// The components of a problem: sets of nodes whose plans do not depend on one another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Components {
    of_node: Vec<u32>,
    members: Rows,
}

impl Components {
    /// The components of the quotient by `parts`, in a topological order.
    ///
    /// # Arguments
    /// * `parts`: those of [`parts`], or finer ones that still contain every possible kernel.
    ///
    /// # Complexity
    /// O(n + m).
    ///
    /// # Errors
    /// [`crate::Error::LengthMismatch`] if `parts` is a partition of other nodes;
    /// [`crate::Error::Interrupted`].
    pub fn new(problem: &FusionProblem, parts: &Partition, budget: &Budget) -> Result<Self> {
        let n_nodes = problem.n_nodes();
        check_same_length(("parts", parts.blocks().len()), ("nodes", n_nodes))?;
        let blocks = parts.numbers();
        let of_part = scc::components(&problem.graph().contracted(&blocks, budget)?, budget)?;
        let of_node: Vec<u32> = blocks.iter().map(|&block| of_part[block as usize]).collect();
        let n_components = of_part.iter().map(|&component| component as usize + 1).max();
        let pairs = of_node.iter().copied().zip(0u32..);
        let members = Rows::grouped(n_components.unwrap_or(0), pairs, budget)?;
        Ok(Self { of_node, members })
    }

    /// Number of components.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are no components, which is so for the empty graph only.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The component of `node`. Panics if there is no such node, as indexing does.
    #[must_use]
    pub fn of(&self, node: NodeId) -> u32 {
        self.of_node[node as usize]
    }

    /// Nodes of `component`, ascending, including those that have no group.
    #[must_use]
    pub fn members(&self, component: u32) -> &[NodeId] {
        self.members.row(component)
    }
}
