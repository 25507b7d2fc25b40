//! A component of a problem as a small problem of its own.
//!
//! # Problem
//! The exact planner tests millions of sets of nodes: whether they can be one kernel next, and at
//! what cost.
//!
//! # Approach
//! The movable nodes of the component are numbered, and the relations between them (`relations`)
//! are [`Mask`]s. Two more relations follow from these:
//!
//! - `after`, the converse of `before`: the nodes after each node, by any path;
//! - `excluded`: nodes of one part that are known never to share a kernel: they are apart; or every
//!   connection between them goes through nodes that are excluded from one of them; or a node on a
//!   path between them, which would have to be with them, is excluded from one of them.

use super::least_closed::least_closed;
use super::masks::Mask;
use super::relations::{Relations, Scratch, connected_from};
use crate::budget::Budget;
use crate::error::Result;
use crate::graph::NodeId;
use crate::plan::problem::{FusionProblem, NONE, Partition, VarId};

/// A variable that movable nodes read or make.
#[derive(Debug)]
pub(super) struct Variable<const W: usize> {
    /// The movable node that makes it, if any.
    pub(super) owner: Option<usize>,
    /// The movable nodes that read it.
    pub(super) readers: Mask<W>,
    pub(super) is_constant: bool,
    /// Whether anything else reads it, or it is a result of the graph.
    pub(super) is_needed: bool,
}

/// A component as a problem over its movable nodes.
#[derive(Debug)]
pub(in crate::plan) struct Component<const W: usize> {
    pub(in crate::plan) nodes: Vec<NodeId>,
    /// All nodes as a set.
    pub(in crate::plan) all: Mask<W>,
    pub(in crate::plan) parts: Vec<Mask<W>>,
    pub(in crate::plan) part: Vec<u32>,
    pub(in crate::plan) before: Vec<Mask<W>>,
    pub(super) after: Vec<Mask<W>>,
    pub(in crate::plan) apart: Vec<Mask<W>>,
    pub(in crate::plan) adjacent: Vec<Mask<W>>,
    pub(in crate::plan) excluded: Vec<Mask<W>>,
    pub(super) variables: Vec<Variable<W>>,
    /// For each node the distinct variables that it reads.
    reads: Vec<Vec<u32>>,
    /// For each node the variable that it makes.
    pub(super) output: Vec<u32>,
    limit: usize,
    /// See [`Component::step`].
    step: u64,
    /// Whether there are orderings: these can force nodes into one kernel without connecting them.
    pub(super) has_orderings: bool,
}

/// A set of this many nodes, or of `ENTRIES` operands and variables where nodes have unusually
/// many, takes twice as long to examine as a small one.
const NODES: usize = 128;
const ENTRIES: usize = 8 * NODES;

/// The cost of a kernel without its arrays. Within a component, a cost is one number: the kernels
/// are above the lower 32 bits, and the arrays are in these, where they fit because there are fewer
/// arrays than ids.
pub(super) const KERNEL: u64 = 1 << 32;

/// A lower bound on the operands of a kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Operands {
    /// Operands that are not constants.
    pub(super) arrays: u64,
    pub(super) operands: usize,
}

impl<const W: usize> Component<W> {
    /// The component with these members. `parts` and `members` come from
    /// [`super::relations::refine`].
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`].
    pub(in crate::plan) fn new(
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

    /// Finds excluded pairs until there are no more, because excluded pairs imply further ones.
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

    /// A lower bound on the operands of each kernel that contains `least` and is within `most`;
    /// exact if the two are equal.
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

    /// Whether a kernel of these nodes may have this many operands.
    pub(super) fn allows(&self, nodes: Mask<W>, operands: Operands) -> bool {
        operands.operands <= self.limit || nodes.len() < 2
    }

    /// The effort of examining a set: proportional to the words of all that is counted for it, so
    /// that the same effort takes about as long for components of all sizes.
    pub(in crate::plan) fn step(&self) -> u64 {
        self.step
    }

    /// The total cost of `kernels`, packed as described for [`KERNEL`].
    pub(super) fn total(&self, kernels: &[Mask<W>]) -> u64 {
        kernels.iter().map(|&nodes| KERNEL + self.operands(nodes, nodes).arrays).sum()
    }

    /// Whether the nodes are connected among themselves.
    pub(in crate::plan) fn is_connected(&self, nodes: Mask<W>) -> bool {
        nodes.first().is_none_or(|first| connected_from(&self.adjacent, first, nodes) == nodes)
    }

    /// The connected pieces of `rest`, each within a part, in the order of their parts.
    pub(in crate::plan) fn pieces(&self, rest: Mask<W>) -> Vec<Mask<W>> {
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

    /// The choice of `sets` with the fewest nodes that waits for no other set: kernels within it
    /// can all come before the others. The sets are disjoint and make up `rest`.
    ///
    /// # Complexity
    /// O(1) masks for each node of `rest` and each set.
    pub(in crate::plan) fn sources(&self, sets: &[Mask<W>], rest: Mask<W>) -> Vec<usize> {
        let mut own = vec![NONE; self.nodes.len()];
        for (&set, number) in sets.iter().zip(0..) {
            set.iter().for_each(|i| own[i] = number);
        }
        let waits_for = |set: Mask<W>| set.iter().fold(set, |mask, i| mask | self.before[i]) & rest;
        let needs: Vec<Mask<W>> = sets.iter().map(|&set| waits_for(set)).collect();
        least_closed(sets, &needs, &own)
    }

    /// The nodes of `set` that a next kernel within it may have: no path leads to them from
    /// elsewhere in `rest`, nor from a node of `set` that is apart from them.
    pub(in crate::plan) fn ready(&self, set: Mask<W>, rest: Mask<W>) -> Mask<W> {
        set.iter()
            .filter(|&i| {
                let earlier = self.before[i] & rest;
                earlier.is_within(set) && !earlier.meets(self.apart[i])
            })
            .collect()
    }
}
