//! The exact planner and its bounds, judged by all partitions of small problems and by checks of their
//! own on larger ones.
//!
//! Nothing here asks the code under test what a problem means: owners, readers, connections and
//! cycles are found from the arrays.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::budget::Budget;
use std::collections::BTreeSet;

use super::adversarial_tests::{Judge, stock};
use super::portfolio::{Entry, PORTFOLIO, Question, best_of};
use super::tests::moved;
use super::*;
use crate::rows::Rows;

/// Random numbers that are the same everywhere: SplitMix64.
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// True `percent` times of a hundred.
    pub(super) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// What the nodes of a random problem read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Mostly what was made last.
    Local,
    /// Anything that there is.
    Long,
    /// Often the same few variables.
    Hubs,
    /// Several strands with a barrier now and then.
    Strands,
}

pub(super) const SHAPES: [Shape; 4] = [Shape::Local, Shape::Long, Shape::Hubs, Shape::Strands];

/// Arrays of a random problem, with dead nodes, nodes of several results, orderings and tight limits
/// now and then.
pub(super) fn random_arrays(random: &mut Random, n_nodes: usize, shape: Shape) -> ProblemArrays {
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

/// What a test knows of a problem, from its arrays.
pub(super) struct Oracle<'a> {
    arrays: &'a ProblemArrays,
    n_nodes: usize,
    edges: Vec<(usize, usize)>,
    /// Pairs of nodes that connect.
    touches: Vec<Vec<bool>>,
}

impl<'a> Oracle<'a> {
    pub(super) fn new(arrays: &'a ProblemArrays) -> Self {
        let n_nodes = arrays.groups.len();
        let nodes = 0..n_nodes;
        let reads = |node: usize| arrays.inputs.row(node as u32);
        let makes = |node: usize| arrays.outputs.row(node as u32);
        let mut edges: Vec<(usize, usize)> =
            arrays.orderings.iter().map(|&(a, b)| (a as usize, b as usize)).collect();
        let mut touches = vec![vec![false; n_nodes]; n_nodes];
        for a in nodes.clone() {
            for b in nodes.clone() {
                let has_data = reads(b).iter().any(|v| makes(a).contains(v));
                if has_data {
                    edges.push((a, b));
                }
                let group = arrays.groups[a];
                let is_sibling = reads(a)
                    .iter()
                    .any(|v| reads(b).contains(v) && arrays.links[*v as usize] == group);
                if group >= 0 && group == arrays.groups[b] && (has_data || is_sibling) {
                    touches[a][b] = true;
                    touches[b][a] = true;
                }
            }
        }
        Self { arrays, n_nodes, edges, touches }
    }

    fn grouped(&self) -> Vec<usize> {
        (0..self.n_nodes).filter(|&node| self.arrays.groups[node] >= 0).collect()
    }

    /// Distinct operands of a kernel, and how many of them are arrays.
    fn operands(&self, members: &BTreeSet<usize>) -> (usize, u64) {
        let arrays = self.arrays;
        let made: BTreeSet<u32> =
            members.iter().flat_map(|&node| arrays.outputs.row(node as u32)).copied().collect();
        let read: BTreeSet<u32> =
            members.iter().flat_map(|&node| arrays.inputs.row(node as u32)).copied().collect();
        let inputs = || read.difference(&made);
        let outputs = made.iter().filter(|&&variable| {
            let is_read = |node| arrays.inputs.row(node as u32).contains(&variable);
            arrays.results[variable as usize]
                || (0..self.n_nodes).any(|node| !members.contains(&node) && is_read(node))
        });
        let outputs: Vec<u32> = outputs.copied().collect();
        let n_read = inputs().filter(|&&v| !arrays.constants[v as usize]).count();
        (inputs().count() + outputs.len(), (n_read + outputs.len()) as u64)
    }

