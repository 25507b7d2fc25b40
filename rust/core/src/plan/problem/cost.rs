//! The cost of a partition: kernels first, then the arrays that they read and write; and the
//! interface of a kernel, its inputs and outputs.

use std::ops::AddAssign;

use super::arrays::{FusionProblem, NONE, VarId};
use super::partition::Partition;
use crate::budget::Budget;
use crate::error::Result;
use crate::graph::NodeId;
use crate::ids::check_id;

/// Cost of a plan; smaller is better, kernels before arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Cost {
    /// Number of kernels: clusters and lone nodes that have a group.
    pub kernels: u64,
    /// Distinct non-constant inputs of kernels, plus their outputs that are read outside.
    pub arrays: u64,
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.kernels += other.kernels;
        self.arrays += other.arrays;
    }
}

/// Inputs and outputs of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Interface {
    /// Distinct variables that members read and none of them owns, in the order of first reading.
    pub inputs: Vec<VarId>,
    /// Members whose result is read outside or is a result of the graph, ascending.
    pub outputs: Vec<NodeId>,
}

/// Nodes that become one kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// Two members or more, ascending.
    pub nodes: Vec<NodeId>,
    /// Its inputs and outputs.
    pub interface: Interface,
}

/// Computes interfaces, and reuses its scratch space.
#[derive(Debug)]
pub(in crate::plan) struct Interfaces<'a> {
    problem: &'a FusionProblem,
    /// The epoch in which a variable was last seen as an input.
    seen: Vec<u32>,
    /// The epoch in which a node was last a member.
    member: Vec<u32>,
    epoch: u32,
    budget: &'a Budget,
}

impl<'a> Interfaces<'a> {
    /// Interfaces for the clusters of `problem`; memory in proportion to its nodes and variables.
    pub(in crate::plan) fn new(problem: &'a FusionProblem, budget: &'a Budget) -> Self {
        let (seen, member) = (vec![0; problem.n_variables()], vec![0; problem.n_nodes()]);
        Self { problem, seen, member, epoch: 0, budget }
    }

    /// The interface of the cluster with these members; linear in their operands and clients.
    pub(in crate::plan) fn of(&mut self, members: &[NodeId]) -> Result<Interface> {
        let mut interface = Interface::default();
        self.visit(members, |variable| interface.inputs.push(variable))?;
        interface.outputs.extend(members.iter().copied().filter(|&node| self.leaves(node)));
        Ok(interface)
    }

    /// Cost of the kernel with these members.
    pub(in crate::plan) fn cost_of(&mut self, members: &[NodeId]) -> Result<Cost> {
        let (mut n_read, problem) = (0, self.problem);
        self.visit(members, |variable| n_read += u64::from(!problem.is_constant(variable)))?;
        let n_written = members.iter().filter(|&&node| self.leaves(node)).count() as u64;
        Ok(Cost { kernels: 1, arrays: n_read + n_written })
    }

    /// Calls `input` with each distinct variable that members read and none of them owns. Also
    /// charges the steps of finding which of the members' results leave.
    fn visit(&mut self, members: &[NodeId], mut input: impl FnMut(VarId)) -> Result<()> {
        self.epoch += 1;
        for &node in members {
            self.member[node as usize] = self.epoch;
        }
        for &node in members {
            let reads = self.problem.reads(node);
            let clients = |&output: &VarId| self.problem.clients(output).len();
            let n_readers: usize = self.problem.outputs(node).iter().map(clients).sum();
            self.budget.check(2 + reads.len() + n_readers)?;
            for &variable in reads {
                let owner = self.problem.owner(variable);
                let inside = owner != NONE && self.member[owner as usize] == self.epoch;
                let seen = std::mem::replace(&mut self.seen[variable as usize], self.epoch);
                if !inside && seen != self.epoch {
                    input(variable);
                }
            }
        }
        Ok(())
    }

    fn leaves(&self, node: NodeId) -> bool {
        // A node has one result, unless the members are not a kernel.
        self.problem.outputs(node).iter().any(|&output| {
            let clients = self.problem.clients(output);
            self.problem.is_result(output)
                || clients.iter().any(|&client| self.member[client as usize] != self.epoch)
        })
    }
}

impl Interface {
    /// Inputs, including constants, plus outputs: the number that the operand limit bounds.
    #[must_use]
    pub fn operands(&self) -> usize {
        self.inputs.len() + self.outputs.len()
    }
}

/// Cost of `partition`: every block of nodes that have a group is a kernel. O(n + m).
///
/// # Errors
/// [`crate::Error::Interrupted`].
pub(in crate::plan) fn cost(
    problem: &FusionProblem,
    partition: &Partition,
    budget: &Budget,
) -> Result<Cost> {
    let mut interfaces = Interfaces::new(problem, budget);
    let mut total = Cost::default();
    for block in partition.names().filter(|&name| problem.group(name).is_some()) {
        total += interfaces.cost_of(partition.members(block))?;
    }
    Ok(total)
}

/// Cost of nodes that are kernels but may not be fused: each reads its distinct non-constant inputs
/// and writes those of its results that are read or are results of the graph. Linear in their
/// operands.
///
/// # Errors
/// [`crate::Error::OutOfRange`] if there is no such node; [`crate::Error::Interrupted`].
pub fn lone_cost(
    problem: &FusionProblem,
    nodes: impl Iterator<Item = NodeId>,
    budget: &Budget,
) -> Result<Cost> {
    let mut total = Cost::default();
    for node in nodes {
        check_id("node", node, problem.n_nodes())?;
        total.kernels += 1;
        budget.check(1 + problem.reads(node).len() + problem.outputs(node).len())?;
        let distinct = problem.reads(node).iter();
        let distinct = distinct.filter(|&&read| !problem.is_constant(read)).count();
        let needed =
            |&&output: &&VarId| problem.is_result(output) || !problem.clients(output).is_empty();
        let needed = problem.outputs(node).iter().filter(needed).count();
        total.arrays += (distinct + needed) as u64;
    }
    Ok(total)
}
