//! A lower bound on the cost of every plan of a small problem, found before there is a plan.
//!
//! # Problem
//! On most small graphs the first plan is the best one, and everything tried after it finds
//! nothing: merges, other strategies, moves. The planner can skip these if it has a bound that
//! costs less than they do.
//!
//! # Approach
//! Two nodes of one part ([`parts`]) are *apart* if a path from one to the other leaves the part:
//! they are in different kernels in every plan. Being apart is transitive along paths, so a chain
//! of nodes, each apart from the one before it, takes as many kernels as it has nodes:
//!
//! - a part takes at least as many kernels as its longest chain has nodes;
//! - a variable is read at least as often as the longest chains of its readers have nodes, summed
//!   over the parts. In the part of its maker, only readers that are apart from the maker count;
//! - it is written if one of these reads it, if a node that is no kernel does, or if it is a
//!   result.
//!
//! The nodes before each node are a few machine words, and so are the nodes that it is apart from:
//! one pass over the edges finds both.
//!
//! # Rejected
//! The bounds of a component (`bounds`), which are tighter: they are made for a search, and take as
//! long as a plan.
//!
//! [`parts`]: crate::plan::problem::parts

use super::masks::Mask;
use crate::budget::Budget;
use crate::error::Result;
use crate::plan::problem::cost::Cost;
use crate::plan::problem::parts::connections;
use crate::plan::problem::{FusionProblem, NONE};
use crate::union_find::{find, unite};

/// Machine words of a set of nodes.
const WORDS: usize = 2;

/// Limit on the nodes that may be fused: larger graphs rarely attain the bound.
const MOST: usize = 64 * WORDS;

/// Limit on the operands of all nodes, so that chains of readers take no longer than a plan.
const MOST_READS: usize = 16 * MOST;

type Set = Mask<WORDS>;

/// A lower bound on the kernels and arrays of every legal plan; None if the problem is too large.
///
/// # Complexity
/// O(n + m), and for each variable that several nodes of a part read, the number of these nodes
/// times the longest chain.
///
/// # Errors
/// [`crate::Error::Interrupted`].
pub(in crate::plan) fn floor(problem: &FusionProblem, budget: &Budget) -> Result<Option<Cost>> {
    let n_nodes = problem.n_nodes();
    let fusable = (0..n_nodes as u32).filter(|&node| problem.group(node).is_some());
    if problem.n_reads() > MOST_READS || fusable.clone().take(MOST + 1).count() > MOST {
        return Ok(None);
    }
    budget.check(8 * (n_nodes + problem.n_variables()) + problem.graph().n_edges())?;
    let chains = Chains::new(problem, fusable, budget)?;
    let mut floor = Cost::default();
    for (i, &part) in chains.parts.iter().enumerate() {
        if part.first() == Some(i) {
            floor.kernels += chains.longest(part, budget)?;
        }
    }
    for variable in 0..problem.n_variables() as u32 {
        if !problem.is_constant(variable) {
            floor.arrays += chains.n_moved(problem, variable, budget)?;
        }
    }
    Ok(Some(floor))
}

/// Nodes that may be fused, numbered in a topological order.
struct Chains {
    /// The number of each node, [`NONE`] for those that may not be fused.
    numbers: Vec<u32>,
    /// The part of each.
    parts: Vec<Set>,
    /// For each node the earlier nodes of its part that it is apart from. Nodes of other parts in
    /// this set mean nothing.
    apart: Vec<Set>,
}

impl Chains {
    fn new(
        problem: &FusionProblem,
        fusable: impl Iterator<Item = u32>,
        budget: &Budget,
    ) -> Result<Self> {
        let mut numbers = vec![NONE; problem.n_nodes()];
        // The first member of each node's part, which has a number before the other members get
        // theirs.
        let part_of = part_names(problem, budget)?;
        let mut parts: Vec<Set> = Vec::with_capacity(MOST);
        for (node, number) in fusable.zip(0u32..) {
            numbers[node as usize] = number;
            parts.push(Set::EMPTY);
            parts[numbers[part_of[node as usize] as usize] as usize].insert(number as usize);
        }
        let mut apart = Vec::with_capacity(parts.len());
        // For each node the fusable nodes before it, itself included if it is one, and the nodes
        // that it is apart from.
        let mut sets: Vec<(Set, Set)> = Vec::with_capacity(problem.n_nodes());
        for (node, &number) in (0u32..).zip(&numbers) {
            let (mut before, mut beyond) = (Set::EMPTY, Set::EMPTY);
            for &source in problem.graph().predecessors(node) {
                let (first, second) = sets[source as usize];
                before |= first;
                let leaves = part_of[source as usize] != part_of[node as usize];
                beyond |= if leaves { first } else { second };
            }
            if number != NONE {
                before.insert(number as usize);
                apart.push(beyond);
                let first = numbers[part_of[node as usize] as usize] as usize;
                parts[number as usize] = parts[first];
            }
            sets.push((before, beyond));
        }
        Ok(Self { numbers, parts, apart })
    }

    /// The number of a node that may be fused.
    fn number(&self, node: u32) -> Option<usize> {
        let number = self.numbers.get(node as usize).copied().filter(|&number| number != NONE);
        number.map(|number| number as usize)
    }