    fn is_connected(&self, members: &BTreeSet<usize>) -> bool {
        let mut reached: BTreeSet<usize> = members.iter().take(1).copied().collect();
        loop {
            let next = members.iter().copied().find(|&node| {
                !reached.contains(&node) && reached.iter().any(|&other| self.touches[other][node])
            });
            match next {
                Some(node) => reached.insert(node),
                None => return reached.len() == members.len(),
            };
        }
    }

    /// Whether the quotient by kernels, all other nodes alone, has no cycle: whether one block after
    /// the other can be taken away that no other leads to.
    fn is_acyclic(&self, kernels: &[BTreeSet<usize>]) -> bool {
        let mut name: Vec<usize> = (0..self.n_nodes).collect();
        for kernel in kernels {
            for &node in kernel {
                name[node] = *kernel.first().unwrap();
            }
        }
        let mut left: BTreeSet<usize> = name.iter().copied().collect();
        loop {
            let is_free = |block: usize| {
                self.edges
                    .iter()
                    .all(|&(a, b)| name[b] != block || name[a] == block || !left.contains(&name[a]))
            };
            let free: Vec<usize> = left.iter().copied().filter(|&block| is_free(block)).collect();
            if free.is_empty() {
                return left.is_empty();
            }
            free.iter().for_each(|block| {
                left.remove(block);
            });
        }
    }

    fn is_legal(&self, kernels: &[BTreeSet<usize>]) -> bool {
        let limit = self.arrays.max_operands as usize;
        kernels.iter().filter(|kernel| kernel.len() > 1).all(|kernel| {
            let groups: BTreeSet<i32> = kernel.iter().map(|&n| self.arrays.groups[n]).collect();
            groups.len() == 1 && self.operands(kernel).0 <= limit && self.is_connected(kernel)
        }) && self.is_acyclic(kernels)
    }

    fn cost(&self, kernels: &[BTreeSet<usize>]) -> Cost {
        let arrays = kernels.iter().map(|kernel| self.operands(kernel).1).sum();
        Cost { kernels: kernels.len() as u64, arrays }
    }

    /// The kernels of a partition: its blocks of nodes with a group.
    fn kernels(&self, partition: &Partition) -> Vec<BTreeSet<usize>> {
        let names = partition.names().filter(|&name| self.arrays.groups[name as usize] >= 0);
        names
            .map(|name| partition.members(name).iter().map(|&node| node as usize).collect())
            .collect()
    }

    /// Checks that the partition is a legal plan of that cost.
    pub(super) fn check(&self, partition: &Partition, cost: Cost) {
        let kernels = self.kernels(partition);
        assert!(self.is_legal(&kernels), "{kernels:?} is not legal");
        assert_eq!(self.cost(&kernels), cost);
        let alone = (0..self.n_nodes as u32).filter(|&n| self.arrays.groups[n as usize] < 0);
        assert!(alone.into_iter().all(|node| partition.members(partition.block(node)).len() == 1));
    }

    /// The least cost over all partitions.
    fn optimum(&self) -> Cost {
        let mut best = Cost { kernels: u64::MAX, arrays: 0 };
        self.extend(&self.grouped(), &mut Vec::new(), &mut best);
        best
    }

    fn extend(&self, rest: &[usize], kernels: &mut Vec<BTreeSet<usize>>, best: &mut Cost) {
        let Some((&node, rest)) = rest.split_first() else {
            let cost = self.cost(kernels);
            if cost < *best && self.is_legal(kernels) {
                *best = cost;
            }
            return;
        };
        for i in 0..kernels.len() {
            let first = *kernels[i].first().unwrap();
            if self.arrays.groups[first] == self.arrays.groups[node] {
                kernels[i].insert(node);
                self.extend(rest, kernels, best);
                kernels[i].remove(&node);
            }
        }
        kernels.push(BTreeSet::from([node]));
        self.extend(rest, kernels, best);
        kernels.pop();
    }
}

