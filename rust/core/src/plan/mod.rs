//! Fusion planning: the choice of nodes that share a kernel.
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
//! A portfolio ([`Strategy`]): several greedy orders each give a legal partition, which is cut
//! where it breaks the operand limit and improved by further merges. The cheapest wins, separately
//! in each component of the problem ([`problem::parts`]). One order is PyTensor's own, so that the
//! plan is never worse than PyTensor's on graphs of up to 46,000 nodes, for which that order is
//! tried. The orders are:
//!
//! - `sinks`: PyTensor's growth from the sinks, as long as its dense bitsets fit;
//! - `typed`: typed fusion by barrier depth, counted from the sources and from the sinks;
//! - `improve` from scratch: the pair that saves most arrays first.
//!
//! Every merge of an improvement removes one kernel and never adds an array: the two clusters
//! shared an operand or one read the other.
//!
//! `moves` then finds savings that no merge can: each move takes nodes to the kernel where that
//! saves most, and further merges follow. This finds most of the savings that plans of the
//! portfolio miss, and only examines each operand once where there is nothing to move.
//!
//! [`proof`] bounds the distance from the best plan: components of the problem are usually small,
//! and where a bound does not show that the plan is the best one, a search can.
//!
//! # Rejected
//! Exact search for every plan: its time grows exponentially, and it usually confirms the plan at
//! hand.
//!
//! # Source
//! K. Kennedy and K. S. McKinley, "Maximizing loop parallelism and improving data locality via loop
//! fusion and distribution", LCPC 1993: the problem as a graph, and its NP-hardness. The modules
//! name their own sources.
//!
//! # Modules
//! Each module imports only from those after it in this order:
//!
//! - this one: a plan, by [`search`] and, if it has to be optimal, by [`proof`];
//! - [`explain`](mod@explain), [`canonical`]: analyses of a finished plan;
//! - [`search`]: a good plan in near-linear time;
//! - [`proof`]: bounds, and the best plan;
//! - [`problem`]: the problem, and the costs of its plans.

pub mod canonical;
pub mod explain;
pub mod problem;
pub mod proof;
pub mod search;

pub use explain::{Explainer, Verdict, explain};
pub use problem::{
    Cluster, Cost, FusionProblem, Interface, NONE, Partition, ProblemArrays, VarId, lone_cost,
};
pub use proof::{EFFORT, GLANCE, Proof, lower_bound, prove};
pub use search::portfolio::Strategy;

use crate::budget::Budget;
use crate::error::Result;
use crate::graph::NodeId;
use crate::ids::check_same_length;
use problem::cost::{self, Interfaces};
use search::portfolio::{self, AMPLE, Question};
use search::{improve, moves};

/// A legal plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Clusters in a topological order of the quotient graph: each after its dependencies.
    pub clusters: Vec<Cluster>,
    /// Cost before: every node with a group alone.
    pub before: Cost,
    /// Cost of the plan.
    pub after: Cost,
    /// The clusters as a partition of all nodes.
    pub partition: Partition,
    /// Source of the plan: the strategy whose plan of the whole graph is the cheapest, although
    /// components are taken from other strategies where theirs are cheaper. None if no strategy
    /// found a plan that is cheaper than no fusion.
    pub strategy: Option<Strategy>,
    /// The strategies whose search for further merges ran out of effort, in the order in which they
    /// were tried: with more effort, the plan might be cheaper.
    pub exhausted: Vec<Strategy>,
}

/// The best plan of the portfolio, after moves of nodes between its kernels (`moves`).
///
/// `strict` marks the nodes that PyTensor itself would consider; it may omit some that have a
/// group, and `None` means all of them. The plan is not worse than PyTensor's on either set, as
/// long as dense bitsets of the graph fit [`search::closure::DENSE_LIMIT`] (those of 46,000 nodes
/// do) and there are no orderings that PyTensor would break.
///
/// # Complexity
/// See the modules; near-linear in practice, O(n^2 / 64) words of memory up to
/// [`search::closure::DENSE_LIMIT`].
///
/// # Errors
/// [`crate::Error::LengthMismatch`] if `strict` does not have one entry per node;
/// [`crate::Error::Interrupted`].
pub fn plan(problem: &FusionProblem, strict: Option<&[bool]>, budget: &Budget) -> Result<Plan> {
    if let Some(strict) = strict {
        check_same_length(("strict", strict.len()), ("inputs", problem.n_nodes()))?;
    }
    let found = portfolio::best(&Question { problem, strict, budget })?;
    Plan::polished(problem, found, budget)
}

