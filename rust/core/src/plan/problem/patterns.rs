//! Fusion compatibility by broadcast pattern: the nodes that may share a kernel, and the operands
//! that may bring them together.
//!
//! # Problem
//! All nodes of a kernel must have one output broadcast pattern, the set of dimensions that have
//! length 1. The type of a result states a pattern, and its operands imply one: a dimension that is
//! 1 in all of them is 1 in the result. In graphs built by hand the two may differ, and the stated
//! pattern is then less specific. A kernel of nodes with equal stated patterns but different
//! implied ones would broadcast what must not be broadcast, and give a result the wrong shape.
//!
//! # Approach
//! Nodes are grouped by both patterns, the stated and the implied one.
//!
//! A shared operand brings nodes of a group together if its own pattern is theirs: then it has the
//! length of each dimension that is not 1, and the nodes loop over the same shape. A constant whose
//! elements are all equal does not, because it is written into the kernel.
//!
//! # Rejected
//! Grouping by stated patterns alone, as `FusionOptimizer` of PyTensor does: this is wrong where an
//! operand implies more than the type of the result states.

use rustc_hash::FxHashMap;

use crate::budget::Budget;
use crate::error::Result;
use crate::ids::{check_ids, check_same_length};
use crate::rows::Rows;

/// A broadcast pattern of up to 64 dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pattern {
    /// Number of dimensions.
    pub ndim: u32,
    /// Bit `i` is set if dimension `i` has length 1.
    pub ones: u64,
}

/// Input from which groups and links are computed.
#[derive(Debug, Clone, Copy)]
pub struct PatternArrays<'a> {
    /// Operands of each node; nodes in topological order.
    pub inputs: &'a Rows,
    /// Results of each node.
    pub outputs: &'a Rows,
    /// Pattern that the type of each variable states, if it is known.
    pub patterns: &'a [Option<Pattern>],
    /// Marks nodes that compute their results element by element.
    pub elementwise: &'a [bool],
    /// Marks nodes that may be fused.
    pub may_fuse: &'a [bool],
    /// Marks constants.
    pub constants: &'a [bool],
    /// Constants whose elements are all equal; those of one element need not be listed.
    pub uniform: &'a [u32],
}

/// Groups of nodes and links of variables, for [`super::ProblemArrays`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupsAndLinks {
    /// Group of each node, -1 where it may not be fused.
    pub groups: Vec<i32>,
    /// For each variable the group whose nodes it may bring together, or -1.
    pub links: Vec<i32>,
}

/// Groups nodes by the patterns that their results state and that follow from their operands.
/// Groups are numbered in the order of first occurrence. A node has no group if it has several
/// results, or if its result states a length of 1 that does not follow. O(n + m).
///
/// # Errors
/// [`crate::Error::LengthMismatch`] and [`crate::Error::OutOfRange`] name the array;
/// [`crate::Error::Interrupted`].
pub fn groups_and_links(arrays: &PatternArrays<'_>, budget: &Budget) -> Result<GroupsAndLinks> {
    check(arrays, budget)?;
    let implied = implied_ones(arrays, budget)?;
    let mut ids = FxHashMap::default();
    let mut groups = vec![-1; arrays.inputs.len()];
    for node in (0..groups.len() as u32).filter(|&node| arrays.may_fuse[node as usize]) {
        let &[output] = arrays.outputs.row(node) else { continue };
        let Some(stated) = arrays.patterns[output as usize] else { continue };
        let follows = implied[output as usize];
        if stated.ones & !follows == 0 {
            let next = ids.len() as i32;
            groups[node as usize] = *ids.entry((stated, follows)).or_insert(next);
        }
    }
    let link = |(pattern, &follows): (&Option<Pattern>, &u64)| {
        pattern.and_then(|stated| ids.get(&(stated, follows)).copied()).unwrap_or(-1)
    };
    let mut links: Vec<i32> = arrays.patterns.iter().zip(&implied).map(link).collect();
    for (variable, pattern) in arrays.patterns.iter().enumerate() {
        let one_element = pattern.is_some_and(|p| p.ones.count_ones() == p.ndim);
        if arrays.constants[variable] && one_element {
            links[variable] = -1;
        }
    }
    for &variable in arrays.uniform {
        links[variable as usize] = -1;
    }
    Ok(GroupsAndLinks { groups, links })
}

fn check(arrays: &PatternArrays<'_>, budget: &Budget) -> Result<()> {
    let n_nodes = arrays.inputs.len();
    let n_variables = arrays.patterns.len();
    // Nodes and variables are visited several times, and patterns are looked up.
    budget.check(8 * (n_nodes + n_variables) + arrays.inputs.items().len())?;
    check_same_length(("inputs", n_nodes), ("outputs", arrays.outputs.len()))?;
    check_same_length(("inputs", n_nodes), ("elementwise", arrays.elementwise.len()))?;
    check_same_length(("inputs", n_nodes), ("may_fuse", arrays.may_fuse.len()))?;
    check_same_length(("patterns", n_variables), ("constants", arrays.constants.len()))?;
    check_ids("input variable", arrays.inputs.items(), n_variables)?;
    check_ids("output variable", arrays.outputs.items(), n_variables)?;
    check_ids("uniform constant", arrays.uniform, n_variables)
}