    /// The number of nodes in the longest chain of `nodes`, which are of one part.
    fn longest(&self, nodes: Set, budget: &Budget) -> Result<u64> {
        if nodes.len() < 2 {
            return Ok(nodes.len() as u64);
        }
        // The nodes with which a chain of 1, 2, ... nodes ends.
        let mut levels: Vec<Set> = Vec::new();
        for i in nodes.iter() {
            budget.check(1 + levels.len())?;
            let below = levels.iter().rposition(|level| level.meets(self.apart[i]));
            let height = below.map_or(0, |level| level + 1);
            if height == levels.len() {
                levels.push(Set::EMPTY);
            }
            levels[height].insert(i);
        }
        Ok(levels.len() as u64)
    }

    /// A lower bound on the number of times that kernels read and write a variable.
    fn n_moved(&self, problem: &FusionProblem, variable: u32, budget: &Budget) -> Result<u64> {
        let maker = self.number(problem.owner(variable));
        let mut is_needed = problem.is_result(variable);
        let mut readers = Set::EMPTY;
        for &client in problem.clients(variable) {
            match self.number(client) {
                Some(number) => readers.insert(number),
                None => is_needed = true,
            }
        }
        let mut n_read = 0;
        while let Some(first) = readers.first() {
            let part = self.parts[first];
            let mut here = readers & part;
            readers = readers.without(part);
            if let Some(maker) = maker.filter(|&maker| part.contains(maker)) {
                here = here.iter().filter(|&reader| self.apart[reader].contains(maker)).collect();
            }
            n_read += self.longest(here, budget)?;
        }
        let is_written = maker.is_some() && (is_needed || n_read > 0);
        Ok(n_read + u64::from(is_written))
    }
}

/// The first member of the part of each node.
fn part_names(problem: &FusionProblem, budget: &Budget) -> Result<Vec<u32>> {
    let n_nodes = problem.n_nodes() as u32;
    let mut newest_reader = vec![NONE; problem.n_variables()];
    let mut names: Vec<u32> = (0..n_nodes).collect();
    for (a, b) in connections(problem, 0..n_nodes, &mut newest_reader, |_, _| true, budget)? {
        unite(&mut names, a, b);
    }
    for node in 0..n_nodes {
        names[node as usize] = find(&mut names, node);
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::plan::ProblemArrays;
    use crate::rows::Rows;

    /// Nodes, given as groups and operands, after two root variables, the second a constant.
    /// Variables that are not read are results.
    fn problem(nodes: &[(i32, &[u32])]) -> FusionProblem {
        let (mut inputs, mut outputs) = (Rows::empty(), Rows::empty());
        for (&(_, reads), made) in nodes.iter().zip(2u32..) {
            inputs.push(reads.iter().copied()).unwrap();
            outputs.push([made]).unwrap();
        }
        let n_variables = 2 + nodes.len();
        let mut results = vec![true; n_variables];
        inputs.items().iter().for_each(|&variable| results[variable as usize] = false);
        let mut constants = vec![false; n_variables];
        constants[1] = true;
        let arrays = ProblemArrays {
            n_variables,
            inputs,
            outputs,
            groups: nodes.iter().map(|&(group, _)| group).collect(),
            links: vec![0; n_variables],
            constants,
            results,
            orderings: Vec::new(),
            max_operands: 1024,
        };
        FusionProblem::new(arrays, &Budget::unlimited()).unwrap()
    }

    fn of(nodes: &[(i32, &[u32])]) -> Option<(u64, u64)> {
        let floor = floor(&problem(nodes), &Budget::unlimited()).unwrap();
        floor.map(|floor| (floor.kernels, floor.arrays))
    }

    #[test]
    fn what_can_be_one_kernel_reads_and_writes_once() {
        assert_eq!(of(&[]), Some((0, 0)));
        assert_eq!(of(&[(-1, &[0])]), Some((0, 0)));
        // exp(x) * 2 + x
        assert_eq!(of(&[(0, &[0]), (0, &[2, 1]), (0, &[3, 0])]), Some((1, 2)));
        // A sum also reads the first result, which is written for that.
        assert_eq!(of(&[(0, &[0]), (0, &[2]), (-1, &[2])]), Some((1, 3)));
    }

    #[test]
    fn a_path_that_leaves_keeps_kernels_apart() {
        // exp(x) / sum(exp(x)): exp(x) is written, and read again after the sum, as is the sum.
        assert_eq!(of(&[(0, &[0]), (-1, &[2]), (0, &[2, 3])]), Some((2, 5)));
        // The same once more, by way of another group.
        let nodes: [(i32, &[u32]); 5] =
            [(0, &[0]), (-1, &[2]), (0, &[2, 3]), (1, &[4]), (0, &[4, 5, 0])];
        assert_eq!(of(&nodes), Some((4, 11)));
    }

    #[test]
    fn readers_in_different_parts_read_for_themselves() {
        assert_eq!(of(&[(0, &[0]), (1, &[0]), (-1, &[0])]), Some((2, 4)));
    }

    #[test]
    fn larger_problems_have_none() {
        let nodes = |n: usize| vec![(0, &[0u32][..]); n];
        assert_eq!(of(&nodes(MOST)), Some((1, 1 + MOST as u64)));
        assert_eq!(of(&nodes(MOST + 1)), None);
        // Nodes that may not be fused do not count, except for their operands.
        let barriers = vec![(-1, &[0u32][..]); MOST_READS - MOST];
        let mut several = nodes(MOST);
        several.extend(barriers);
        assert!(of(&several).is_some());
        several.push((-1, &[0]));
        assert_eq!(of(&several), None);
    }
}
