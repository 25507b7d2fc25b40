//! Plans that are proven to be optimal, or a bound on their distance from the optimum.
//!
//! # Problem
//! Planning is NP-hard. Yet most components of real graphs are small, or a greedy order already
//! finds a plan for them that cannot be improved.
//!
//! # Approach
//! [`prove`] takes a plan and goes through the components of the problem ([`parts`]), refined, the
//! smaller ones first. A part that is alone in its component and within the operand limit is one
//! kernel. The plan of any other component is compared with the bounds (`bounds`), and if it does
//! not attain them, the exact search (`exact`) looks for a better one with the component's share of
//! the remaining effort. The costs and lower bounds of the components add up.
//!
//! Without any effort, this gives a bound in near-linear time ([`lower_bound`]).
//!
//! # Rejected
//! A limit in seconds: the same input must have the same output.
//!
//! [`parts`]: crate::plan::problem::parts

use super::bounds::{Joint, Levels, kernels_by_limit};
use super::component::{Component, KERNEL};
use super::exact::search;
use super::masks::{MOST, Mask, for_width};
use super::relations::{Scratch, movable, refine};
use crate::budget::Budget;
use crate::error::Result;
use crate::graph::NodeId;
use crate::ids::check_same_length;
use crate::plan::problem::cost::{Cost, Interfaces};
use crate::plan::problem::parts::Components;
use crate::plan::problem::{FusionProblem, NONE, Partition};

/// The default effort of a search, in words of sets that it examines; seconds at most.
pub const EFFORT: u64 = 4_000_000;

/// The effort that a bound for an existing plan is worth: milliseconds.
pub const GLANCE: u64 = 10_000;

/// Steps that the joint bound of a component may take.
const JOINT_STEPS: u64 = 2000;

/// The effort that the joint bound of a component may take for each movable node, whatever the
/// effort of the search: some microseconds. Beyond that it takes at most half of the component's
/// share.
const JOINT_PER_NODE: u64 = 100;

/// A plan and a lower bound on the cost of the best one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// The best known plan.
    pub partition: Partition,
    /// The cost of this plan.
    pub cost: Cost,
    /// No legal plan costs less.
    pub bound: Cost,
    /// The effort that the search took.
    pub effort: u64,
}

impl Proof {
    /// Whether the bound proves that no plan is better.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.cost == self.bound
    }
}

/// The bound for plans of `problem`: no legal plan has fewer kernels, and none with as few kernels
/// has fewer arrays.
///
/// # Complexity
/// Near-linear: that of refining the components, plus a limited effort for each movable node.
///
/// # Errors
/// [`crate::Error::Interrupted`].
pub fn lower_bound(problem: &FusionProblem, budget: &Budget) -> Result<Cost> {
    let unfused = Partition::singletons(problem.n_nodes());
    Ok(prove(problem, &unfused, &budget.with_effort(0))?.bound)
}

/// The best plan found with the effort of the budget, or `incumbent` if none is better, and a
/// bound.
///
/// # Arguments
/// * `incumbent`: a legal plan.
/// * `budget`: its effort limits the sets that the search examines, each counted with its words;
///   for instance [`EFFORT`].
///
/// # Complexity
/// Near-linear, plus time in proportion to the effort, which also bounds the memory: some hundred
/// bytes for every four units.
///
/// # Errors
/// [`crate::Error::LengthMismatch`] if `incumbent` is a partition of other nodes;
/// [`crate::Error::Interrupted`].
pub fn prove(problem: &FusionProblem, incumbent: &Partition, budget: &Budget) -> Result<Proof> {
    let n_nodes = problem.n_nodes();
    check_same_length(("incumbent", incumbent.blocks().len()), ("nodes", n_nodes))?;
    let (parts, components) = refine(problem, budget)?;
    let mut prover = Prover {
        problem,
        incumbent,
        parts: &parts,
        interfaces: Interfaces::new(problem, budget),
        scratch: Scratch::new(problem),
        names: None,
        cost: Cost::default(),
        bound: Cost::default(),
        budget,
    };
    let before = budget.effort();
    prover.all(&components)?;
    let Prover { names, cost, bound, .. } = prover;
    let partition = names.map_or_else(|| incumbent.clone(), Partition::from_names);
    Ok(Proof { partition, cost, bound, effort: before - budget.effort() })
}

struct Prover<'a> {
    problem: &'a FusionProblem,
    incumbent: &'a Partition,
    parts: &'a Partition,
    interfaces: Interfaces<'a>,
    scratch: Scratch,
    /// Names of the plan's blocks, once it differs from the incumbent.
    names: Option<Vec<NodeId>>,
    cost: Cost,
    bound: Cost,
    budget: &'a Budget,
}

