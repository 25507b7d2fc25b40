//! Cutting clusters that have too many operands.
//!
//! # Problem
//! A compiler accepts a limited number of operands per kernel, and greedy orders ignore the limit.
//!
//! # Approach
//! A cluster is cut along topological prefixes: each piece together with the pieces before it is
//! closed under the cluster's own dependencies, so that pieces depend on earlier pieces only and
//! the quotient graph stays acyclic. Among the members that could come next, the one that adds the
//! fewest operands is taken.
//!
//! # Rejected
//! An arbitrary cut: its pieces may depend on each other in both directions.

use std::collections::BTreeSet;

use crate::budget::Budget;
use crate::error::Result;
use crate::graph::NodeId;
use crate::plan::problem::cost::Interfaces;
use crate::plan::problem::{FusionProblem, NONE, Partition};

/// Limit on the ready members that are compared at each step, which keeps a cut linear.
const COMPARED: usize = 32;

/// Steps of a look-up in a hashed set.
const PER_LOOK_UP: usize = 8;

/// Replaces every cluster that breaks the operand limit by connected pieces that keep it. A node
/// that breaks the limit by itself remains alone.
///
/// # Complexity
/// O(k d log k) for a cluster of k members with d operands and clients each, times a constant.
///
/// # Errors
/// [`crate::Error::Interrupted`].
pub(in crate::plan) fn split_oversized(
    problem: &FusionProblem,
    partition: Partition,
    budget: &Budget,
) -> Result<Partition> {
    let limit = problem.max_operands();
    let mut interfaces = Interfaces::new(problem, budget);
    let mut names = None;
    for block in partition.names() {
        let members = partition.members(block);
        // A cluster has at most as many operands as its members have separately.
        let bound: usize = members.iter().map(|&node| problem.reads(node).len() + 1).sum();
        budget.check(1 + members.len())?;
        if members.len() < 2 || bound <= limit || interfaces.of(members)?.operands() <= limit {
            continue;
        }
        let names = names.get_or_insert_with(|| partition.blocks().to_vec());
        for piece in Cut::new(problem, &partition, block, budget)?.pieces()? {
            for part in connected_parts(problem, &piece, budget)? {
                for &node in &part {
                    names[node as usize] = part[0];
                }
            }
        }
    }
    Ok(names.map_or(partition, Partition::from_names))
}

/// A cluster that is being cut.
struct Cut<'a> {
    problem: &'a FusionProblem,
    partition: &'a Partition,
    block: NodeId,
    /// Members not placed yet whose producers in the cluster are all placed.
    ready: BTreeSet<NodeId>,
    /// For each member not placed, the number of its producers in the cluster that are not placed.
    missing: rustc_hash::FxHashMap<NodeId, u32>,
    piece: Piece,
    budget: &'a Budget,
}

/// The piece that is being filled.
#[derive(Default)]
struct Piece {
    nodes: Vec<NodeId>,
    members: rustc_hash::FxHashSet<NodeId>,
    inputs: rustc_hash::FxHashSet<u32>,
    n_outputs: usize,
}

impl<'a> Cut<'a> {
    fn new(
        problem: &'a FusionProblem,
        partition: &'a Partition,
        block: NodeId,
        budget: &'a Budget,
    ) -> Result<Self> {
        let mut missing = rustc_hash::FxHashMap::default();
        let mut ready = BTreeSet::new();
        for &node in partition.members(block) {
            budget.check(8 + problem.graph().predecessors(node).len())?;
            let inside = |&&source: &&NodeId| partition.block(source) == block;
            match problem.graph().predecessors(node).iter().filter(inside).count() as u32 {
                0 => {
                    ready.insert(node);
                }
                count => {
                    missing.insert(node, count);
                }
            }
        }
        Ok(Self { problem, partition, block, ready, missing, piece: Piece::default(), budget })
    }

    fn pieces(mut self) -> Result<Vec<Vec<NodeId>>> {
        let mut pieces = Vec::new();
        while !self.ready.is_empty() {
            match self.best_fit()? {
                Some(node) => self.place(node)?,
                None => pieces.push(std::mem::take(&mut self.piece).nodes),
            }
        }
        pieces.push(self.piece.nodes);
        Ok(pieces)
    }

    /// The ready member that adds the fewest operands, if one fits; anything fits an empty piece.
    fn best_fit(&self) -> Result<Option<NodeId>> {
        let operands = self.piece.inputs.len() + self.piece.n_outputs;
        let limit = self.problem.max_operands() as isize;
        let mut best: Option<(isize, NodeId)> = None;
        for &node in self.ready.iter().take(COMPARED) {
            let candidate = (self.added_operands(node)?, node);
            best = Some(best.map_or(candidate, |best| best.min(candidate)));
        }
        Ok(best
            .filter(|&(added, _)| self.piece.nodes.is_empty() || operands as isize + added <= limit)
            .map(|(_, node)| node))
    }

