//! Families of problems that are slow to plan.

use super::random::Random;
use crate::plan::ProblemArrays;
use crate::rows::Rows;

/// A problem that grows node by node; the first variables are roots.
struct Builder {
    inputs: Rows,
    outputs: Rows,
    groups: Vec<i32>,
    links: Vec<i32>,
    orderings: Vec<(u32, u32)>,
    made: Vec<usize>,
    n_roots: usize,
}

impl Builder {
    fn new(n_roots: usize) -> Self {
        Self {
            inputs: Rows::empty(),
            outputs: Rows::empty(),
            groups: Vec::new(),
            links: vec![0; n_roots],
            orderings: Vec::new(),
            made: (0..n_roots).collect(),
            n_roots,
        }
    }

    /// Adds a node and returns the variable that it makes.
    fn node(&mut self, group: i32, reads: &[usize]) -> usize {
        let made = self.links.len();
        self.inputs.push(reads.iter().map(|&variable| variable as u32)).unwrap();
        self.outputs.push([made as u32]).unwrap();
        self.groups.push(group);
        self.links.push(group);
        self.made.push(made);
        made
    }

    /// One of the last variables that were made.
    fn recent(&self, random: &mut Random, n_last: usize) -> usize {
        self.made[self.made.len() - 1 - random.below(self.made.len().min(n_last))]
    }

    fn any(&self, random: &mut Random) -> usize {
        self.made[random.below(self.made.len())]
    }

    fn done(self, limit: u32) -> ProblemArrays {
        let n_variables = self.links.len();
        let mut results = vec![true; n_variables];
        results[..self.n_roots].fill(false);
        self.inputs.items().iter().for_each(|&variable| results[variable as usize] = false);
        ProblemArrays {
            n_variables,
            inputs: self.inputs,
            outputs: self.outputs,
            groups: self.groups,
            links: self.links,
            constants: vec![false; n_variables],
            results,
            orderings: self.orderings,
            max_operands: limit,
        }
    }
}

/// Readers of one operand that wait for others through nodes that are not fused.
fn readers(n_nodes: usize, mut waits_for: impl FnMut(&Builder, usize) -> usize) -> Builder {
    let mut build = Builder::new(1);
    let mut last = 0;
    for _ in 0..n_nodes {
        let other = waits_for(&build, last);
        let reader = build.node(0, &[other, 0]);
        last = build.node(-1, &[reader]);
    }
    build
}

/// Names of families, and their problems with `n_nodes` readers or nodes.
pub(in crate::plan) fn families(n_nodes: usize, limit: u32) -> Vec<(&'static str, ProblemArrays)> {
    let mut random = Random(n_nodes as u64);
    let mut all = Vec::new();

    let mut build = Builder::new(1);
    for _ in 0..n_nodes {
        build.node(0, &[0]);
    }
    all.push(("readers", build.done(limit)));

    let mut build = Builder::new(1);
    let mut last = 0;
    for _ in 0..n_nodes {
        last = build.node(0, &[last, 0]);
    }
    all.push(("a chain of readers", build.done(limit)));

    all.push(("readers one after the other", readers(n_nodes, |_, last| last).done(limit)));
    let anyone = readers(n_nodes, |build, _| match random.below(1 + build.groups.len() / 2) {
        0 => 0,
        pair => 2 * pair,
    });
    all.push(("readers in a tree", anyone.done(limit)));

    let mut build = Builder::new(4);
    for _ in 0..n_nodes {
        let group = if random.percent(15) { -1 } else { random.below(4) as i32 };
        let reads = [build.recent(&mut random, 4), build.any(&mut random)];
        build.node(group, &reads);
    }
    all.push(("long skips", build.done(limit)));

    let mut build = Builder::new(4);
    for node in 0..n_nodes {
        let group = if random.percent(15) { -1 } else { random.below(2) as i32 };
        let reads = [build.recent(&mut random, 16), build.recent(&mut random, 16)];
        build.node(group, &reads);
        if node > 0 {
            build.orderings.push((random.below(node) as u32, node as u32));
        }
    }
    all.push(("orderings", build.done(limit)));

    let mut build = Builder::new(8);
    for _ in 0..n_nodes {
        let group = if random.percent(15) { -1 } else { random.below(2) as i32 };
        let reads = [build.recent(&mut random, 4), random.below(8)];
        build.node(group, &reads);
    }
    all.push(("hubs", build.done(limit)));
    all
}
