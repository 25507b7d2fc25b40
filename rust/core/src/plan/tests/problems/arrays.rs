//! Problems written down node by node.

use crate::budget::Budget;
use crate::plan::{FusionProblem, ProblemArrays};
use crate::rows::Rows;

/// A problem in which node `i` makes variable `n_roots + i`, every node may be fused in its given
/// group, and roots and results may bring siblings of group 0 together.
pub(in crate::plan) fn problem(
    n_roots: usize,
    nodes: &[(i32, &[u32])],
    max_operands: u32,
) -> FusionProblem {
    FusionProblem::new(arrays(n_roots, nodes, max_operands), &Budget::unlimited()).unwrap()
}

/// The arrays of [`problem`].
pub(in crate::plan) fn arrays(
    n_roots: usize,
    nodes: &[(i32, &[u32])],
    max_operands: u32,
) -> ProblemArrays {
    let (mut inputs, mut outputs) = (Rows::empty(), Rows::empty());
    for (i, (_, reads)) in nodes.iter().enumerate() {
        inputs.push(reads.iter().copied()).unwrap();
        outputs.push([(n_roots + i) as u32]).unwrap();
    }
    let n_variables = n_roots + nodes.len();
    let mut results = vec![true; n_variables];
    inputs.items().iter().for_each(|&v| results[v as usize] = false);
    ProblemArrays {
        n_variables,
        inputs,
        outputs,
        groups: nodes.iter().map(|&(group, _)| group).collect(),
        links: vec![0; n_variables],
        constants: vec![false; n_variables],
        results,
        orderings: Vec::new(),
        max_operands,
    }
}

/// [`arrays`] in which only data connects nodes.
pub(in crate::plan) fn arrays_of_data(
    n_roots: usize,
    nodes: &[(i32, &[u32])],
    max_operands: u32,
) -> ProblemArrays {
    let arrays = arrays(n_roots, nodes, max_operands);
    ProblemArrays { links: vec![-1; arrays.n_variables], ..arrays }
}
