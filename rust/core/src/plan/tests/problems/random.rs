//! Random problems that are the same on every machine.

use std::collections::BTreeSet;

use crate::budget::Budget;
use crate::plan::{FusionProblem, ProblemArrays};
use crate::rows::Rows;

/// Random numbers that are the same on every machine: SplitMix64.
pub(in crate::plan) struct Random(pub(in crate::plan) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`.
    pub(in crate::plan) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// True in `percent` of a hundred cases.
    pub(in crate::plan) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// The operands of the nodes of a random problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::plan) enum Shape {
    /// Mostly the latest variables.
    Local,
    /// Any variables.
    Long,
    /// Often the same few variables.
    Hubs,
    /// Several strands with occasional barriers.
    Strands,
}

pub(in crate::plan) const SHAPES: [Shape; 4] =
    [Shape::Local, Shape::Long, Shape::Hubs, Shape::Strands];

/// Arrays of a random problem, occasionally with dead nodes, nodes of several results, orderings
/// and tight limits.
pub(in crate::plan) fn random_arrays(
    random: &mut Random,
    n_nodes: usize,
    shape: Shape,
) -> ProblemArrays {
    let n_groups = 1 + random.below(3.min(n_nodes));
    let n_roots = 1 + random.below(4);
    let barriers = [10, 25, 40][random.below(3)];
    let has_dead = random.percent(15);
    let has_orderings = random.percent(25);
    let (mut inputs, mut outputs) = (Rows::empty(), Rows::empty());
    let (mut groups, mut orderings) = (Vec::new(), Vec::new());
    let mut links: Vec<i32> = (0..n_roots).map(|_| random.below(n_groups + 1) as i32 - 1).collect();
    let mut made_by = vec![usize::MAX; n_roots];
    let mut last_of_strand = [0; 3];
    for node in 0..n_nodes {
        let known = made_by.len();
        let strand = random.below(3);
        let n_reads = 1 + random.below(3);
        let reads: Vec<u32> = (0..n_reads)
            .map(|position| match shape {
                Shape::Local => known - 1 - random.below(known.min(6)),
                Shape::Long => random.below(known),
                Shape::Hubs if random.percent(50) => random.below(known.min(3)),
                Shape::Hubs => known - 1 - random.below(known.min(5)),
                Shape::Strands if position == 0 => last_of_strand[strand],
                Shape::Strands => last_of_strand[random.below(3)],
            })
            .map(|variable| variable as u32)
            .collect();
        let group = if random.percent(barriers) { -1 } else { random.below(n_groups) as i32 };
        let n_results = if group < 0 && random.percent(20) { 2 } else { 1 };
        outputs.push((known..known + n_results).map(|variable| variable as u32)).unwrap();
        inputs.push(reads).unwrap();
        groups.push(group);
        for _ in 0..n_results {
            links.push(if random.percent(85) { group } else { random.below(n_groups) as i32 });
            made_by.push(node);
        }
        last_of_strand[strand] = known;
        if has_orderings && node > 0 && random.percent(25) {
            orderings.push((random.below(node) as u32, node as u32));
        }
    }
    let read: BTreeSet<u32> = inputs.items().iter().copied().collect();
    let results = (0..made_by.len()).map(|variable| {
        let is_sink = made_by[variable] != usize::MAX && !read.contains(&(variable as u32));
        (is_sink && !has_dead) || random.percent(8)
    });
    let results = results.collect();
    let constants = (0..made_by.len()).map(|v| v < n_roots && random.percent(20)).collect();
    let max_operands = if random.percent(35) { 2 + random.below(5) as u32 } else { 1024 };
    ProblemArrays {
        n_variables: made_by.len(),
        inputs,
        outputs,
        groups,
        links,
        constants,
        results,
        orderings,
        max_operands,
    }
}

/// Random problems of these sizes.
pub(in crate::plan) fn random_problems(
    seed: u64,
    n_problems: usize,
    sizes: std::ops::Range<usize>,
) -> impl Iterator<Item = (ProblemArrays, FusionProblem)> {
    let mut random = Random(seed);
    (0..n_problems).map(move |number| {
        let n_nodes = sizes.start + random.below(sizes.len());
        let arrays = random_arrays(&mut random, n_nodes, SHAPES[number % SHAPES.len()]);
        (arrays.clone(), FusionProblem::new(arrays, &Budget::unlimited()).unwrap())
    })
}