/// Compares the exact planner with all partitions of random problems; returns how many fast plans were
/// not the best.
fn compare_with_all_partitions(
    seed: u64,
    n_problems: usize,
    sizes: std::ops::Range<usize>,
) -> usize {
    let mut random = Random(seed);
    let mut n_missed = 0;
    for number in 0..n_problems {
        let n_nodes = sizes.start + random.below(sizes.len());
        let arrays = random_arrays(&mut random, n_nodes, SHAPES[number % SHAPES.len()]);
        let problem = FusionProblem::new(arrays.clone(), &Budget::unlimited()).unwrap();
        let oracle = Oracle::new(&arrays);
        let fast = plan(&problem, None, &Budget::unlimited()).unwrap();
        oracle.check(&fast.partition, fast.after);
        if let Some(stock) = stock(&problem, &Judge::new(&arrays)) {
            assert!(fast.after <= stock, "{number}: {arrays:?}");
        }
        let optimum = oracle.optimum();
        for incumbent in [&Partition::singletons(n_nodes), &fast.partition] {
            let budget = Budget::unlimited().with_effort(EFFORT);
            let proof = prove(&problem, incumbent, &budget).unwrap();
            oracle.check(&proof.partition, proof.cost);
            assert_eq!((proof.cost, proof.bound), (optimum, optimum), "{number}: {arrays:?}");
            assert!(proof.is_proven());
        }
        for effort in [0, 5, 40] {
            let budget = Budget::unlimited().with_effort(effort);
            let proof = prove(&problem, &fast.partition, &budget).unwrap();
            oracle.check(&proof.partition, proof.cost);
            assert!(proof.bound <= optimum && optimum <= proof.cost, "{arrays:?}");
            assert!(proof.cost <= fast.after && proof.effort <= effort);
        }
        let budget = Budget::unlimited().with_effort(EFFORT);
        let (best, proof) = plan_optimally(&problem, None, &budget).unwrap();
        oracle.check(&best.partition, best.after);
        assert_eq!((best.after, proof.bound), (optimum, optimum));
        assert_eq!(best.strategy == Some(Strategy::ExactSearch), optimum < fast.after);
        assert!(lower_bound(&problem, &Budget::unlimited()).unwrap() <= optimum);
        n_missed += usize::from(optimum < fast.after);
    }
    n_missed
}

#[test]
fn the_exact_plan_is_the_best_of_all_partitions() {
    compare_with_all_partitions(1, 600, 1..9);
}

#[test]
#[ignore = "minutes: cargo test --release -- --ignored --nocapture all_partitions"]
fn the_exact_plan_is_the_best_of_all_partitions_of_many_problems() {
    let n_missed = compare_with_all_partitions(2, 5000, 4..11);
    println!("of 5000 problems of 4 to 10 nodes, {n_missed} fast plans were not the best");
}

/// Proves random problems that are too large for all partitions; returns how many were proven, how
/// many fast plans had as many kernels as the best, and the most effort that one took.
fn prove_larger(
    seed: u64,
    n_problems: usize,
    sizes: std::ops::Range<usize>,
) -> (usize, usize, u64) {
    let mut random = Random(seed);
    let (mut n_proven, mut n_equal, mut most) = (0, 0, 0);
    for number in 0..n_problems {
        let n_nodes = sizes.start + random.below(sizes.len());
        let arrays = random_arrays(&mut random, n_nodes, SHAPES[number % SHAPES.len()]);
        let problem = FusionProblem::new(arrays.clone(), &Budget::unlimited()).unwrap();
        let oracle = Oracle::new(&arrays);
        let fast = plan(&problem, None, &Budget::unlimited()).unwrap();
        oracle.check(&fast.partition, fast.after);
        let proof =
            prove(&problem, &fast.partition, &Budget::unlimited().with_effort(EFFORT)).unwrap();
        oracle.check(&proof.partition, proof.cost);
        assert!(proof.bound <= proof.cost && proof.cost <= fast.after);
        assert!(lower_bound(&problem, &Budget::unlimited()).unwrap() <= proof.bound);
        n_proven += usize::from(proof.is_proven());
        n_equal += usize::from(proof.cost.kernels == fast.after.kernels);
        most = most.max(proof.effort);
        // The search does not depend on where it starts from.
        if proof.is_proven() && number % 4 == 0 {
            let unfused = Partition::singletons(n_nodes);
            let again =
                prove(&problem, &unfused, &Budget::unlimited().with_effort(EFFORT)).unwrap();
            assert!(!again.is_proven() || again.cost == proof.cost);
            assert!(again.bound <= proof.cost);
            assert!(proof.bound <= again.cost);
        }
    }
    (n_proven, n_equal, most)
}

