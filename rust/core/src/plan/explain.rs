//! Explanations of why two nodes do not share a cluster.

use std::collections::VecDeque;

use super::problem::cost::Interfaces;
use super::problem::{FusionProblem, NONE, Partition};
use crate::budget::Budget;
use crate::error::Result;
use crate::graph::NodeId;
use crate::ids::check_ids;

/// The obstacle that keeps two nodes apart in a plan, if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// They share a cluster.
    Together,
    /// They are one node, which shares a cluster with no other.
    Alone,
    /// This node of the two has no group.
    NoGroup(NodeId),
    /// They have different groups.
    OtherGroup,
    /// Neither cluster reads the other, and they share no operand that may bring them together;
    /// they may share others.
    NotConnected,
    /// A path leads from one cluster to the other through these nodes. Neighbors in the path are
    /// joined by an edge or belong to one cluster.
    Cycle(Vec<NodeId>),
    /// Together they would have this many operands.
    OperandLimit(usize),
    /// They could share a cluster, but the search did not merge them.
    Possible,
}

/// Explains why `a` and `b` do not share a block of `partition`.
///
/// # Complexity
/// O(n + m).
///
/// # Errors
/// Those of [`Explainer::new`] and [`Explainer::explain`].
pub fn explain(
    problem: &FusionProblem,
    partition: &Partition,
    a: NodeId,
    b: NodeId,
    budget: &Budget,
) -> Result<Verdict> {
    Explainer::new(problem, partition, budget)?.explain(a, b)
}

/// Explains many pairs of nodes of one partition.
pub struct Explainer<'a> {
    problem: &'a FusionProblem,
    partition: &'a Partition,
    interfaces: Interfaces<'a>,
    /// The position of each block in a topological order of the quotient graph, indexed by block
    /// name.
    places: Vec<u32>,
    parents: Vec<NodeId>,
    /// For each block the number of the last search that entered it; the current one is
    /// `n_searches`.
    entered: Vec<u32>,
    n_searches: u32,
    budget: &'a Budget,
}

impl<'a> Explainer<'a> {
    /// Prepares explanations; O(n + m).
    ///
    /// # Errors
    /// [`crate::Error::Cycle`] if the quotient graph has one; [`crate::Error::LengthMismatch`] if
    /// `partition` is a partition of other nodes; [`crate::Error::Interrupted`].
    pub fn new(
        problem: &'a FusionProblem,
        partition: &'a Partition,
        budget: &'a Budget,
    ) -> Result<Self> {
        let mut places = vec![0; problem.n_nodes()];
        for (place, block) in (0u32..).zip(partition.quotient_order(problem, budget)?) {
            places[block as usize] = place;
        }
        Ok(Self {
            problem,
            partition,
            interfaces: Interfaces::new(problem, budget),
            budget,
            places,
            parents: vec![NONE; problem.n_nodes()],
            entered: vec![0; problem.n_nodes()],
            n_searches: 0,
        })
    }

    /// Explains why `a` and `b` do not share a block.
    ///
    /// # Complexity
    /// Linear in the edges of the two blocks and of those between them in a topological order.
    ///
    /// # Errors
    /// [`crate::Error::OutOfRange`] if there is no such node; [`crate::Error::Interrupted`].
    pub fn explain(&mut self, a: NodeId, b: NodeId) -> Result<Verdict> {
        check_ids("node", &[a, b], self.problem.n_nodes())?;
        let members = |node| self.partition.members(self.partition.block(node)).len();
        self.budget.check(8 * (members(a) + members(b)))?;
        self.verdict(a, b)
    }

    fn verdict(&mut self, a: NodeId, b: NodeId) -> Result<Verdict> {
        let (problem, partition) = (self.problem, self.partition);
        let (block_a, block_b) = (partition.block(a), partition.block(b));
        if block_a == block_b {
            let is_alone = partition.members(block_a).len() == 1;
            return Ok(if is_alone { Verdict::Alone } else { Verdict::Together });
        }
        if let Some(node) = [a, b].into_iter().find(|&node| problem.group(node).is_none()) {
            return Ok(Verdict::NoGroup(node));
        }
        if problem.group(a) != problem.group(b) {
            return Ok(Verdict::OtherGroup);
        }
        let (members_a, members_b) = (partition.members(block_a), partition.members(block_b));
        if !connected(problem, partition, members_a, members_b, self.budget)? {
            return Ok(Verdict::NotConnected);
        }
        for (from, to) in [(block_a, block_b), (block_b, block_a)] {
            if let Some(path) = self.path_through(from, to)? {
                return Ok(Verdict::Cycle(path));
            }
        }
        let together: Vec<NodeId> = members_a.iter().chain(members_b).copied().collect();
        Ok(match self.interfaces.of(&together)?.operands() {
            operands if operands > problem.max_operands() => Verdict::OperandLimit(operands),
            _ => Verdict::Possible,
        })
    }

    /// The shortest path from a member of `from` to a member of `to` that leaves both, if it
    /// exists. Blocks after `to` in the topological order are on no such path.
    fn path_through(&mut self, from: NodeId, to: NodeId) -> Result<Option<Vec<NodeId>>> {
        let (problem, partition) = (self.problem, self.partition);
        let last = self.places[to as usize];
        if self.places[from as usize] > last {
            return Ok(None);
        }
        self.n_searches += 1;
        let mut queue: VecDeque<NodeId> = partition.members(from).iter().copied().collect();
        for &member in partition.members(from) {
            self.parents[member as usize] = NONE;
        }
        while let Some(node) = queue.pop_front() {
            self.budget.check(1 + problem.graph().successors(node).len())?;
            for &next in problem.graph().successors(node) {
                let block = partition.block(next);
                if block == to && partition.block(node) != from {
                    let mut path = vec![next];
                    let mut step = node;
                    while step != NONE {
                        path.push(step);
                        step = self.parents[step as usize];
                    }
                    path.reverse();
                    return Ok(Some(path));
                }
                let is_known = block == from || self.entered[block as usize] == self.n_searches;
                if is_known || self.places[block as usize] >= last {
                    continue;
                }
                self.entered[block as usize] = self.n_searches;
                self.parents[next as usize] = node;
                for &member in partition.members(block) {
                    if member != next {
                        self.parents[member as usize] = next;
                    }
                    queue.push_back(member);
                }
            }
        }
        Ok(None)
    }
}

fn connected(
    problem: &FusionProblem,
    partition: &Partition,
    members_a: &[NodeId],
    members_b: &[NodeId],
    budget: &Budget,
) -> Result<bool> {
    for &node in members_a.iter().chain(members_b) {
        budget.check(8 * problem.reads(node).len())?;
    }
    let reads = |readers: &[NodeId], block: NodeId| {
        readers.iter().flat_map(|&node| problem.reads(node)).any(|&variable| {
            let owner = problem.owner(variable);
            owner != NONE && partition.block(owner) == block
        })
    };
    if reads(members_a, partition.block(members_b[0]))
        || reads(members_b, partition.block(members_a[0]))
    {
        return Ok(true);
    }
    let group = problem.group(members_a[0]);
    let may_link = |&&variable: &&u32| problem.link(variable) == group;
    let operands_a: rustc_hash::FxHashSet<u32> =
        members_a.iter().flat_map(|&node| problem.reads(node)).filter(may_link).copied().collect();
    let mut operands_b = members_b.iter().flat_map(|&node| problem.reads(node));
    Ok(operands_b.any(|variable| operands_a.contains(variable)))
}
