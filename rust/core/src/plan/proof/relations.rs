//! The nodes of a component that may share a kernel with others, and the relations between them.
//!
//! # Approach
//! The nodes of a component ([`parts`](mod@crate::plan::problem::parts)) that can share a kernel
//! with any other, its *movable* nodes, are numbered in topological order; everything else is a
//! relation between them, held as [`Mask`]s:
//!
//! - `before`: the nodes before each node, by any path. Paths between nodes of a component do not
//!   leave it. Nodes of the component that are not movable, because they have no group or are alone
//!   in their part, occur in these paths only: their kernels are given.
//! - `apart`: nodes of one part joined by a path that leaves the part, which are never in one
//!   kernel.
//! - `adjacent`: nodes of one part that connect, by data or a shared operand, and are not apart.
//!
//! Where `adjacent` no longer connects a part, [`refine`] splits it, and repeats this until nothing
//! changes.

use super::masks::{MOST, Mask, for_width};
use crate::budget::Budget;
use crate::error::Result;
use crate::graph::NodeId;
use crate::plan::problem::parts::{Components, parts};
use crate::plan::problem::{FusionProblem, NONE, Partition, VarId};

/// The parts of a problem and its components, refined: nodes that are apart do not connect a part.
/// Components of more than [`MOST`] movable nodes are left as they are.
///
/// # Complexity
/// O(n + m) words of work for each 64 movable nodes of a component, repeated as often as a part
/// splits because another did, plus the pairs of nodes that connect.
///
/// # Errors
/// [`crate::Error::Interrupted`].
pub(in crate::plan) fn refine(
    problem: &FusionProblem,
    budget: &Budget,
) -> Result<(Partition, Components)> {
    let mut parts = parts(problem, budget)?;
    let mut scratch = Scratch::new(problem);
    loop {
        let components = Components::new(problem, &parts, budget)?;
        let mut names: Option<Vec<NodeId>> = None;
        for component in 0..components.len() as u32 {
            let members = components.members(component);
            let n_movable = movable(&parts, members).count();
            let one = parts.members(parts.block(members[0]));
            if n_movable == 0 || n_movable > MOST || one.len() == members.len() {
                continue;
            }
            budget.check(8 * members.len())?;
            for_width!(n_movable, W => {
                let relations = Relations::<W>::new(problem, &parts, members, &mut scratch, budget)?;
                let pieces = relations.pieces(problem, &mut scratch, budget)?;
                if pieces.len() > relations.parts.len() {
                    let names = names.get_or_insert_with(|| parts.blocks().to_vec());
                    for piece in pieces {
                        let first = piece.first().map_or(NONE, |i| relations.nodes[i]);
                        piece.iter().for_each(|i| names[relations.nodes[i] as usize] = first);
                    }
                }
            });
        }
        match names {
            None => return Ok((parts, components)),
            Some(names) => parts = Partition::from_names(names),
        }
    }
}

/// The members that are not alone in their parts.
pub(in crate::plan) fn movable<'a>(
    parts: &'a Partition,
    members: &'a [NodeId],
) -> impl Iterator<Item = NodeId> + 'a {
    members.iter().copied().filter(|&node| parts.members(parts.block(node)).len() > 1)
}

/// Scratch space, reused from one component to the next. Between two, all entries are [`NONE`].
pub(in crate::plan) struct Scratch {
    /// Position of each node among the members of the component.
    pub(super) position: Vec<u32>,
    /// Number of each variable.
    pub(super) variable: Vec<u32>,
}

impl Scratch {
    pub(in crate::plan) fn new(problem: &FusionProblem) -> Self {
        Self {
            position: vec![NONE; problem.n_nodes()],
            variable: vec![NONE; problem.n_variables()],
        }
    }
}

/// The movable nodes of a component, and the relations between them.
pub(super) struct Relations<const W: usize> {
    /// Movable nodes, ascending.
    pub(super) nodes: Vec<NodeId>,
    /// The parts in the order of their first nodes, and, in `part`, the part of each node.
    pub(super) parts: Vec<Mask<W>>,
    pub(super) part: Vec<u32>,
    pub(super) before: Vec<Mask<W>>,
    pub(super) apart: Vec<Mask<W>>,
}