#[test]
fn plans_of_larger_problems_are_proven() {
    let (n_proven, n_equal, _) = prove_larger(3, 40, 12..40);
    assert_eq!(n_proven, 40);
    assert!(n_equal >= 30);
}

#[test]
#[ignore = "minutes: cargo test --release -- --ignored --nocapture many_larger"]
fn plans_of_many_larger_problems_are_proven() {
    for sizes in [10..20, 20..40, 40..60] {
        let clock = std::time::Instant::now();
        let (n_proven, n_equal, most) = prove_larger(4, 1000, sizes.clone());
        println!(
            "{sizes:?} nodes: of 1000, {n_proven} proven, {n_equal} fast plans with as many kernels; \
             most effort {most}; {:?}",
            clock.elapsed()
        );
    }
}

#[test]
fn limits_below_two_operands_have_plans_and_bounds() {
    let (mut random, mut n_fused) = (Random(38), 0);
    for number in 0..600 {
        let n_nodes = 2 + random.below(7);
        let arrays = random_arrays(&mut random, n_nodes, SHAPES[number % SHAPES.len()]);
        let arrays = ProblemArrays { max_operands: number as u32 / 4 % 2, ..arrays };
        let problem = FusionProblem::new(arrays.clone(), &Budget::unlimited()).unwrap();
        let oracle = Oracle::new(&arrays);
        let optimum = oracle.optimum();
        assert!(lower_bound(&problem, &Budget::unlimited()).unwrap() <= optimum, "{arrays:?}");
        let (best, proof) =
            plan_optimally(&problem, None, &Budget::unlimited().with_effort(EFFORT)).unwrap();
        oracle.check(&best.partition, best.after);
        assert_eq!((proof.cost, proof.bound), (optimum, optimum), "{arrays:?}");
        n_fused += usize::from(best.after.kernels < best.before.kernels);
    }
    assert!(n_fused > 5, "{n_fused}");
}

/// How far plans and bounds are apart on problems that stay the same, and what the search takes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Quality {
    /// Kernels and arrays of all fast plans.
    fast: (u64, u64),
    /// The same after moves, without a search.
    moved: (u64, u64),
    /// What the bounds say.
    bounds: (u64, u64),
    /// With a search of little effort, and the bounds it comes to.
    some: (u64, u64),
    some_bounds: (u64, u64),
    /// The best plans that a search of more effort finds.
    best: (u64, u64),
    /// What that takes.
    effort: u64,
    /// What each strategy comes to by itself, and what of that without improvement.
    alone: Vec<(u64, u64)>,
    starts: Vec<(u64, u64)>,
}

