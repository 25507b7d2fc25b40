//! Moves of nodes after the strategies, and the merges that they make possible.

use proptest::prelude::*;

use super::judges::definition::check;
use super::problems::arrays::arrays_of_data;
use super::problems::generated::wild_problems;
use super::problems::random::random_problems;
use super::steps::{moved, starts};
use crate::budget::Budget;
use crate::plan::search::portfolio::{self, AMPLE, PORTFOLIO, Question};
use crate::plan::search::split;
use crate::plan::*;

#[test]
fn moves_go_on_as_long_as_they_save() {
    let (mut n_moved, mut n_open) = (0, 0);
    for (_, problem) in random_problems(31, 600, 10..60) {
        let start = PORTFOLIO[2].start;
        let start =
            start(&Question { problem: &problem, strict: None, budget: &Budget::unlimited() })
                .unwrap();
        let start = split::split_oversized(&problem, start, &Budget::unlimited()).unwrap();
        let once = moved(&problem, &start, true);
        let twice = moved(&problem, &once, true);
        n_moved += usize::from(once != start);
        n_open += usize::from(twice != once);
    }
    // The kernels are in another order afterwards, which lets some nodes go that could not before.
    assert!(n_moved > 100 && 10 * n_open < n_moved, "{n_moved} {n_open}");
}

/// A chain of kernels of two nodes each, then two nodes that a move brings together, and nodes that
/// may not be fused; and the partition into these kernels.
fn pairs_and_a_move(n_pairs: u32, n_nodes: u32) -> (FusionProblem, Partition) {
    let n_chain = 2 * n_pairs;
    // Variable 0 is a root, and node `i` makes variable `i + 1`.
    let reads: Vec<[u32; 1]> = (0..n_nodes)
        .map(|node| [if node == n_chain || node > n_chain + 1 { 0 } else { node }])
        .collect();
    let group =
        |node: u32| [0, 1, -1][usize::from(node >= n_chain) + usize::from(node > n_chain + 1)];
    let nodes: Vec<(i32, &[u32])> =
        (0..n_nodes).zip(&reads).map(|(node, reads)| (group(node), reads.as_slice())).collect();
    let blocks = (0..n_nodes).map(|node| if node < n_chain { node / 2 * 2 } else { node });
    let problem =
        FusionProblem::new(arrays_of_data(1, &nodes, 1024), &Budget::unlimited()).unwrap();
    (problem, Partition::from_names(blocks.collect()))
}

/// The number of kernels after moves and merges.
fn n_polished(problem: &FusionProblem, partition: &Partition) -> u64 {
    let order = partition.quotient_order(problem, &Budget::unlimited()).unwrap();
    let polished = polish(problem, partition, &order, &[], &Budget::unlimited()).unwrap().unwrap();
    cost::cost(problem, &polished, &Budget::unlimited()).unwrap().kernels
}

#[test]
fn merges_after_moves_are_left_out_on_large_graphs() {
    let n_nodes = LARGE as u32;
    for (n_nodes, expected) in [(n_nodes - 1, 2), (n_nodes, 2), (n_nodes + 1, 3)] {
        let (problem, partition) = pairs_and_a_move(2, n_nodes);
        assert_eq!(cost::cost(&problem, &partition, &Budget::unlimited()).unwrap().kernels, 4);
        assert_eq!(n_polished(&problem, &partition), expected, "{n_nodes}");
    }
}

#[test]
fn merges_after_moves_have_effort_for_each_node() {
    let (problem, partition) = pairs_and_a_move(1000, 2002);
    assert_eq!(cost::cost(&problem, &partition, &Budget::unlimited()).unwrap().kernels, 1002);
    assert_eq!(n_polished(&problem, &partition), 2);
    // An effort that has no share for each node does not suffice.
    let (less, is_complete) =
        improve::improve(&problem, partition, &Budget::unlimited().with_effort(AMPLE + 2003))
            .unwrap();
    assert!(!is_complete && cost::cost(&problem, &less, &Budget::unlimited()).unwrap().kernels > 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn moves_keep_plans_legal_and_save_arrays(problem in wild_problems(40, 3)) {
        for (_, start) in starts(&problem) {
            if start.quotient_order(&problem, &Budget::unlimited()).is_err() {
                continue;
            }
            let split = split::split_oversized(&problem, start, &Budget::unlimited()).unwrap();
            let before = cost::cost(&problem, &split, &Budget::unlimited()).unwrap();
            for ties in [false, true] {
                let partition = moved(&problem, &split, ties);
                let after = cost::cost(&problem, &partition, &Budget::unlimited()).unwrap();
                prop_assert_eq!(after < before, partition != split);
                prop_assert!(after.arrays <= before.arrays && after.kernels <= before.kernels);
                let order = partition.quotient_order(&problem, &Budget::unlimited()).unwrap();
                let clusters =
                    clusters(&problem, &partition, &order, &Budget::unlimited()).unwrap();
                let before = cost::cost(&problem, &Partition::singletons(problem.n_nodes()), &Budget::unlimited()).unwrap();
                let (strategy, exhausted) = (None, Vec::new());
                check(&problem, &Plan { clusters, before, after, partition, strategy, exhausted });
            }
        }
    }

    #[test]
    fn the_plan_is_no_worse_than_before_moves(problem in wild_problems(40, 3)) {
        let question = Question { problem: &problem, strict: None, budget: &Budget::unlimited() };
        let before = portfolio::best(&question).unwrap();
        let fast = plan(&problem, None, &Budget::unlimited()).unwrap();
        check(&problem, &fast);
        prop_assert!(fast.after <= before.cost);
        prop_assert_eq!(fast.after < before.cost, fast.partition != before.partition);
        prop_assert_eq!(&plan(&problem, None, &Budget::unlimited()).unwrap(), &fast);
        let (best, _) = plan_optimally(&problem, None, &Budget::unlimited().with_effort(0)).unwrap();
        check(&problem, &best);
        prop_assert!(best.after <= fast.after);
    }
}