impl<const W: usize> Relations<W> {
    pub(super) fn new(
        problem: &FusionProblem,
        partition: &Partition,
        members: &[NodeId],
        scratch: &mut Scratch,
        budget: &Budget,
    ) -> Result<Self> {
        for (&node, position) in members.iter().zip(0u32..) {
            scratch.position[node as usize] = position;
        }
        let nodes: Vec<NodeId> = movable(partition, members).collect();
        let mut number = vec![NONE; members.len()];
        let mut parts: Vec<Mask<W>> = Vec::new();
        let mut part = Vec::with_capacity(nodes.len());
        let mut names: rustc_hash::FxHashMap<NodeId, u32> = rustc_hash::FxHashMap::default();
        for (i, &node) in nodes.iter().enumerate() {
            number[scratch.position[node as usize] as usize] = i as u32;
            let n_parts = names.len() as u32;
            let own = *names.entry(partition.block(node)).or_insert(n_parts);
            if own == n_parts {
                parts.push(Mask::EMPTY);
            }
            parts[own as usize].insert(i);
            part.push(own);
        }
        // For each member the movable nodes from which a path leads to it, and those among them
        // from which such a path leaves their part.
        let mut reached = vec![(Mask::<W>::EMPTY, Mask::<W>::EMPTY); members.len()];
        let (mut before, mut apart) = (Vec::new(), vec![Mask::EMPTY; nodes.len()]);
        for (position, &node) in members.iter().enumerate() {
            let (mut all, mut left) = (Mask::EMPTY, Mask::EMPTY);
            budget.check(W * (4 + 2 * problem.graph().predecessors(node).len()))?;
            for &source in problem.graph().predecessors(node) {
                let source = scratch.position[source as usize];
                if source == NONE {
                    continue;
                }
                let (further, away) = reached[source as usize];
                all |= further;
                left |= away;
                if number[source as usize] != NONE {
                    all.insert(number[source as usize] as usize);
                }
            }
            let own = number[position];
            let part_of_it =
                if own == NONE { Mask::EMPTY } else { parts[part[own as usize] as usize] };
            left |= all.without(part_of_it);
            reached[position] = (all, left);
            if own != NONE {
                before.push(all);
                let own = own as usize;
                apart[own] |= left & part_of_it;
                for other in (left & part_of_it).iter() {
                    apart[other].insert(own);
                }
            }
        }
        for &node in members {
            scratch.position[node as usize] = NONE;
        }
        Ok(Self { nodes, parts, part, before, apart })
    }

    /// For each node the nodes of its part that connect with it.
    pub(super) fn adjacent(
        &self,
        problem: &FusionProblem,
        scratch: &mut Scratch,
        budget: &Budget,
    ) -> Result<Vec<Mask<W>>> {
        let mut adjacent = vec![Mask::EMPTY; self.nodes.len()];
        // The readers of each variable. They connect if the variable brings siblings together, and
        // each of them connects with the owner of the variable.
        let mut readers: Vec<Mask<W>> = Vec::new();
        let mut variables: Vec<VarId> = Vec::new();
        for (i, &node) in self.nodes.iter().enumerate() {
            budget.check(4 * W * problem.reads(node).len())?;
            for &variable in problem.reads(node) {
                let slot = &mut scratch.variable[variable as usize];
                if *slot == NONE {
                    *slot = variables.len() as u32;
                    variables.push(variable);
                    readers.push(Mask::EMPTY);
                }
                readers[*slot as usize].insert(i);
            }
        }
        for (i, &node) in self.nodes.iter().enumerate() {
            let mut mask = Mask::EMPTY;
            for &variable in problem.reads(node) {
                if problem.link(variable) == problem.group(node) {
                    mask |= readers[scratch.variable[variable as usize] as usize];
                }
            }
            let output = scratch.variable[problem.output(node) as usize];
            if output != NONE {
                mask |= readers[output as usize];
            }
            let own = self.parts[self.part[i] as usize];
            let mask = (mask & own).without(self.apart[i]).without(Mask::of(i));
            adjacent[i] |= mask;
            mask.iter().for_each(|other| adjacent[other].insert(i));
        }
        for variable in variables {
            scratch.variable[variable as usize] = NONE;
        }
        Ok(adjacent)
    }

    /// The connected pieces of the parts.
    pub(super) fn pieces(
        &self,
        problem: &FusionProblem,
        scratch: &mut Scratch,
        budget: &Budget,
    ) -> Result<Vec<Mask<W>>> {
        let adjacent = self.adjacent(problem, scratch, budget)?;
        let mut pieces = Vec::new();
        for &part in &self.parts {
            let mut left = part;
            while let Some(first) = left.first() {
                let piece = connected_from(&adjacent, first, left);
                budget.check(W * piece.len())?;
                left = left.without(piece);
                pieces.push(piece);
            }
        }
        Ok(pieces)
    }
}

/// The nodes of `within` that `adjacent` connects with `first`, which is one of them.
pub(super) fn connected_from<const W: usize>(
    adjacent: &[Mask<W>],
    first: usize,
    within: Mask<W>,
) -> Mask<W> {
    let (mut reached, mut fresh) = (Mask::of(first), Mask::of(first));
    while !fresh.is_empty() {
        let next = fresh.iter().fold(Mask::EMPTY, |mask, i| mask | adjacent[i]);
        fresh = (next & within).without(reached);
        reached |= fresh;
    }
    reached
}