fn quality(seed: u64, n_problems: usize) -> Quality {
    let mut random = Random(seed);
    let none = || vec![(0, 0); PORTFOLIO.len()];
    let mut all = Quality { alone: none(), starts: none(), ..Quality::default() };
    let add = |sum: &mut (u64, u64), cost: Cost| {
        sum.0 += cost.kernels;
        sum.1 += cost.arrays;
    };
    for number in 0..n_problems {
        let n_nodes = 20 + random.below(40);
        let arrays = random_arrays(&mut random, n_nodes, SHAPES[number % SHAPES.len()]);
        let problem = FusionProblem::new(arrays, &Budget::unlimited()).unwrap();
        let fast = plan(&problem, None, &Budget::unlimited()).unwrap();
        add(&mut all.fast, fast.after);
        let moved = moved(&problem, &fast.partition, true);
        add(&mut all.moved, cost::cost(&problem, &moved, &Budget::unlimited()).unwrap());
        add(&mut all.bounds, lower_bound(&problem, &Budget::unlimited()).unwrap());
        let (some, proof) =
            plan_optimally(&problem, None, &Budget::unlimited().with_effort(300)).unwrap();
        add(&mut all.some, some.after);
        add(&mut all.some_bounds, proof.bound);
        let question = Question { problem: &problem, strict: None, budget: &Budget::unlimited() };
        let sums = all.alone.iter_mut().zip(&mut all.starts);
        for (entry, (sum, start_sum)) in PORTFOLIO.into_iter().zip(sums) {
            add(
                start_sum,
                cost::cost(&problem, &(entry.start)(&question).unwrap(), &Budget::unlimited())
                    .unwrap(),
            );
            let forced = Entry { applies: |_| true, must_run: true, ..entry };
            add(sum, best_of(&[forced], &question).unwrap().cost);
        }
        let budget = Budget::unlimited().with_effort(8000);
        let proof = prove(&problem, &fast.partition, &budget).unwrap();
        all.effort += proof.effort;
        add(&mut all.best, proof.cost);
    }
    all
}

/// Whatever is changed, plans do not become worse unnoticed, nor bounds weaker, nor searches longer.
///
/// The numbers are what the planner came to when the test was written: better ones may take their place.
#[test]
fn plans_and_bounds_are_as_good_as_they_were() {
    let now = quality(5, 120);
    let is_as_cheap = |now: (u64, u64), was: (u64, u64)| now.0 <= was.0 && now.1 <= was.1;
    assert!(is_as_cheap(now.fast, (1961, 6666)), "{now:?}");
    assert!(is_as_cheap(now.moved, (1961, 6652)), "{now:?}");
    assert!(is_as_cheap(now.some, (1960, 6640)), "{now:?}");
    assert!(is_as_cheap(now.best, (1956, 6628)), "{now:?}");
    assert!(is_as_cheap((1763, 5887), now.bounds), "{now:?}");
    assert!(is_as_cheap((1800, 6146), now.some_bounds), "{now:?}");
    let alone = [(1988, 6743), (1988, 6743), (1975, 6739), (1985, 6755), (1982, 6697)];
    assert!(now.alone.iter().zip(alone).all(|(&now, was)| is_as_cheap(now, was)), "{now:?}");
    let starts = [(1726, 6212), (1726, 6212), (1867, 6493), (1818, 6415), (3624, 9785)];
    assert!(now.starts.iter().zip(starts).all(|(&now, was)| is_as_cheap(now, was)), "{now:?}");
    assert!(now.effort <= 116_024, "{now:?}");
}

/// Kernels grow node by node; a thread's stack need not have room for each.
#[test]
fn wide_components_need_no_deep_stack() {
    let n_nodes = 1000u32;
    let (mut inputs, mut outputs) = (Rows::empty(), Rows::empty());
    for node in 0..n_nodes {
        inputs.push([0]).unwrap();
        outputs.push([node + 1]).unwrap();
    }
    let n_variables = n_nodes as usize + 1;
    let problem = FusionProblem::new(
        ProblemArrays {
            n_variables,
            inputs,
            outputs,
            groups: vec![0; n_nodes as usize],
            links: vec![0; n_variables],
            constants: vec![false; n_variables],
            results: vec![true; n_variables],
            orderings: Vec::new(),
            max_operands: 500,
        },
        &Budget::unlimited(),
    )
    .unwrap();
    let small = std::thread::Builder::new().stack_size(128 << 10);
    let proof = small.spawn(move || {
        let apart = Partition::singletons(n_nodes as usize);
        prove(&problem, &apart, &Budget::unlimited().with_effort(10_000_000))
            .map(|proof| proof.effort)
    });
    assert_eq!(proof.unwrap().join().unwrap().unwrap(), 10_000_000);
}
