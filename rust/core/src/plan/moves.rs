//! Moves of single nodes from one kernel to another.
//!
//! # Problem
//! Where no two kernels can be merged any more, a node may still be in the wrong one: what it reads is
//! read by the other anyway, or its result is read there only. Merges never take anything back.
//!
//! # Approach
//! Each node at the edge of its kernel is tried in the kernels that it is connected with, and goes
//! where that saves most arrays. The kernels stand in a topological order, which a move must not
//! break: nothing that the node reads may come after the kernel that takes it, and nothing that reads
//! it before. Then the quotient has no cycle afterwards, whatever else was moved; the order stays as
//! it is. What a kernel loses must leave it connected, and what it gains within the operand limit.
//!
//! # Rejected
//! Asking whether there is a path, for moves that break the order and would be legal all the same: a
//! search for each.
//!
//! # Source
//! B. Kernighan, S. Lin, "An efficient heuristic procedure for partitioning graphs", Bell System
//! Technical Journal 49 (1970): partitions improved by moving what gains most. Without their
//! sequences of moves of which the first ones lose.

use super::cost::{Interface, Interfaces};
use super::partition::Partition;
use super::problem::{FusionProblem, NONE};
use super::split::connected_parts;
use crate::error::Result;
use crate::graph::NodeId;
use crate::interrupt;

/// How many kernels a node is tried in, and how many readers of each operand are asked for theirs.
const TRIED: usize = 8;

/// Two kernels of more nodes than this in all are left as they are: each try looks at all of them.
const LARGEST: usize = 128;

/// Times that all nodes are tried.
const ROUNDS: usize = 3;

/// Moves nodes between the blocks of `partition`, a legal plan, as long as that saves arrays and
/// `effort` is left, in nodes of kernels that are looked at.
///
/// # Complexity
/// O(n + m), and in proportion to `effort`.
///
/// # Errors
/// [`crate::Error::Cycle`] if the quotient graph of `partition` has one.
pub fn move_nodes(problem: &FusionProblem, partition: Partition, effort: u64) -> Result<Partition> {
    let mut mover = Mover::new(problem, &partition, effort)?;
    let mut n_moves = 0;
    for _ in 0..ROUNDS {
        let before = n_moves;
        for node in 0..problem.n_nodes() as NodeId {
            interrupt::check(4)?;
            if mover.effort == 0 {
                break;
            }
            n_moves += usize::from(mover.try_to_move(node));
        }
        if n_moves == before {
            break;
        }
    }
    Ok(if n_moves == 0 { partition } else { Partition::from_names(mover.block) })
}

struct Mover<'a> {
    problem: &'a FusionProblem,
    interfaces: Interfaces<'a>,
    /// The label of the kernel of each node: that of its smallest member at first.
    block: Vec<NodeId>,
    /// Members of each kernel at its label, ascending.
    members: Vec<Vec<NodeId>>,
    /// The place of each label in a topological order.
    position: Vec<u32>,
    effort: u64,
}

/// A kernel that a node could go to, and the arrays that this saves.
struct Move {
    saved: usize,
    to: NodeId,
}

impl<'a> Mover<'a> {
    fn new(problem: &'a FusionProblem, partition: &Partition, effort: u64) -> Result<Self> {
        let mut position = vec![NONE; problem.n_nodes()];
        for (block, place) in partition.quotient_order(problem)?.into_iter().zip(0u32..) {
            position[block as usize] = place;
        }
        let mut members = vec![Vec::new(); problem.n_nodes()];
        for block in partition.names().filter(|&name| problem.group(name).is_some()) {
            members[block as usize] = partition.members(block).to_vec();
        }
        let block = partition.blocks().to_vec();
        Ok(Self { problem, interfaces: Interfaces::new(problem), block, members, position, effort })
    }

    /// Moves the node where that saves most, if it saves anything.
    fn try_to_move(&mut self, node: NodeId) -> bool {
        let from = self.block[node as usize];
        // What is alone would be a merge.
        if self.problem.group(node).is_none() || self.members[from as usize].len() < 2 {
            return false;
        }
        let mut best: Option<Move> = None;
        for to in self.neighbors(node) {
            let Some(saved) = self.saved(node, to) else { continue };
            if best.as_ref().is_none_or(|best| saved > best.saved) {
                best = Some(Move { saved, to });
            }
        }
        let Some(Move { to, .. }) = best else { return false };
        self.members[from as usize].retain(|&member| member != node);
        let place = self.members[to as usize].partition_point(|&member| member < node);
        self.members[to as usize].insert(place, node);
        self.block[node as usize] = to;
        true
    }

    /// Other kernels of its group that the node is connected with and the order lets it go to.
    fn neighbors(&mut self, node: NodeId) -> Vec<NodeId> {
        let problem = self.problem;
        let group = problem.group(node);
        let place = |other: &NodeId| self.position[self.block[*other as usize] as usize];
        let earliest = problem.graph().predecessors(node).iter().map(place).max().unwrap_or(0);
        let latest = problem.graph().successors(node).iter().map(place).min().unwrap_or(NONE);
        let siblings = problem
            .inputs(node)
            .iter()
            .filter(|&&variable| problem.link(variable) == group)
            .flat_map(|&variable| problem.clients(variable).iter().take(TRIED));
        let owners = problem.inputs(node).iter().map(|&variable| problem.owner(variable));
        let clients = problem.clients(problem.output(node)).iter().take(TRIED);
        let mut found: Vec<NodeId> = Vec::new();
        for other in owners.filter(|&owner| owner != NONE).chain(clients.chain(siblings).copied()) {
            let to = self.block[other as usize];
            let is_between = (earliest..=latest).contains(&self.position[to as usize]);
            if to != self.block[node as usize]
                && is_between
                && problem.group(other) == group
                && !found.contains(&to)
            {
                found.push(to);
            }
        }
        found.truncate(TRIED);
        found
    }

    /// Arrays that are saved when the node goes to another kernel, if any are and it may.
    fn saved(&mut self, node: NodeId, to: NodeId) -> Option<usize> {
        let from = self.block[node as usize];
        let (source, target) = (&self.members[from as usize], &self.members[to as usize]);
        let n_nodes = source.len() + target.len();
        if n_nodes > LARGEST {
            return None;
        }
        self.effort = self.effort.saturating_sub(n_nodes as u64);
        let rest: Vec<NodeId> = source.iter().copied().filter(|&member| member != node).collect();
        let grown: Vec<NodeId> = target.iter().copied().chain([node]).collect();
        let before = self.interfaces.n_arrays(source) + self.interfaces.n_arrays(target);
        let interfaces = [&rest, &grown].map(|members| (self.interfaces.of(members), members));
        let arrays = |interface: &Interface| {
            let read = interface.inputs.iter().filter(|&&v| !self.problem.is_constant(v));
            read.count() + interface.outputs.len()
        };
        let after: usize = interfaces.iter().map(|(interface, _)| arrays(interface)).sum();
        let limit = self.problem.max_operands();
        let fits = interfaces
            .iter()
            .all(|(interface, members)| members.len() < 2 || interface.operands() <= limit);
        let saved = before.checked_sub(after).filter(|&saved| saved > 0 && fits)?;
        (connected_parts(self.problem, &rest).len() == 1).then_some(saved)
    }
}