    fn added_operands(&self, node: NodeId) -> Result<isize> {
        let mut added = 1;
        let operands = self.problem.reads(node);
        self.budget.check(PER_LOOK_UP * (1 + operands.len()))?;
        for &variable in operands {
            let owner = self.problem.owner(variable);
            if owner != NONE && self.piece.members.contains(&owner) {
                added -= isize::from(self.is_last_client(owner, node)?);
            } else {
                added += isize::from(!self.piece.inputs.contains(&variable));
            }
        }
        Ok(added)
    }

    /// Whether only the piece and `node` read the result of `owner`.
    fn is_last_client(&self, owner: NodeId, node: NodeId) -> Result<bool> {
        let output = self.problem.output(owner);
        let clients = self.problem.clients(output);
        self.budget.check(PER_LOOK_UP * clients.len())?;
        let is_inside = |client: &NodeId| *client == node || self.piece.members.contains(client);
        Ok(!self.problem.is_result(output) && clients.iter().all(is_inside))
    }

    fn place(&mut self, node: NodeId) -> Result<()> {
        let added = self.added_operands(node)?;
        self.budget.check(PER_LOOK_UP * self.problem.graph().successors(node).len())?;
        let fresh: Vec<u32> = self
            .problem
            .reads(node)
            .iter()
            .copied()
            .filter(|&variable| {
                let owner = self.problem.owner(variable);
                owner == NONE || !self.piece.members.contains(&owner)
            })
            .collect();
        let before = self.piece.inputs.len() as isize;
        self.piece.inputs.extend(fresh);
        let more_inputs = self.piece.inputs.len() as isize - before;
        self.piece.n_outputs = self.piece.n_outputs.saturating_add_signed(added - more_inputs);
        self.piece.members.insert(node);
        self.piece.nodes.push(node);
        self.ready.remove(&node);
        for &client in self.problem.graph().successors(node) {
            if self.partition.block(client) != self.block {
                continue;
            }
            if let Some(count) = self.missing.get_mut(&client) {
                *count -= 1;
                if *count == 0 {
                    self.missing.remove(&client);
                    self.ready.insert(client);
                }
            }
        }
        Ok(())
    }
}

/// Parts of a piece connected by data flow or by operands that may bring siblings together; each
/// ascending.
///
/// Nodes with different numbers of orderings before them are kept apart: otherwise orderings alone
/// could lead both ways between two connected parts.
fn connected_parts(
    problem: &FusionProblem,
    piece: &[NodeId],
    budget: &Budget,
) -> Result<Vec<Vec<NodeId>>> {
    let mut sorted = piece.to_vec();
    sorted.sort_unstable();
    let index: rustc_hash::FxHashMap<NodeId, u32> = sorted.iter().copied().zip(0u32..).collect();
    let level = levels(problem, &sorted, &index);
    let mut parts = Partition::singletons(sorted.len());
    let mut reader = rustc_hash::FxHashMap::default();
    let mut pairs = Vec::new();
    for (&node, i) in sorted.iter().zip(0u32..) {
        let n_sources = problem.graph().predecessors(node).len();
        budget.check(PER_LOOK_UP * (1 + problem.reads(node).len() + n_sources))?;
        for &variable in problem.reads(node) {
            if let Some(&producer) = index.get(&problem.owner(variable)) {
                pairs.push((producer, i));
            } else if problem.link(variable) == problem.group(node)
                && let Some(other) = reader.insert((variable, level[i as usize]), i)
                && other != i
            {
                pairs.push((other, i));
            }
        }
    }
    pairs.retain(|&(a, b)| level[a as usize] == level[b as usize]);
    parts.merge_pairs(&pairs);
    let nodes = |name| parts.members(name).iter().map(|&i| sorted[i as usize]).collect();
    Ok(parts.names().map(nodes).collect())
}

/// For each node of a piece, in topological order, the largest number of orderings without data on
/// a path to it within the piece.
fn levels(
    problem: &FusionProblem,
    sorted: &[NodeId],
    index: &rustc_hash::FxHashMap<NodeId, u32>,
) -> Vec<u32> {
    let mut level = vec![0; sorted.len()];
    if !problem.has_orderings() {
        return level;
    }
    for (i, &node) in sorted.iter().enumerate() {
        let sources = problem.graph().predecessors(node).iter();
        let before = sources.filter_map(|source| {
            let so_far = level[*index.get(source)? as usize];
            Some(so_far + u32::from(!problem.has_data(*source, node)))
        });
        level[i] = before.max().unwrap_or(0);
    }
    level
}
