//! Fusion planning: which nodes share a kernel.
//!
//! # Problem
//! Given apply nodes in a topological order, the group of each (nodes of different groups never
//! share a kernel) and their operands, find clusters such that
//!
//! - every cluster has nodes of one group, connected by data flow or by operands that may bring
//!   siblings together;
//! - the quotient graph of all clusters together is acyclic;
//! - no cluster has more operands than the limit;
//!
//! with as few kernels as possible and, among such plans, as few arrays read and written as
//! possible. This is weighted loop fusion, which is NP-hard.
//!
//! # Approach
//! A portfolio: several greedy orders each give a legal partition, each is cut where it breaks the
//! operand limit and improved by further merges, and the cheapest wins; at equal cost the earlier
//! order. One order is PyTensor's own, so that the plan is never worse than PyTensor's:
//!
//! - [`sinks`]: PyTensor's growth from the sinks, as long as its dense bitsets fit;
//! - [`typed`]: typed fusion by barrier depth, counted from the sources and from the sinks;
//! - [`improve`] from scratch: the pair that saves most arrays first.
//!
//! Every merge of an improvement makes one kernel less and never adds an array: the two clusters
//! shared an operand or one read the other.
//!
//! # Rejected
//! An exact search (dynamic programming over order ideals) takes milliseconds at 30 nodes and
//! grows exponentially; it judges the planner in the tests.

pub mod canonical;
pub mod cost;
pub mod explain;
pub mod improve;
pub mod partition;
pub mod problem;
pub mod sinks;
pub mod split;
pub mod typed;

pub use cost::{Cost, Interface, Interfaces};
pub use explain::{Verdict, explain};
pub use partition::Partition;
pub use problem::{FusionProblem, NONE, ProblemArrays, Rows, VarId};

use crate::error::Result;
use crate::graph::NodeId;

/// Nodes that become one kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// Two members or more, ascending.
    pub nodes: Vec<NodeId>,
    /// Where its operands come from and go to.
    pub interface: Interface,
}

/// A legal plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Clusters in a topological order of the quotient graph: each after all that it depends on.
    pub clusters: Vec<Cluster>,
    /// Cost before: every node with a group alone.
    pub before: Cost,
    /// Cost of the plan.
    pub after: Cost,
    /// Which order of the portfolio it comes from.
    pub order: &'static str,
    /// The clusters as a partition of all nodes.
    pub partition: Partition,
}

/// The best plan of the portfolio.
///
/// `strict` marks the nodes that PyTensor itself would consider; it may leave out some that have a
/// group, and `None` means all of them. The plan is not worse than PyTensor's on either set.
///
/// # Complexity
/// See the modules; near-linear in practice, O(n^2 / 64) words of memory up to
/// [`sinks::DENSE_LIMIT`].
///
/// # Errors
/// [`crate::Error::LengthMismatch`] if `strict` does not have one entry per node.
pub fn plan(problem: &FusionProblem, strict: Option<&[bool]>) -> Result<Plan> {
    if let Some(strict) = strict
        && strict.len() != problem.n_nodes()
    {
        return Err(crate::Error::LengthMismatch {
            left: "strict",
            left_len: strict.len(),
            right: "inputs",
            right_len: problem.n_nodes(),
        });
    }
    let mut best: Option<(Cost, &'static str, Partition)> = None;
    for Start { order, partition, effort, keep_unfinished } in starts(problem, strict)? {
        // Orders beside the data flow are unknown to PyTensor's tests of independence.
        if problem.has_orderings() && partition.quotient_order(problem).is_err() {
            continue;
        }
        let partition = split::split_oversized(problem, partition);
        let (partition, is_complete) = improve::improve(problem, partition, effort)?;
        if !is_complete && !keep_unfinished {
            continue;
        }
        let cost = cost::cost(problem, &partition);
        if best.as_ref().is_none_or(|(least, ..)| cost < *least) {
            best = Some((cost, order, partition));
        }
    }
    let singletons = Partition::singletons(problem.n_nodes());
    let before = cost::cost(problem, &singletons);
    let (after, order, partition) = best.unwrap_or((before, "nothing", singletons));
    let clusters = clusters(problem, &partition)?;
    Ok(Plan { clusters, before, after, order, partition })
}

/// Units of work per node that improving a partition may take; ordinary graphs take a few. Where a
/// variable has thousands of readers, every merge of those changes the savings of all others.
const EFFORT: u64 = 1000;

/// The same for orders that the plan could do without.
const SMALL_EFFORT: u64 = 12;

/// Where a search begins.
struct Start {
    order: &'static str,
    partition: Partition,
    /// Work that improving it may take.
    effort: u64,
    /// Whether it is worth keeping when that was not enough.
    keep_unfinished: bool,
}

fn starts(problem: &FusionProblem, strict: Option<&[bool]>) -> Result<Vec<Start>> {
    let n_nodes = problem.n_nodes();
    let start = |order, partition| {
        let effort = EFFORT * (1 + n_nodes as u64);
        Start { order, partition, effort, keep_unfinished: true }
    };
    let mut starts = Vec::new();
    if let Some(names) = sinks::grow_from_sinks(problem, |_| true, sinks::DENSE_LIMIT) {
        starts.push(start("sinks", Partition::from_names(names)));
    }
    let sinks_fit = !starts.is_empty();
    if let Some(strict) = strict
        && let Some(names) =
            sinks::grow_from_sinks(problem, |node| strict[node as usize], sinks::DENSE_LIMIT)
    {
        starts.push(start("sinks of PyTensor's nodes", Partition::from_names(names)));
    }
    starts.push(start(
        "depth from sinks",
        typed::fuse_by_depth(problem, typed::Direction::FromSinks)?,
    ));
    let optional = |order, partition| Start {
        effort: SMALL_EFFORT * (1 + n_nodes as u64),
        keep_unfinished: false,
        ..start(order, partition)
    };
    starts.push(optional(
        "depth from sources",
        typed::fuse_by_depth(problem, typed::Direction::FromSources)?,
    ));
    // On graphs that large, the search from scratch takes longest and has not been seen to win.
    if sinks_fit {
        starts.push(optional("savings", Partition::singletons(n_nodes)));
    }
    Ok(starts)
}

fn clusters(problem: &FusionProblem, partition: &Partition) -> Result<Vec<Cluster>> {
    let mut interfaces = Interfaces::new(problem);
    let order = partition.quotient_order(problem)?;
    Ok(order
        .into_iter()
        .map(|block| partition.members(block))
        .filter(|members| members.len() > 1)
        .map(|members| Cluster { nodes: members.to_vec(), interface: interfaces.of(members) })
        .collect())
}

#[cfg(test)]
mod tests;