/// The optimal plan, or the best one that the search found with the effort of the budget, and a
/// [`Proof`]. If the proof's bound equals the plan's cost, no plan is better. The proof's partition
/// may differ from the plan's at the same cost.
///
/// # Arguments
/// * `strict`: as for [`plan`], whose plan the search starts from.
/// * `budget`: its effort limits the sets and states that the search examines, for instance
///   [`EFFORT`].
///
/// # Complexity
/// That of [`plan`], plus time at most proportional to the effort.
///
/// # Errors
/// Those of [`plan`].
pub fn plan_optimally(
    problem: &FusionProblem,
    strict: Option<&[bool]>,
    budget: &Budget,
) -> Result<(Plan, Proof)> {
    let mut plan = plan(problem, strict, budget)?;
    let order = plan.partition.quotient_order(problem, budget)?;
    let doubtful = vec![true; problem.n_nodes()];
    let polished = polish(problem, &plan.partition, &order, &doubtful, budget)?;
    let proof = prove(problem, polished.as_ref().unwrap_or(&plan.partition), budget)?;
    if proof.cost < plan.after {
        let order = proof.partition.quotient_order(problem, budget)?;
        plan.clusters = clusters(problem, &proof.partition, &order, budget)?;
        (plan.after, plan.partition) = (proof.cost, proof.partition.clone());
        plan.strategy = Some(Strategy::ExactSearch);
    }
    Ok((plan, proof))
}

impl Plan {
    /// The plan of the portfolio, after moves of nodes between its kernels.
    fn polished(
        problem: &FusionProblem,
        mut found: portfolio::Found,
        budget: &Budget,
    ) -> Result<Self> {
        let mut order = found.partition.quotient_order(problem, budget)?;
        if !found.is_optimal
            && let Some(partition) =
                polish(problem, &found.partition, &order, &found.doubtful, budget)?
        {
            order = partition.quotient_order(problem, budget)?;
            found.cost = cost::cost(problem, &partition, budget)?;
            found.partition = partition;
        }
        Self::of(problem, found, &order, budget)
    }

    fn of(
        problem: &FusionProblem,
        found: portfolio::Found,
        order: &[NodeId],
        budget: &Budget,
    ) -> Result<Self> {
        Ok(Self {
            clusters: clusters(problem, &found.partition, order, budget)?,
            before: found.unfused_cost,
            after: found.cost,
            partition: found.partition,
            strategy: found.strategy,
            exhausted: found.exhausted,
        })
    }
}

/// On larger graphs the merges after moves are skipped: they take as long as a strategy and find
/// almost nothing.
const LARGE: usize = 1 << 14;

/// The partition after moves and the merges that they make possible, or None if moves find nothing
/// cheaper.
///
/// # Arguments
/// * `order`: the blocks in a topological order.
/// * `doubtful`: as for [`moves::move_nodes`].
fn polish(
    problem: &FusionProblem,
    partition: &Partition,
    order: &[NodeId],
    doubtful: &[bool],
    budget: &Budget,
) -> Result<Option<Partition>> {
    let n_nodes = problem.n_nodes();
    let of_moves = budget.with_effort(moves::effort(n_nodes, problem.n_reads()));
    let Some(moved) = moves::move_nodes(problem, partition, order, doubtful, &of_moves)? else {
        return Ok(None);
    };
    if n_nodes > LARGE {
        return Ok(Some(moved));
    }
    let of_merges = budget.with_effort(AMPLE * (1 + n_nodes as u64));
    let (merged, _) = improve::improve(problem, moved, &of_merges)?;
    Ok(Some(merged))
}

/// The blocks of several nodes, in the given `order` of the blocks.
fn clusters(
    problem: &FusionProblem,
    partition: &Partition,
    order: &[NodeId],
    budget: &Budget,
) -> Result<Vec<Cluster>> {
    let mut interfaces = Interfaces::new(problem, budget);
    order
        .iter()
        .map(|&block| partition.members(block))
        .filter(|members| members.len() > 1)
        .map(|members| Ok(Cluster { nodes: members.to_vec(), interface: interfaces.of(members)? }))
        .collect()
}

#[cfg(test)]
mod tests;
