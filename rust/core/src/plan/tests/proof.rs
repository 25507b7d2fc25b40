//! The exact planner, judged by all partitions of small problems and by separate checks on larger
//! ones.

use super::judges::exhaustive::Oracle;
use super::judges::linear::Judge;
use super::problems::arrays::arrays_of_data;
use super::problems::random::{Random, SHAPES, random_arrays, random_problems};
use super::steps::stock;
use crate::budget::Budget;
use crate::plan::problem::cost;
use crate::plan::proof::masks::MOST;
use crate::plan::proof::relations::{movable, refine};
use crate::plan::*;
use crate::rows::Rows;

/// Compares the exact planner with all partitions of random problems. Returns the number of fast
/// plans that were not the best.
fn compare_with_all_partitions(
    seed: u64,
    n_problems: usize,
    sizes: std::ops::Range<usize>,
) -> usize {
    let mut n_missed = 0;
    for (number, (arrays, problem)) in random_problems(seed, n_problems, sizes).enumerate() {
        let oracle = Oracle::new(&arrays);
        let fast = plan(&problem, None, &Budget::unlimited()).unwrap();
        oracle.check(&fast.partition, fast.after);
        if let Some(stock) = stock(&problem, &Judge::new(&arrays)) {
            assert!(fast.after <= stock, "{number}: {arrays:?}");
        }
        let optimum = oracle.optimum();
        for incumbent in [&Partition::singletons(problem.n_nodes()), &fast.partition] {
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

/// Proves random problems that are too large for all partitions. Returns the number that were
/// proven, the number of fast plans with as many kernels as the best, and the largest effort of a
/// single proof.
fn prove_larger(
    seed: u64,
    n_problems: usize,
    sizes: std::ops::Range<usize>,
) -> (usize, usize, u64) {
    let (mut n_proven, mut n_equal, mut most) = (0, 0, 0);
    for (number, (arrays, problem)) in random_problems(seed, n_problems, sizes).enumerate() {
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
            let unfused = Partition::singletons(problem.n_nodes());
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

/// Kernels grow node by node, without taking space on the thread's stack for each node.
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

#[test]
fn a_part_alone_is_one_kernel_without_any_search() {
    // A chain of four, and an operand for each: six operands in all.
    let nodes: [(i32, &[u32]); 4] = [(0, &[0, 1]), (0, &[5, 2]), (0, &[6, 3]), (0, &[7, 4])];
    for (limit, is_one) in [(5, false), (6, true), (7, true)] {
        let problem =
            FusionProblem::new(arrays_of_data(5, &nodes, limit), &Budget::unlimited()).unwrap();
        let unfused = Partition::singletons(4);
        let proof = prove(&problem, &unfused, &Budget::unlimited().with_effort(0)).unwrap();
        assert_eq!(proof.cost.kernels, if is_one { 1 } else { 4 });
        assert_eq!(proof.is_proven(), is_one);
        assert_eq!(proof.partition.members(0).len(), if is_one { 4 } else { 1 });
    }
}

#[test]
fn a_plan_above_the_bound_is_not_proven() {
    let mut n_open = 0;
    for (_, problem) in random_problems(29, 60, 10..30) {
        let unfused = Partition::singletons(problem.n_nodes());
        let proof = prove(&problem, &unfused, &Budget::unlimited().with_effort(0)).unwrap();
        if proof.bound < proof.cost {
            assert!(!proof.is_proven());
            n_open += 1;
        }
    }
    assert!(n_open > 10);
}

#[test]
fn kernels_that_orderings_alone_hold_together_are_no_plan() {
    // a -> c <- b and a -> d, with b before d: a, b and d would be within the limit, but only c, which
    // is one operand too many, connects b with the others.
    let nodes: [(i32, &[u32]); 4] = [(0, &[0]), (0, &[1]), (0, &[6, 7, 2, 3, 4]), (0, &[6, 5])];
    let mut arrays = arrays_of_data(6, &nodes, 6);
    arrays.orderings = vec![(1, 3)];
    let problem = FusionProblem::new(arrays, &Budget::unlimited()).unwrap();
    let unfused = Partition::singletons(4);
    let proof = prove(&problem, &unfused, &Budget::unlimited().with_effort(EFFORT)).unwrap();
    assert!(proof.is_proven());
    assert_eq!(proof.cost.kernels, 3, "{:?}", proof.partition);
}

#[test]
fn components_of_any_size_have_a_bound() {
    // Pairs of readers of one operand, each pair after the one before through a node that is not
    // fused: one component with more nodes than sets have room for.
    let n_pairs = MOST as u32 / 2 + 1;
    let mut reads: Vec<(i32, Vec<u32>)> = Vec::new();
    let mut last = 0;
    for made in (1..).step_by(3).take(n_pairs as usize) {
        let reader = vec![last, 0];
        reads.extend([(0, reader.clone()), (0, reader), (-1, vec![made, made + 1])]);
        last = made + 2;
    }
    let nodes: Vec<(i32, &[u32])> = reads.iter().map(|(group, row)| (*group, &row[..])).collect();
    let mut arrays = arrays_of_data(1, &nodes, 1024);
    arrays.links[0] = 0;
    let problem = FusionProblem::new(arrays, &Budget::unlimited()).unwrap();
    let (parts, components) = refine(&problem, &Budget::unlimited()).unwrap();
    let all = (0..components.len() as u32).map(|component| components.members(component));
    assert_eq!(all.map(|members| movable(&parts, members).count()).max(), Some(MOST + 2));
    let plan = plan(&problem, None, &Budget::unlimited()).unwrap();
    assert_eq!(plan.after.kernels, n_pairs.into());
    let bound = lower_bound(&problem, &Budget::unlimited()).unwrap();
    assert!(bound.kernels == plan.after.kernels && bound.arrays < plan.after.arrays);
    for incumbent in [&plan.partition, &Partition::singletons(nodes.len())] {
        let proof = prove(&problem, incumbent, &Budget::unlimited().with_effort(GLANCE)).unwrap();
        assert_eq!(proof.bound, bound);
        assert_eq!(proof.cost, cost::cost(&problem, incumbent, &Budget::unlimited()).unwrap());
    }
}

#[test]
fn a_part_of_one_operand_has_a_bound_where_none_are_allowed() {
    // A node that reads one variable twice and writes nothing has one operand of three.
    let mut chain = arrays_of_data(1, &[(0, &[0, 0]), (0, &[1])], 0);
    chain.results = vec![false; 3];
    let problem = FusionProblem::new(chain, &Budget::unlimited()).unwrap();
    let bound = lower_bound(&problem, &Budget::unlimited()).unwrap();
    assert!(
        bound.kernels <= plan(&problem, None, &Budget::unlimited()).unwrap().after.kernels,
        "{bound:?}"
    );
}