impl Prover<'_> {
    fn all(&mut self, components: &Components) -> Result<()> {
        let mut open: Vec<(usize, u32)> = Vec::new();
        for component in 0..components.len() as u32 {
            let members = components.members(component);
            self.add_given(members)?;
            let n_movable = movable(self.parts, members).count();
            if n_movable > 0 {
                open.push((n_movable, component));
            }
        }
        open.sort_unstable();
        for (position, &(n_movable, component)) in open.iter().enumerate() {
            let members = components.members(component);
            self.budget.check(8 * members.len())?;
            let share = self.budget.effort() / (open.len() - position) as u64;
            if self.is_one_kernel(members)? {
                continue;
            }
            if n_movable > MOST {
                self.bound_only(members)?;
            } else {
                for_width!(n_movable, W => self.component::<W>(members, share)?);
            }
        }
        Ok(())
    }

    /// Adds the nodes that are kernels by themselves in every plan.
    fn add_given(&mut self, members: &[NodeId]) -> Result<()> {
        self.budget.check(members.len())?;
        for &node in members {
            let is_alone = self.parts.members(self.parts.block(node)).len() == 1;
            if is_alone && self.problem.group(node).is_some() {
                self.add_kernel(&[node])?;
            }
        }
        Ok(())
    }

    /// Counts a kernel that the best plan has.
    fn add_kernel(&mut self, members: &[NodeId]) -> Result<()> {
        let cost = self.interfaces.cost_of(members)?;
        self.cost += cost;
        self.bound += cost;
        Ok(())
    }

    /// Makes a part that is alone in its component one kernel, if it can be.
    fn is_one_kernel(&mut self, members: &[NodeId]) -> Result<bool> {
        let first = self.parts.block(members[0]);
        if self.parts.members(first).len() != members.len()
            || self.interfaces.of(members)?.operands() > self.problem.max_operands()
        {
            return Ok(false);
        }
        self.add_kernel(members)?;
        let known = self.incumbent.block(first);
        if known != first || self.incumbent.members(known).len() != members.len() {
            self.rename(members);
        }
        Ok(true)
    }

    /// Makes `nodes` one kernel.
    fn rename(&mut self, nodes: &[NodeId]) {
        let names = self.names.get_or_insert_with(|| self.incumbent.blocks().to_vec());
        for &node in nodes {
            names[node as usize] = nodes[0];
        }
    }

    fn component<const W: usize>(&mut self, members: &[NodeId], share: u64) -> Result<()> {
        let (scratch, budget) = (&mut self.scratch, self.budget);
        let component = Component::<W>::new(self.problem, self.parts, members, scratch, budget)?;
        let levels = Levels::new(&component, budget)?;
        let mut joint = Joint::new(&component, &levels);
        let known = self.known_kernels(&component);
        let incumbent = component.total(&known);
        let mut by_part = 0;
        for &part in &component.parts {
            let nodes: Vec<NodeId> = part.iter().map(|i| component.nodes[i]).collect();
            let by_limit =
                kernels_by_limit(self.problem, self.parts, &nodes, &mut self.interfaces, budget)?;
            by_part += levels.kernels(part).max(by_limit);
        }
        let more = share / 2;
        let of_joint = budget.with_effort(JOINT_PER_NODE * component.nodes.len() as u64 + more);
        let kernels = joint.kernels(component.all, JOINT_STEPS, &of_joint)?.max(by_part);
        let taken = more.saturating_sub(of_joint.effort());
        budget.spend(taken);
        let share = share - taken;
        let mut bound = KERNEL * kernels + levels.arrays(component.all);
        let mut total = incumbent;
        if bound < incumbent && share > 0 {
            let of_search = budget.with_effort(share);
            let found = search(&component, &levels, &mut joint, incumbent, &of_search)?;
            budget.spend(share - of_search.effort());
            bound = bound.max(found.bound);
            if let Some(kernels) = found.kernels {
                total = component.total(&kernels);
                for kernel in kernels {
                    let nodes: Vec<NodeId> = kernel.iter().map(|i| component.nodes[i]).collect();
                    self.rename(&nodes);
                }
            }
        }
        let cost = |packed| Cost { kernels: packed / KERNEL, arrays: packed % KERNEL };
        self.cost += cost(total);
        self.bound += cost(bound);
        Ok(())
    }

    /// The kernels of the incumbent in a component.
    fn known_kernels<const W: usize>(&self, component: &Component<W>) -> Vec<Mask<W>> {
        let mut kernels: Vec<Mask<W>> = Vec::new();
        let mut number: rustc_hash::FxHashMap<NodeId, usize> = rustc_hash::FxHashMap::default();
        for (i, &node) in component.nodes.iter().enumerate() {
            let next = kernels.len();
            let own = *number.entry(self.incumbent.block(node)).or_insert(next);
            if own == next {
                kernels.push(Mask::EMPTY);
            }
            kernels[own].insert(i);
        }
        kernels
    }

    /// Adds bounds for a component that is too large for the exact search.
    fn bound_only(&mut self, members: &[NodeId]) -> Result<()> {
        let mut parts: Vec<NodeId> = Vec::new();
        for &node in members {
            let part = self.parts.block(node);
            if part == node && self.parts.members(part).len() > 1 {
                parts.push(part);
            }
            let block = self.incumbent.members(self.incumbent.block(node));
            if block[0] == node && self.parts.members(part).len() > 1 {
                self.cost += self.interfaces.cost_of(block)?;
            }
        }
        parts.sort_by_key(|&part| (std::cmp::Reverse(self.parts.members(part).len()), part));
        let mut depth = vec![0u32; members.len()];
        for (&node, position) in members.iter().zip(0u32..) {
            self.scratch.position[node as usize] = position;
        }
        for (rank, &part) in parts.iter().enumerate() {
            let nodes = self.parts.members(part);
            let by_limit = kernels_by_limit(
                self.problem,
                self.parts,
                nodes,
                &mut self.interfaces,
                self.budget,
            )?;
            // The depth of a part takes one pass over the component.
            let by_depth = if rank < PASSES { self.deepest(members, part, &mut depth)? } else { 0 };
            self.bound.kernels += by_limit.max(by_depth + 1);
            // Merged kernels read and write no more arrays.
            self.bound.arrays += self.interfaces.cost_of(nodes)?.arrays;
        }
        for &node in members {
            self.scratch.position[node as usize] = NONE;
        }
        Ok(())
    }

    /// The largest number of times that a path leaves the part and comes back.
    fn deepest(&self, members: &[NodeId], part: NodeId, depth: &mut [u32]) -> Result<u64> {
        let is_in = |node: NodeId| self.parts.block(node) == part;
        let mut deepest = 0;
        for (position, &node) in members.iter().enumerate() {
            let sources = self.problem.graph().predecessors(node);
            self.budget.check(1 + 2 * sources.len())?;
            let before = sources.iter().filter_map(|&source| {
                let so_far = depth.get(self.scratch.position[source as usize] as usize)?;
                Some(so_far + u32::from(is_in(source) && !is_in(node)))
            });
            depth[position] = before.max().unwrap_or(0);
            if is_in(node) {
                deepest = deepest.max(depth[position]);
            }
        }
        Ok(deepest.into())
    }
}

