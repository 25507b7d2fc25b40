//! Clusters by barrier depth: typed fusion, one group at a time.
//!
//! # Problem
//! Within one group, two nodes may share a cluster only if no path between them leaves the group.
//!
//! # Approach
//! The *depth* of a node is the largest number of times that a path leads out of the group and
//! back into it before it reaches the node. Nodes of one depth can all be merged at once: a path
//! from one to another through nodes outside would give the second a greater depth.
//!
//! The groups are processed one after the other, the largest first, each on the quotient graph that
//! the earlier ones left, so that the clusters of *all* groups together stay acyclic (joint cycles,
//! where each cluster alone is convex, cannot arise). A depth is then cut into its connected parts:
//! no path that leaves a contractible set joins two of its parts, and none inside it does, so that
//! the parts can be contracted separately.
//!
//! An ordering without data counts as leaving the group and coming back: nodes of one depth are then
//! joined by data alone, which keeps them in one part.
//!
//! Counting depths from the sources or from the sinks gives two different partitions; neither is
//! always better.
//!
//! # Rejected
//! Depths of all groups at once, on the original graph: clusters that are convex separately can
//! form a cycle together.
//!
//! # Source
//! K. Kennedy and K. S. McKinley, "Maximizing loop parallelism and improving data locality via
//! loop fusion and distribution", LCPC 1993: greedy typed fusion, linear in the graph.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::budget::Budget;
use crate::error::Result;
use crate::graph::NodeId;
use crate::plan::problem::parts::connections;
use crate::plan::problem::{FusionProblem, NONE, Partition};
use crate::rows::Rows;
use crate::union_find::{find, unite};

/// The end from which depths are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::plan) enum Direction {
    /// A node joins the earliest cluster that it can.
    FromSources,
    /// A node joins the latest cluster that it can.
    FromSinks,
}

/// A partition whose clusters together form an acyclic quotient graph, each connected by data flow
/// or by shared operands. The operand limit is ignored.
///
/// # Complexity
/// O(n + m), and for each group of two or more nodes, O(k log k) for its k nodes and the nodes
/// between the first and the last of them in a topological order, with their edges: O(n + m) for
/// each group at most. O(n + m) memory.
///
/// # Errors
/// [`crate::Error::Cycle`] never for a checked problem: it would mean that the partition is wrong;
/// [`crate::Error::Interrupted`].
pub(in crate::plan) fn fuse_by_depth(
    problem: &FusionProblem,
    direction: Direction,
    budget: &Budget,
) -> Result<Partition> {
    let mut quotient = Quotient::new(problem, budget);
    // Groups have different variables as links, so that one list serves all groups.
    let mut newest_reader = vec![NONE; problem.n_variables()];
    let mut depth = vec![0; problem.n_nodes()];
    for mut members in groups_by_size(problem, budget)? {
        let between = quotient.between(&members);
        budget.check(between.len() + 8 * members.len())?;
        quotient.find_depths(between.clone(), direction, &mut depth)?;
        members.sort_by_key(|&node| depth[node as usize]);
        // Members come depth by depth, so the newest reader is of the same depth if any is.
        let same_depth = |a: NodeId, b: NodeId| depth[a as usize] == depth[b as usize];
        let nodes = members.iter().copied();
        let pairs = connections(problem, nodes, &mut newest_reader, same_depth, budget)?;
        quotient.merge(&members, &pairs, between)?;
    }
    Ok(Partition::from_names(quotient.block))
}

/// The quotient graph of blocks that grow group by group, in a topological order.
struct Quotient<'a> {
    problem: &'a FusionProblem,
    /// Name of the block of each node: its smallest member.
    block: Vec<NodeId>,
    /// Members of the blocks that have several, by block name.
    several: FxHashMap<NodeId, Vec<NodeId>>,
    /// The blocks in a topological order; [`NONE`] in place of a block that is part of another now.
    order: Vec<NodeId>,
    /// The position of each block in that order, by name.
    place: Vec<u32>,
    /// Scratch space: the number of edges that a block still waits for, by name.
    missing: Vec<u32>,
    budget: &'a Budget,
}

impl<'a> Quotient<'a> {
    /// The quotient with every node alone: ids are a topological order.
    fn new(problem: &'a FusionProblem, budget: &'a Budget) -> Self {
        let nodes = 0..problem.n_nodes() as NodeId;
        Self {
            problem,
            block: nodes.clone().collect(),
            several: FxHashMap::default(),
            order: nodes.clone().collect(),
            place: nodes.collect(),
            missing: vec![0; problem.n_nodes()],
            budget,
        }
    }

    fn members<'b>(&'b self, block: &'b NodeId) -> &'b [NodeId] {
        self.several.get(block).map_or(std::slice::from_ref(block), Vec::as_slice)
    }

    /// The places from the first to the last of `nodes`, each of which is alone in its block.
    fn between(&self, nodes: &[NodeId]) -> Range<usize> {
        let places = || nodes.iter().map(|&node| self.place[node as usize] as usize);
        places().min().unwrap_or(0)..places().max().map_or(0, |last| last + 1)
    }

