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
//! order. One order is PyTensor's own, so that the plan is never worse than PyTensor's where that
//! order is tried:
//!
//! - [`sinks`]: PyTensor's growth from the sinks, as long as its dense bitsets fit;
//! - [`typed`]: typed fusion by barrier depth, counted from the sources and from the sinks;
//! - [`improve`] from scratch: the pair that saves most arrays first.
//!
//! Every merge of an improvement makes one kernel less and never adds an array: the two clusters
//! shared an operand or one read the other.
//!
//! # Rejected
//! Trying the orders in two threads: on the graphs of models, of some hundred nodes, starting a
//! thread takes longer than it saves.
//!
//! An exact search: it grows exponentially. On small graphs, exhaustive search judges the planner in
//! the tests.

pub mod canonical;
pub mod cost;
pub mod explain;
pub mod improve;
pub mod partition;
pub mod patterns;
pub mod problem;
pub mod sinks;
pub mod split;
pub mod typed;

pub use cost::{Cost, Interface, Interfaces};
pub use explain::{Explainer, Verdict, explain};
pub use partition::Partition;
pub use problem::{FusionProblem, NONE, ProblemArrays, VarId};

use crate::error::Result;
use crate::graph::{NodeId, check_same_length};
use crate::interrupt;

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
    /// The clusters as a partition of all nodes.
    pub partition: Partition,
}

/// The best plan of the portfolio.
///
/// `strict` marks the nodes that PyTensor itself would consider; it may leave out some that have a
/// group, and `None` means all of them. The plan is not worse than PyTensor's on either set, as long
/// as dense bitsets fit [`sinks::DENSE_LIMIT`] and there are no orderings that PyTensor would break.
///
/// # Complexity
/// See the modules; near-linear in practice, O(n^2 / 64) words of memory up to
/// [`sinks::DENSE_LIMIT`].
///
/// # Errors
/// [`crate::Error::LengthMismatch`] if `strict` does not have one entry per node.
pub fn plan(problem: &FusionProblem, strict: Option<&[bool]>) -> Result<Plan> {
    if let Some(strict) = strict {
        check_same_length(("strict", strict.len()), ("inputs", problem.n_nodes()))?;
    }
    let singletons = Partition::singletons(problem.n_nodes());
    let before = cost::cost(problem, &singletons);
    let start = Candidate { cost: before, order: Order::Savings, partition: singletons };
    let Candidate { cost: after, partition, .. } = best_of_portfolio(problem, strict, start)?;
    let clusters = clusters(problem, &partition)?;
    Ok(Plan { clusters, before, after, partition })
}

/// The orders of the portfolio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Sinks,
    /// The same over the nodes that PyTensor itself would consider.
    StrictSinks,
    DepthFromSinks,
    DepthFromSources,
    Savings,
}

/// Units of work per node that improving a partition may take; ordinary graphs take a few. Where a
/// variable has thousands of readers, every merge of those changes the savings of all others.
const EFFORT: u64 = 1000;

/// The same for orders that the plan could do without.
const SMALL_EFFORT: u64 = 12;

impl Order {
    const ALL: [Self; 5] = [
        Self::Sinks,
        Self::StrictSinks,
        Self::DepthFromSinks,
        Self::DepthFromSources,
        Self::Savings,
    ];

    /// Whether an unfinished search is worth keeping.
    fn is_needed(self) -> bool {
        !matches!(self, Self::DepthFromSources | Self::Savings)
    }

    /// The partition to improve, if the order applies.
    fn start(self, problem: &FusionProblem, strict: Option<&[bool]>) -> Result<Option<Partition>> {
        Ok(match self {
            Self::Sinks => sinks::grow_from_sinks(problem, |_| true, sinks::DENSE_LIMIT)
                .map(Partition::from_names),
            Self::StrictSinks => strict
                .and_then(|strict| {
                    let eligible = |node: NodeId| strict[node as usize];
                    sinks::grow_from_sinks(problem, eligible, sinks::DENSE_LIMIT)
                })
                .map(Partition::from_names),
            Self::DepthFromSinks => {
                Some(typed::fuse_by_depth(problem, typed::Direction::FromSinks)?)
            }
            // Stands in for growth from the sinks where that does not fit.
            Self::DepthFromSources if !sinks::fits(problem, sinks::DENSE_LIMIT) => {
                Some(typed::fuse_by_depth(problem, typed::Direction::FromSources)?)
            }
            // On larger graphs it takes longest of all, and has not been seen to win.
            Self::Savings if sinks::fits(problem, sinks::DENSE_LIMIT) => {
                Some(Partition::singletons(problem.n_nodes()))
            }
            Self::DepthFromSources | Self::Savings => None,
        })
    }
}

struct Candidate {
    cost: Cost,
    order: Order,
    partition: Partition,
}

/// On graphs of more nodes than this, two orders that agree are believed without proof.
const SMALL: usize = 128;

/// The cheapest partition of the portfolio; at equal cost that of the earlier order.
///
/// Growth from the sinks and depth from the sinks follow different rules. Where they agree on the
/// cost, the search from scratch is left out: on small graphs if no plan can have fewer kernels, on
/// others in any case. Of random graphs of 100 nodes where they agree, it would find something
/// better in one of ten, an array or two; of the log-densities and gradients that were tried, in
/// none; and it takes a third of the time.
fn best_of_portfolio(
    problem: &FusionProblem,
    strict: Option<&[bool]>,
    unfused: Candidate,
) -> Result<Candidate> {
    let mut best = unfused;
    for order in Order::ALL {
        let Some(next) = candidate(problem, strict, order)? else { continue };
        let agree = (best.order, order) == (Order::Sinks, Order::DepthFromSinks)
            && next.cost == best.cost
            && (problem.n_nodes() > SMALL || typed::has_fewest_kernels(problem, &next.partition));
        if next.cost < best.cost {
            best = next;
        }
        if agree {
            break;
        }
    }
    Ok(best)
}

/// What comes of an order, if it applies.
fn candidate(
    problem: &FusionProblem,
    strict: Option<&[bool]>,
    order: Order,
) -> Result<Option<Candidate>> {
    interrupt::check(problem.n_nodes())?;
    let Some(start) = order.start(problem, strict)? else { return Ok(None) };
    interrupt::check(problem.n_nodes())?;
    // Orders beside the data flow are unknown to PyTensor's tests of independence.
    if problem.has_orderings() && start.quotient_order(problem).is_err() {
        return Ok(None);
    }
    let effort = if order.is_needed() { EFFORT } else { SMALL_EFFORT };
    let split = split::split_oversized(problem, start);
    interrupt::check(problem.n_nodes())?;
    let (partition, is_complete) =
        improve::improve(problem, split, effort * (1 + problem.n_nodes() as u64))?;
    if !is_complete && !order.is_needed() {
        return Ok(None);
    }
    Ok(Some(Candidate { cost: cost::cost(problem, &partition), order, partition }))
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
