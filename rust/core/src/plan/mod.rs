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
//! - [`typed`]: typed fusion by barrier depth, counted from the sources and from the sinks.
//!
//! Every merge of an improvement makes one kernel less and never adds an array: the two clusters
//! shared an operand or one read the other.
//!
//! # Rejected
//! An exact search (dynamic programming over order ideals) takes milliseconds at 30 nodes and
//! grows exponentially; it judges the planner in the tests.

pub mod canonical;
pub mod cost;
pub mod partition;
pub mod problem;
pub mod sinks;
pub mod split;
pub mod typed;

pub use cost::{Cost, Interface, Interfaces};
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
    for (order, start) in starts(problem, strict)? {
        // Orders beside the data flow are unknown to PyTensor's tests of independence.
        if problem.has_orderings() && start.quotient_order(problem).is_err() {
            continue;
        }
        let partition = split::split_oversized(problem, start);
        let cost = cost::cost(problem, &partition);
        if best.as_ref().is_none_or(|(least, ..)| cost < *least) {
            best = Some((cost, order, partition));
        }
    }
    let singletons = Partition::singletons(problem.n_nodes());
    let before = cost::cost(problem, &singletons);
    let (after, order, partition) = best.unwrap_or((before, "nothing", singletons));
    let clusters = clusters(problem, &partition)?;
    Ok(Plan { clusters, before, after, order })
}

fn starts(
    problem: &FusionProblem,
    strict: Option<&[bool]>,
) -> Result<Vec<(&'static str, Partition)>> {
    let mut starts = Vec::new();
    let mut add = |order, names: Option<Vec<u32>>| {
        starts.extend(names.map(|names| (order, Partition::from_names(names))));
    };
    add("sinks", sinks::grow_from_sinks(problem, |_| true, sinks::DENSE_LIMIT));
    if let Some(strict) = strict {
        let eligible = |node: NodeId| strict[node as usize];
        add("strict sinks", sinks::grow_from_sinks(problem, eligible, sinks::DENSE_LIMIT));
    }
    for (order, direction) in [
        ("depth from sources", typed::Direction::FromSources),
        ("depth from sinks", typed::Direction::FromSinks),
    ] {
        starts.push((order, typed::fuse_by_depth(problem, direction)?));
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