/// For each variable the dimensions known to have length 1: those with length 1 in all operands if
/// it is computed from them element by element, otherwise those that its type states.
fn implied_ones(arrays: &PatternArrays<'_>, budget: &Budget) -> Result<Vec<u64>> {
    let stated = |pattern: &Option<Pattern>| pattern.map_or(0, |pattern| pattern.ones);
    let mut implied: Vec<u64> = arrays.patterns.iter().map(stated).collect();
    for node in (0..arrays.inputs.len() as u32).filter(|&node| arrays.elementwise[node as usize]) {
        budget.check(1 + arrays.inputs.row(node).len())?;
        let operands = arrays.inputs.row(node).iter().map(|&input| implied[input as usize]);
        let Some(all) = operands.reduce(|a, b| a & b) else { continue };
        for &output in arrays.outputs.row(node) {
            implied[output as usize] = all;
        }
    }
    Ok(implied)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::Error;

    const COLUMN: Option<Pattern> = Some(Pattern { ndim: 2, ones: 0b10 });
    const MATRIX: Option<Pattern> = Some(Pattern { ndim: 2, ones: 0 });
    const ONE: Option<Pattern> = Some(Pattern { ndim: 2, ones: 0b11 });

    /// Elementwise nodes with one output each; the variables before these outputs are roots.
    fn groups(
        nodes: &[&[u32]],
        patterns: &[Option<Pattern>],
        constants: &[bool],
        uniform: &[u32],
    ) -> GroupsAndLinks {
        let (mut inputs, mut outputs) = (Rows::empty(), Rows::empty());
        let n_roots = patterns.len() - nodes.len();
        for (i, reads) in nodes.iter().enumerate() {
            inputs.push(reads.iter().copied()).unwrap();
            outputs.push([(n_roots + i) as u32]).unwrap();
        }
        let all = vec![true; nodes.len()];
        groups_and_links(
            &PatternArrays {
                inputs: &inputs,
                outputs: &outputs,
                patterns,
                elementwise: &all,
                may_fuse: &all,
                constants,
                uniform,
            },
            &Budget::unlimited(),
        )
        .unwrap()
    }

    #[test]
    fn nodes_of_one_pattern_share_a_group() {
        // exp(x), exp(c), x + c, x + exp(c), with x a matrix and c a column.
        let nodes: [&[u32]; 4] = [&[0], &[1], &[0, 1], &[0, 3]];
        let patterns = [MATRIX, COLUMN, MATRIX, COLUMN, MATRIX, MATRIX];
        let GroupsAndLinks { groups, links } = groups(&nodes, &patterns, &[false; 6], &[]);
        assert_eq!(groups, [0, 1, 0, 0]);
        assert_eq!(links, [0, 1, 0, 1, 0, 0]);
    }

    #[test]
    fn constants_that_are_written_into_kernels_link_nothing() {
        let nodes: [&[u32]; 1] = [&[0, 1, 2]];
        let patterns = [MATRIX, MATRIX, MATRIX, MATRIX];
        let constants = [false, true, true, false];
        assert_eq!(groups(&nodes, &patterns, &constants, &[1]).links, [0, -1, 0, 0]);
        let ones = [ONE, ONE, ONE, ONE];
        assert_eq!(groups(&nodes, &ones, &constants, &[]).links, [0, -1, -1, 0]);
    }

    #[test]
    fn a_type_that_is_less_specific_than_the_operands_makes_a_group_of_its_own() {
        // exp of a column, stated to be a matrix; then its sum with a true matrix, and its sine.
        let nodes: [&[u32]; 3] = [&[0], &[2, 1], &[2]];
        let patterns = [COLUMN, MATRIX, MATRIX, MATRIX, MATRIX];
        let GroupsAndLinks { groups, links } = groups(&nodes, &patterns, &[false; 5], &[]);
        assert_eq!(groups, [0, 1, 0]);
        assert_eq!(links, [-1, 1, 0, 1, 0]);
    }

    #[test]
    fn a_type_that_claims_more_than_follows_is_not_fused() {
        let nodes: [&[u32]; 1] = [&[0]];
        assert_eq!(groups(&nodes, &[MATRIX, COLUMN], &[false; 2], &[]).groups, [-1]);
    }

    #[test]
    fn arrays_that_do_not_fit_are_refused() {
        let (inputs, outputs) = (Rows::empty(), Rows::empty());
        let arrays = PatternArrays {
            inputs: &inputs,
            outputs: &outputs,
            patterns: &[MATRIX],
            elementwise: &[],
            may_fuse: &[],
            constants: &[false],
            uniform: &[],
        };
        assert!(groups_and_links(&arrays, &Budget::unlimited()).is_ok());
        let longer = PatternArrays { may_fuse: &[true], ..arrays };
        assert!(matches!(
            groups_and_links(&longer, &Budget::unlimited()),
            Err(Error::LengthMismatch { .. })
        ));
        let outside = PatternArrays { uniform: &[1], ..arrays };
        assert!(matches!(
            groups_and_links(&outside, &Budget::unlimited()),
            Err(Error::OutOfRange { .. })
        ));
    }
}