/// The number of parts of a large component whose depth is computed, the largest ones first.
const PASSES: usize = 64;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::plan::tests::problems::random::{Random, SHAPES, random_arrays};
    use crate::plan::{plan, plan_optimally};

    /// Compares the bound for large components, on small ones, with the definition of its terms.
    #[test]
    fn a_bound_of_few_passes_is_the_sum_over_the_parts() {
        let mut random = Random(41);
        let mut n_deep = 0;
        for number in 0..600 {
            let n_nodes = 3 + random.below(30);
            let arrays = random_arrays(&mut random, n_nodes, SHAPES[number % SHAPES.len()]);
            let problem = FusionProblem::new(arrays.clone(), &Budget::unlimited()).unwrap();
            let budget = Budget::unlimited().with_effort(0);
            let plan = plan(&problem, None, &budget).unwrap();
            let (parts, components) = refine(&problem, &budget).unwrap();
            let mut prover = Prover {
                problem: &problem,
                incumbent: &plan.partition,
                parts: &parts,
                interfaces: Interfaces::new(&problem, &budget),
                scratch: Scratch::new(&problem),
                names: None,
                cost: Cost::default(),
                bound: Cost::default(),
                budget: &budget,
            };
            let mut interfaces = Interfaces::new(&problem, &budget);
            let mut expected = Cost::default();
            for component in 0..components.len() as u32 {
                let members = components.members(component);
                prover.add_given(members).unwrap();
                if movable(&parts, members).count() > 0 {
                    prover.bound_only(members).unwrap();
                }
                for &part in members.iter().filter(|&&node| parts.block(node) == node) {
                    if problem.group(part).is_none() {
                        continue;
                    }
                    let within = |node: NodeId| parts.block(node) == part;
                    // The most nodes of the part, less one, on a path that leaves the part between
                    // them.
                    let mut left = vec![0u64; n_nodes];
                    for node in 0..n_nodes as NodeId {
                        let sources = problem.graph().predecessors(node).iter();
                        let ways = sources.map(|&source| {
                            left[source as usize] + u64::from(within(source) && !within(node))
                        });
                        left[node as usize] = ways.max().unwrap_or(0);
                    }
                    let nodes = parts.members(part);
                    let deepest = nodes.iter().map(|&node| left[node as usize]).max().unwrap();
                    let by_limit =
                        kernels_by_limit(&problem, &parts, nodes, &mut interfaces, &budget);
                    let by_limit = by_limit.unwrap();
                    expected.kernels += by_limit.max(deepest + 1);
                    expected.arrays += interfaces.cost_of(nodes).unwrap().arrays;
                    n_deep += usize::from(deepest > 0 && by_limit <= deepest);
                }
            }
            assert_eq!(prover.cost, plan.after, "{arrays:?}");
            assert_eq!(prover.bound, expected, "{arrays:?}");
            assert!(prover.scratch.position.iter().all(|&position| position == NONE));
            let (best, _) =
                plan_optimally(&problem, None, &Budget::unlimited().with_effort(EFFORT)).unwrap();
            assert!(expected <= best.after, "{arrays:?}");
        }
        assert!(n_deep > 50, "{n_deep}");
    }
}
