//! A component of a problem as a small problem of its own.
//!
//! # Problem
//! The exact planner asks of sets of nodes whether they can be one kernel next, and what that costs,
//! millions of times.
//!
//! # Approach
//! The nodes of a component ([`super::parts`]) that can share a kernel with any other, its *movable*
//! nodes, are numbered in topological order; everything else is a relation between them, held as
//! [`Mask`]s:
//!
//! - `before` and `after`: which come before or after which, by whatever path. Paths between nodes of
//!   a component do not leave it. What is in the component and not movable, nodes without a group and
//!   such as are alone in their part, is in these paths, and nowhere else: their kernels are given.
//! - `apart`: nodes of one part joined by a path that leaves the part, which are never in one kernel.
//! - `adjacent`: nodes of one part that connect, by data or a shared operand, and are not apart.
//! - `excluded`: nodes of one part that are never in one kernel, for whatever is known: they are apart;
//!   or they are not connected but by nodes that are excluded from one of them; or what lies on a path
//!   between them, which would have to be with them, is excluded from one of them.
//!
//! Where `adjacent` does not connect a part any more, it is several; [`refine`] makes them so, and
//! goes on until nothing changes.

use super::masks::{MOST, Mask, for_width};
use super::partition::Partition;
use super::parts::{Components, parts};
use super::problem::{FusionProblem, NONE, VarId};
use crate::budget::Budget;
use crate::error::Result;
use crate::graph::NodeId;

/// The parts of a problem and its components, refined: pairs of nodes that are apart connect no part.
/// Components of more than [`MOST`] movable nodes are left as they are.
///
/// # Complexity
/// O(n + m) words of work for each 64 movable nodes of a component, as often as a part falls apart
/// because another did, plus the pairs of nodes that connect.
///
/// # Errors
/// [`crate::Error::Interrupted`].
pub(super) fn refine(problem: &FusionProblem, budget: &Budget) -> Result<(Partition, Components)> {
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

/// Those of `members` that are not alone in their parts.
pub(super) fn movable<'a>(
    parts: &'a Partition,
    members: &'a [NodeId],
) -> impl Iterator<Item = NodeId> + 'a {
    members.iter().copied().filter(|&node| parts.members(parts.block(node)).len() > 1)
}

/// What is kept from one component to the next. Between two, all entries are [`NONE`].
pub(super) struct Scratch {
    /// Position of each node among the members of the component.
    pub(super) position: Vec<u32>,
    /// Number of each variable.
    variable: Vec<u32>,
}

impl Scratch {
    pub(super) fn new(problem: &FusionProblem) -> Self {
        Self {
            position: vec![NONE; problem.n_nodes()],
            variable: vec![NONE; problem.n_variables()],
        }
    }
}

/// The movable nodes of a component, and what is between them.
struct Relations<const W: usize> {
    /// Movable nodes, ascending.
    nodes: Vec<NodeId>,
    /// The parts in the order of their first nodes, and which of them each node is in.
    parts: Vec<Mask<W>>,
    part: Vec<u32>,
    before: Vec<Mask<W>>,
    apart: Vec<Mask<W>>,
}

