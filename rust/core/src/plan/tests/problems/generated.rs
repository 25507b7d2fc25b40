//! Problems that proptest generates, and shrinks where a test fails.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::Strategy;

use crate::budget::Budget;
use crate::plan::{FusionProblem, ProblemArrays};
use crate::rows::Rows;

/// A node: its group (-1: none), the variables it reads (indices modulo what exists), whether its
/// result is a result of the graph.
type NodeSeed = (i32, Vec<u16>, bool);

/// Nodes in topological order, over a few roots, of which some are constants and some may bring
/// siblings together.
pub(in crate::plan) fn problems(
    max_nodes: usize,
    n_groups: i32,
) -> impl Strategy<Value = FusionProblem> {
    let node = (-1..n_groups, prop::collection::vec(any::<u16>(), 1..4), prop::bool::weighted(0.1));
    let nodes = prop::collection::vec(node, 0..max_nodes);
    (nodes, 1usize..4, prop::collection::vec(any::<u8>(), 4), 2u32..12).prop_map(
        move |(nodes, n_roots, kinds, max_operands)| {
            let limit = if max_operands > 8 { 1024 } else { max_operands };
            let mut arrays = build(&nodes, n_roots, &kinds, n_groups, limit);
            arrays.add_sinks_to_results();
            FusionProblem::new(arrays, &Budget::unlimited()).unwrap()
        },
    )
}

/// [`problems`] with orderings beyond the data flow, and with nodes whose results are unread.
pub(in crate::plan) fn wild_problems(
    max_nodes: usize,
    n_groups: i32,
) -> impl Strategy<Value = FusionProblem> {
    let node = (-1..n_groups, prop::collection::vec(any::<u16>(), 1..4), prop::bool::weighted(0.1));
    let nodes = prop::collection::vec(node, 0..max_nodes);
    let orderings = prop::collection::vec((any::<u16>(), any::<u16>()), 0..6);
    (nodes, 1usize..4, prop::collection::vec(any::<u8>(), 4), 2u32..12, orderings, any::<bool>())
        .prop_map(move |(nodes, n_roots, kinds, max_operands, orderings, has_dead)| {
            let limit = if max_operands > 8 { 1024 } else { max_operands };
            let mut arrays = build(&nodes, n_roots, &kinds, n_groups, limit);
            if !has_dead {
                arrays.add_sinks_to_results();
            }
            for (a, b) in orderings {
                let n_nodes = nodes.len().max(1) as u32;
                let (a, b) = (u32::from(a) % n_nodes, u32::from(b) % n_nodes);
                if a != b {
                    arrays.orderings.push((a.min(b), a.max(b)));
                }
            }
            FusionProblem::new(arrays, &Budget::unlimited()).unwrap()
        })
}

impl ProblemArrays {
    /// Makes unread outputs of nodes results of the graph, as in all graphs of PyTensor.
    fn add_sinks_to_results(&mut self) {
        let used: BTreeSet<u32> = self.inputs.items().iter().copied().collect();
        for &variable in self.outputs.items() {
            self.results[variable as usize] |= !used.contains(&variable);
        }
    }
}

fn build(
    nodes: &[NodeSeed],
    n_roots: usize,
    kinds: &[u8],
    n_groups: i32,
    max_operands: u32,
) -> ProblemArrays {
    let (mut inputs, mut outputs) = (Rows::empty(), Rows::empty());
    let mut groups = Vec::new();
    let mut results = vec![false; n_roots + nodes.len()];
    // Dense groups: below the number of nodes.
    let n_groups = n_groups.min(nodes.len() as i32).max(1);
    for (i, (group, reads, is_result)) in nodes.iter().enumerate() {
        let known = n_roots + i;
        // Later variables are picked more often than earlier ones, as in real graphs.
        let pick =
            |&seed: &u16| (known - 1 - (seed as usize % known).min(seed as usize % 7)) as u32;
        inputs.push(reads.iter().map(pick)).unwrap();
        outputs.push([known as u32]).unwrap();
        groups.push((*group).min(n_groups - 1));
        results[known] = *is_result;
    }
    let root_kind = |root: usize| kinds[root % kinds.len()];
    let links = (0..results.len())
        .map(|variable| match variable.checked_sub(n_roots) {
            None if root_kind(variable) % 3 == 0 => -1,
            None => (root_kind(variable) / 3) as i32 % n_groups,
            Some(node) => groups[node],
        })
        .collect();
    let constants = (0..results.len()).map(|v| v < n_roots && root_kind(v) % 5 == 0).collect();
    ProblemArrays {
        n_variables: results.len(),
        inputs,
        outputs,
        groups,
        links,
        constants,
        results,
        orderings: Vec::new(),
        max_operands,
    }
}