    /// Finds the depth of each block at the places `between`, from the first to the last node of a
    /// group. Blocks before the first of them, or after the last, have no depth.
    fn find_depths(
        &self,
        between: Range<usize>,
        direction: Direction,
        depth: &mut [u32],
    ) -> Result<()> {
        let problem = self.problem;
        let group = problem.group(self.order[between.start]);
        let in_group = |node: NodeId| problem.group(node) == group;
        let mut visit = |block: NodeId| -> Result<()> {
            let mut deepest = 0;
            for &member in self.members(&block) {
                let neighbors = match direction {
                    Direction::FromSources => problem.graph().predecessors(member),
                    Direction::FromSinks => problem.graph().successors(member),
                };
                self.budget.check(1 + 4 * neighbors.len())?;
                for &neighbor in neighbors {
                    let other = self.block[neighbor as usize];
                    if other == block || !between.contains(&(self.place[other as usize] as usize)) {
                        continue;
                    }
                    let has_data = match direction {
                        Direction::FromSources => problem.has_data(neighbor, member),
                        Direction::FromSinks => problem.has_data(member, neighbor),
                    };
                    let leaves_group = in_group(other) && !(in_group(block) && has_data);
                    deepest = deepest.max(depth[other as usize] + u32::from(leaves_group));
                }
            }
            depth[block as usize] = deepest;
            Ok(())
        };
        let mut blocks = self.order[between.clone()].iter().copied().filter(|&block| block != NONE);
        match direction {
            Direction::FromSources => blocks.try_for_each(&mut visit),
            Direction::FromSinks => blocks.rev().try_for_each(&mut visit),
        }
    }

    /// Merges the blocks of each pair of `nodes`, whose places are `between`.
    fn merge(
        &mut self,
        nodes: &[NodeId],
        pairs: &[(NodeId, NodeId)],
        between: Range<usize>,
    ) -> Result<()> {
        if pairs.is_empty() {
            return Ok(());
        }
        for &(a, b) in pairs {
            unite(&mut self.block, a, b);
        }
        // A group lists each of its nodes once: the nodes of a block are collected under its name.
        for &node in nodes {
            self.block[node as usize] = find(&mut self.block, node);
        }
        for &node in nodes {
            let name = self.block[node as usize];
            if name != node {
                self.several.entry(name).or_insert_with(|| vec![name]).push(node);
            }
        }
        self.sort(between)
    }

    /// Restores a topological order of the blocks at the places `between`: no path between two of
    /// them goes through blocks elsewhere.
    fn sort(&mut self, between: Range<usize>) -> Result<()> {
        let graph = self.problem.graph();
        let mut blocks = self.order[between.clone()].to_vec();
        blocks.retain(|&block| block != NONE && self.block[block as usize] == block);
        let mut missing = std::mem::take(&mut self.missing);
        for &block in &blocks {
            let members = self.members(&block);
            let neighbors =
                |&node: &NodeId| graph.predecessors(node).len() + graph.successors(node).len();
            self.budget.check(1 + 2 * members.iter().map(neighbors).sum::<usize>())?;
            let sources = members.iter().flat_map(|&member| graph.predecessors(member));
            let is_before = |&&source: &&NodeId| self.is_other(source, block, &between);
            missing[block as usize] = sources.filter(is_before).count() as u32;
        }
        let mut sorted: Vec<NodeId> =
            blocks.iter().copied().filter(|&block| missing[block as usize] == 0).collect();
        let mut done = 0;
        while let Some(&block) = sorted.get(done) {
            done += 1;
            for &member in self.members(&block) {
                for &client in graph.successors(member) {
                    if self.is_other(client, block, &between) {
                        let waiting = &mut missing[self.block[client as usize] as usize];
                        *waiting -= 1;
                        if *waiting == 0 {
                            sorted.push(self.block[client as usize]);
                        }
                    }
                }
            }
        }
        self.missing = missing;
        if sorted.len() < blocks.len() {
            // The quotient has a cycle, which this names.
            Partition::from_names(self.block.clone()).quotient_order(self.problem, self.budget)?;
        }
        self.order[between.clone()].fill(NONE);
        for (place, block) in between.zip(sorted) {
            self.order[place] = block;
            self.place[block as usize] = place as u32;
        }
        Ok(())
    }

    /// Whether `node` is at one of the places `between`, and not in `block`.
    fn is_other(&self, node: NodeId, block: NodeId, between: &Range<usize>) -> bool {
        let other = self.block[node as usize];
        other != block && between.contains(&(self.place[other as usize] as usize))
    }
}

/// The nodes of each group of two or more, ascending; the largest group first, then by number.
fn groups_by_size(problem: &FusionProblem, budget: &Budget) -> Result<Vec<Vec<NodeId>>> {
    let nodes = 0..problem.n_nodes() as NodeId;
    let in_group = nodes.filter_map(|node| Some((problem.group(node)?, node)));
    let members = Rows::grouped(problem.n_groups(), in_group, budget)?;
    let mut groups: Vec<u32> = (0..members.len() as u32).collect();
    groups.retain(|&group| members.row(group).len() > 1);
    groups.sort_by_key(|&group| (std::cmp::Reverse(members.row(group).len()), group));
    Ok(groups.into_iter().map(|group| members.row(group).to_vec()).collect())
}