impl<const W: usize> Relations<W> {
    fn new(
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
        // For each member the movable nodes from which a path leads to it, and those of them from
        // which one leads that leaves their part.
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

    /// For each node those of its part that connect with it.
    fn adjacent(
        &self,
        problem: &FusionProblem,
        scratch: &mut Scratch,
        budget: &Budget,
    ) -> Result<Vec<Mask<W>>> {
        let mut adjacent = vec![Mask::EMPTY; self.nodes.len()];
        // The readers of each operand that brings siblings together, and who owns what is read.
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

    /// The sets that connected nodes make up.
    fn pieces(
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

/// Those of `within` that `adjacent` connects with `first`, which is one of them.
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

/// Of disjoint sets, a choice of as few nodes as possible that needs no nodes of others: the one with the
/// first set, if there are several. Empty sets are never chosen.
///
/// # Arguments
/// * `needs`: for each set what it needs of all sets.
/// * `own`: for each node the number of its set.
///
/// # Approach
/// What a set needs, and what that needs, is a choice that is closed. Sets that need one another are in
/// the same choices, and of these strongly connected components, those that need no other are closed
/// while all else has one of them besides itself. So the smallest of them is asked for. A path of sets,
/// each needed by the one before, grows as long as its last needs any that is unseen; if that needs one
/// on the path, the last two are in one component and go on as one set.
///
/// # Complexity
/// O(1) words of masks for each set.
///
/// # Source
/// H. Gabow, "Path-based depth-first search for strong and biconnected components", Information
/// Processing Letters 74 (2000).
pub(super) fn least_closed<const W: usize>(
    sets: &[Mask<W>],
    needs: &[Mask<W>],
    own: &[u32],
) -> Vec<usize> {
    let mut unseen = sets.iter().fold(Mask::EMPTY, |mask, &set| mask | set);
    let mut done = Mask::EMPTY;
    // Nodes, what they need, and the number of the first of their sets.
    let mut path: Vec<(Mask<W>, Mask<W>, usize)> = Vec::new();
    let mut best: Option<(usize, usize, Mask<W>)> = None;
    for start in 0..sets.len() {
        let mut next = sets[start].meets(unseen).then_some(start);
        loop {
            if let Some(number) = next {
                unseen = unseen.without(sets[number]);
                path.push((sets[number], needs[number], number));
            }
            let Some(&(nodes, needed, first)) = path.last() else { break };
            next = (needed & unseen).first().map(|node| own[node] as usize);
            if next.is_some() {
                continue;
            }
            path.pop();
            if needed.is_within(nodes | done) {
                done |= nodes;
                let size = nodes.len();
                let is_less = best.is_none_or(|(least, known, _)| (size, first) < (least, known));
                if needed.is_within(nodes) && is_less {
                    best = Some((size, first, nodes));
                }
            } else if let Some(before) = path.last_mut() {
                *before = (before.0 | nodes, before.1 | needed, before.2.min(first));
            }
        }
    }
    let chosen = best.map_or(Mask::EMPTY, |(.., nodes)| nodes);
    (0..sets.len()).filter(|&i| sets[i].meets(chosen)).collect()
}

/// A variable that movable nodes read or make.
#[derive(Debug)]
pub(super) struct Variable<const W: usize> {
    /// The movable node that makes it, if one does.
    pub(super) owner: Option<usize>,
    /// The movable nodes that read it.
    pub(super) readers: Mask<W>,
    pub(super) is_constant: bool,
    /// Whether something else reads it, or it is a result of the graph.
    pub(super) is_needed: bool,
}

/// A component as a problem over its movable nodes.
#[derive(Debug)]
pub(super) struct Component<const W: usize> {
    pub(super) nodes: Vec<NodeId>,
    /// All nodes as a set.
    pub(super) all: Mask<W>,
    pub(super) parts: Vec<Mask<W>>,
    pub(super) part: Vec<u32>,
    pub(super) before: Vec<Mask<W>>,
    pub(super) after: Vec<Mask<W>>,
    pub(super) apart: Vec<Mask<W>>,
    pub(super) adjacent: Vec<Mask<W>>,
    pub(super) excluded: Vec<Mask<W>>,
    pub(super) variables: Vec<Variable<W>>,
    /// For each node the distinct variables that it reads.
    reads: Vec<Vec<u32>>,
    /// For each node the variable that it makes.
    pub(super) output: Vec<u32>,
    limit: usize,
    /// See [`Component::step`].
    step: u64,
    /// Whether nodes that must be together need not be connected: an ordering says that they must.
    pub(super) has_orderings: bool,
}

/// A look at a set of so many nodes, or of so many operands and variables where nodes have unusually
/// many, takes twice as long as at a small one.
const NODES: usize = 128;
const ENTRIES: usize = 8 * NODES;

/// The cost of a kernel without its arrays. Within a component, a cost is one number: kernels above
/// the lower 32 bits, in which the arrays, fewer than there are ids, fit.
pub(super) const KERNEL: u64 = 1 << 32;

/// What a kernel reads and writes, or more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Operands {
    /// Those that are not constants.
    pub(super) arrays: u64,
    pub(super) operands: usize,
}

impl<const W: usize> Component<W> {
    /// The component with these members. `parts` and the members are those of [`refine`].
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`].
    pub(super) fn new(
        problem: &FusionProblem,
        parts: &Partition,
        members: &[NodeId],
        scratch: &mut Scratch,
        budget: &Budget,
    ) -> Result<Self> {
        let relations = Relations::<W>::new(problem, parts, members, scratch, budget)?;
        let adjacent = relations.adjacent(problem, scratch, budget)?;
        let Relations { nodes, parts, part, before, apart } = relations;
        let mut after = vec![Mask::EMPTY; nodes.len()];
        for (i, &earlier) in before.iter().enumerate() {
            earlier.iter().for_each(|other| after[other].insert(i));
        }
        let mut component = Self {
            all: (0..nodes.len()).collect(),
            parts,
            part,
            before,
            after,
            excluded: apart.clone(),
            apart,
            adjacent,
            variables: Vec::new(),
            reads: vec![Vec::new(); nodes.len()],
            output: Vec::with_capacity(nodes.len()),
            limit: problem.max_operands(),
            step: 0,
            has_orderings: problem.has_orderings(),
            nodes,
        };
        component.exclude(budget)?;
        component.add_variables(problem, scratch, budget)?;
        let n_operands = component.reads.iter().map(Vec::len).sum::<usize>();
        let n_entries = n_operands + component.variables.len();
        let n_groups = (component.nodes.len() / NODES).max(n_entries / ENTRIES);
        component.step = (W * (1 + n_groups)) as u64;
        Ok(component)
    }

    /// Finds pairs that are excluded, until there are no more. Excluded pairs make more of them.
    fn exclude(&mut self, budget: &Budget) -> Result<()> {
        loop {
            let mut is_done = true;
            for i in 0..self.nodes.len() {
                let part = self.parts[self.part[i] as usize];
                let own = self.excluded[i];
                let connected = connected_from(&self.adjacent, i, part.without(own));
                let mut fresh = part.without(connected).without(own);
                for other in (connected & self.after[i]).iter() {
                    let between = self.after[i] & self.before[other];
                    if between.meets(own | self.excluded[other]) {
                        fresh.insert(other);
                    }
                }
                budget.check(16 * W * part.len())?;
                for other in fresh.iter() {
                    self.excluded[other].insert(i);
                    is_done = false;
                }
                self.excluded[i] |= fresh;
            }
            if is_done {
                return Ok(());
            }
        }
    }

    fn add_variables(
        &mut self,
        problem: &FusionProblem,
        scratch: &mut Scratch,
        budget: &Budget,
    ) -> Result<()> {
        let mut known: Vec<VarId> = Vec::new();
        for (i, &node) in self.nodes.iter().enumerate() {
            let output = problem.output(node);
            budget.check(8 * W * (1 + problem.reads(node).len()))?;
            for (is_output, &variable) in
                problem.reads(node).iter().map(|v| (false, v)).chain([(true, &output)])
            {
                let slot = &mut scratch.variable[variable as usize];
                if *slot == NONE {
                    *slot = known.len() as u32;
                    known.push(variable);
                    self.variables.push(Variable {
                        owner: None,
                        readers: Mask::EMPTY,
                        is_constant: problem.is_constant(variable),
                        is_needed: problem.is_result(variable),
                    });
                }
                let entry = &mut self.variables[*slot as usize];
                if is_output {
                    entry.owner = Some(i);
                    self.output.push(*slot);
                } else {
                    entry.readers.insert(i);
                    self.reads[i].push(*slot);
                }
            }
        }
        for (entry, &variable) in self.variables.iter_mut().zip(&known) {
            entry.is_needed |= problem.clients(variable).len() > entry.readers.len();
            scratch.variable[variable as usize] = NONE;
        }
        Ok(())
    }

    /// What every kernel reads and writes that has at least the nodes `least` and at most those in
    /// `most`; with both the same, what that kernel does.
    pub(super) fn operands(&self, least: Mask<W>, most: Mask<W>) -> Operands {
        let mut found = Operands::default();
        for i in least.iter() {
            for &variable in &self.reads[i] {
                let variable = &self.variables[variable as usize];
                let may_be_inside = variable.owner.is_some_and(|owner| most.contains(owner));
                if !may_be_inside && (variable.readers & least).first() == Some(i) {
                    found.operands += 1;
                    found.arrays += u64::from(!variable.is_constant);
                }
            }
            let output = &self.variables[self.output[i] as usize];
            if output.is_needed || !output.readers.is_within(most) {
                found.operands += 1;
                found.arrays += 1;
            }
        }
        found
    }

    /// Whether as many operands are not too many for kernels of these nodes.
    pub(super) fn allows(&self, nodes: Mask<W>, operands: Operands) -> bool {
        operands.operands <= self.limit || nodes.len() < 2
    }

    /// What it takes of an effort to look at a set: in proportion to the words of all that is counted
    /// for it, so that as much effort takes about as long for components of all sizes.
    pub(super) fn step(&self) -> u64 {
        self.step
    }

    /// The total cost of `kernels`, packed as [`KERNEL`] says.
    pub(super) fn total(&self, kernels: &[Mask<W>]) -> u64 {
        kernels.iter().map(|&nodes| KERNEL + self.operands(nodes, nodes).arrays).sum()
    }

    /// Whether the nodes are connected by themselves.
    pub(super) fn is_connected(&self, nodes: Mask<W>) -> bool {
        nodes.first().is_none_or(|first| connected_from(&self.adjacent, first, nodes) == nodes)
    }

    /// The connected pieces of `rest`, each within a part, in the order of their parts.
    pub(super) fn pieces(&self, rest: Mask<W>) -> Vec<Mask<W>> {
        let mut pieces = Vec::new();
        for &part in &self.parts {
            let mut left = part & rest;
            while let Some(first) = left.first() {
                let piece = connected_from(&self.adjacent, first, left);
                left = left.without(piece);
                pieces.push(piece);
            }
        }
        pieces
    }

    /// Of `sets`, which are disjoint and make up `rest`, a choice that waits for no others, with as few
    /// nodes as that takes: kernels within it can all come before the others.
    ///
    /// # Complexity
    /// O(1) words of masks for each node of `rest` and each set.
    pub(super) fn sources(&self, sets: &[Mask<W>], rest: Mask<W>) -> Vec<usize> {
        let mut own = vec![NONE; self.nodes.len()];
        for (&set, number) in sets.iter().zip(0..) {
            set.iter().for_each(|i| own[i] = number);
        }
        let waits_for = |set: Mask<W>| set.iter().fold(set, |mask, i| mask | self.before[i]) & rest;
        let needs: Vec<Mask<W>> = sets.iter().map(|&set| waits_for(set)).collect();
        least_closed(sets, &needs, &own)
    }

    /// Those of `set` that a next kernel within it may have: no path leads to them from elsewhere in
    /// `rest`, nor from a node of it that is apart.
    pub(super) fn ready(&self, set: Mask<W>, rest: Mask<W>) -> Mask<W> {
        set.iter()
            .filter(|&i| {
                let earlier = self.before[i] & rest;
                earlier.is_within(set) && !earlier.meets(self.apart[i])
            })
            .collect()
    }
}
