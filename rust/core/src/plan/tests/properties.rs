//! Properties of the plans of all problems.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::strategy::Strategy;

use super::judges::definition::{check, connected, naive_interface, optimum};
use super::problems::generated::{problems, wild_problems};
use super::problems::random::random_problems;
use super::steps::starts;
use crate::budget::Budget;
use crate::plan::problem::parts;
use crate::plan::proof::floor;
use crate::plan::search::portfolio::{self, PORTFOLIO, Question};
use crate::plan::search::{sinks, split};
use crate::plan::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn plans_are_legal(problem in wild_problems(40, 3)) {
        check(&problem, &plan(&problem, None, &Budget::unlimited()).unwrap());
    }

    #[test]
    fn plans_of_a_part_are_not_worse(
        (problem, keep) in problems(30, 2).prop_flat_map(|p| {
            let n = p.n_nodes();
            (Just(p), prop::collection::vec(any::<bool>(), n))
        })
    ) {
        let narrow = sinks::grow_from_sinks(&problem, |n| keep[n as usize], &Budget::unlimited()).unwrap();
        let narrow = split::split_oversized(&problem, narrow, &Budget::unlimited()).unwrap();
        let plan = plan(&problem, Some(&keep), &Budget::unlimited()).unwrap();
        check(&problem, &plan);
        prop_assert!(plan.after <= cost::cost(&problem, &narrow, &Budget::unlimited()).unwrap());
    }

    #[test]
    fn plans_are_not_better_than_the_best(problem in wild_problems(9, 2)) {
        let plan = plan(&problem, None, &Budget::unlimited()).unwrap();
        check(&problem, &plan);
        let best = optimum(&problem);
        prop_assert!(best <= plan.after);
        let floor = floor::floor(&problem, &Budget::unlimited()).unwrap().unwrap();
        prop_assert!(floor.kernels <= best.kernels && floor.arrays <= best.arrays);
        let question = Question { problem: &problem, strict: None, budget: &Budget::unlimited() };
        let found = portfolio::best(&question).unwrap();
        prop_assert!(!found.is_optimal || found.cost == best);
        prop_assert!(found.cost <= portfolio::best_of(&PORTFOLIO, &question).unwrap().cost);
    }

    #[test]
    fn nothing_more_can_be_merged(problem in wild_problems(24, 2)) {
        let plan = plan(&problem, None, &Budget::unlimited()).unwrap();
        let budget = Budget::unlimited();
        let mut explainer = Explainer::new(&problem, &plan.partition, &budget).unwrap();
        let n_nodes = problem.n_nodes() as u32;
        for (a, b) in (0..n_nodes).flat_map(|a| (0..n_nodes).map(move |b| (a, b))) {
            let verdict = explainer.explain(a, b).unwrap();
            prop_assert_eq!(&verdict, &explain(&problem, &plan.partition, a, b, &Budget::unlimited()).unwrap());
            let pair = [plan.partition.block(a), plan.partition.block(b)];
            let members: BTreeSet<u32> =
                pair.iter().flat_map(|&block| plan.partition.members(block)).copied().collect();
            match verdict {
                Verdict::Possible => prop_assert!(false, "{a} and {b} could be merged"),
                Verdict::Together => {
                    prop_assert_eq!(pair[0], pair[1]);
                    prop_assert!(members.len() > 1);
                }
                Verdict::Alone => prop_assert!(a == b && members.len() == 1),
                Verdict::NoGroup(node) => prop_assert!(problem.group(node).is_none()),
                Verdict::OtherGroup => prop_assert_ne!(problem.group(a), problem.group(b)),
                Verdict::NotConnected => prop_assert!(!connected(&problem, &members)),
                Verdict::OperandLimit(operands) => {
                    let (inputs, outputs) = naive_interface(&problem, &members);
                    prop_assert_eq!(operands, inputs.len() + outputs.len());
                    prop_assert!(operands > problem.max_operands());
                }
                Verdict::Cycle(path) => {
                    prop_assert!(members.contains(&path[0]));
                    prop_assert!(members.contains(&path[path.len() - 1]));
                    prop_assert!(path[1..path.len() - 1].iter().all(|n| !members.contains(n)));
                    prop_assert!(path.len() > 2);
                    for step in path.windows(2) {
                        prop_assert!(
                            problem.graph().successors(step[0]).contains(&step[1])
                                || plan.partition.block(step[0]) == plan.partition.block(step[1])
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn components_do_not_meet(problem in wild_problems(30, 3)) {
        let parts = parts::parts(&problem, &Budget::unlimited()).unwrap();
        let components = parts::Components::new(&problem, &parts, &Budget::unlimited()).unwrap();
        let nodes: Vec<u32> = (0..problem.n_nodes() as u32).collect();
        for name in parts.names().filter(|&name| problem.group(name).is_some()) {
            let members: BTreeSet<u32> = parts.members(name).iter().copied().collect();
            prop_assert!(connected(&problem, &members));
            prop_assert!(members.iter().all(|&node| components.of(node) == components.of(name)));
        }
        // Nodes of one component reach one another when parts are contracted.
        let blocks = parts.blocks();
        let mut reach = vec![vec![false; nodes.len()]; nodes.len()];
        for &a in &nodes {
            reach[a as usize][a as usize] = true;
        }
        for (a, b) in problem.graph().edges() {
            reach[blocks[a as usize] as usize][blocks[b as usize] as usize] = true;
        }
        for &via in &nodes {
            for &a in &nodes {
                for &b in &nodes {
                    let (a, b, via) = (a as usize, b as usize, via as usize);
                    reach[a][b] |= reach[a][via] && reach[via][b];
                }
            }
        }
        for (&a, &b) in nodes.iter().flat_map(|a| nodes.iter().map(move |b| (a, b))) {
            let (p, q) = (blocks[a as usize] as usize, blocks[b as usize] as usize);
            prop_assert_eq!(components.of(a) == components.of(b), reach[p][q] && reach[q][p]);
            prop_assert!(!reach[p][q] || components.of(a) <= components.of(b));
        }
    }

    #[test]
    fn each_strategy_alone_is_legal(problem in wild_problems(40, 3)) {
        for (strategy, start) in starts(&problem) {
            // Growth from the sinks ignores orderings.
            if problem.has_orderings() && start.quotient_order(&problem, &Budget::unlimited()).is_err() {
                use crate::plan::Strategy::{GrowthFromSinks, StrictGrowthFromSinks};
                prop_assert!([GrowthFromSinks, StrictGrowthFromSinks].contains(&strategy));
                continue;
            }
            let split = split::split_oversized(&problem, start, &Budget::unlimited()).unwrap();
            let before = cost::cost(&problem, &split, &Budget::unlimited()).unwrap();
            let (partition, _) = improve::improve(&problem, split, &Budget::unlimited().with_effort(u64::MAX)).unwrap();
            let after = cost::cost(&problem, &partition, &Budget::unlimited()).unwrap();
            prop_assert!(after <= before);
            let order = partition.quotient_order(&problem, &Budget::unlimited()).unwrap();
            let clusters =
                    clusters(&problem, &partition, &order, &Budget::unlimited()).unwrap();
            let singletons = Partition::singletons(problem.n_nodes());
            let before = cost::cost(&problem, &singletons, &Budget::unlimited()).unwrap();
            let (strategy, exhausted) = (None, Vec::new());
            check(&problem, &Plan { clusters, before, after, partition, strategy, exhausted });
        }
    }
}

#[test]
fn lone_nodes_cost_what_they_read_and_what_is_read_of_them() {
    for (arrays, problem) in random_problems(21, 200, 1..12) {
        let lone = || (0..problem.n_nodes() as u32).filter(|&node| problem.group(node).is_none());
        let mut expected = Cost::default();
        for node in lone() {
            let read: BTreeSet<u32> = arrays.inputs.row(node).iter().copied().collect();
            let is_read = |variable: u32| arrays.inputs.items().contains(&variable);
            expected.kernels += 1;
            expected.arrays +=
                read.iter().filter(|&&v| !arrays.constants[v as usize]).count() as u64;
            for &variable in arrays.outputs.row(node) {
                let is_needed = arrays.results[variable as usize] || is_read(variable);
                expected.arrays += u64::from(is_needed);
            }
        }
        assert_eq!(lone_cost(&problem, lone(), &Budget::unlimited()), Ok(expected));
    }
}

/// Measures how often and by how much each strategy misses the optimum, for the notes of the
/// planner.
#[test]
#[ignore = "a measurement: cargo test --release -- --ignored --nocapture gap"]
fn gap_to_the_optimum() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut tally: BTreeMap<String, [u64; 4]> = BTreeMap::new();
    for _ in 0..3000 {
        let problem = problems(10, 2).new_tree(&mut runner).unwrap().current();
        let best = optimum(&problem);
        let mut add = |strategy: String, cost: Cost| {
            let row = tally.entry(strategy).or_default();
            row[0] += 1;
            row[1] += u64::from(cost > best);
            row[2] += cost.kernels - best.kernels;
            row[3] += if cost.kernels == best.kernels { cost.arrays - best.arrays } else { 0 };
        };
        add("portfolio".into(), plan(&problem, None, &Budget::unlimited()).unwrap().after);
        for (strategy, start) in starts(&problem) {
            let split = split::split_oversized(&problem, start, &Budget::unlimited()).unwrap();
            let (improved, _) =
                improve::improve(&problem, split, &Budget::unlimited().with_effort(u64::MAX))
                    .unwrap();
            add(
                strategy.name().into(),
                cost::cost(&problem, &improved, &Budget::unlimited()).unwrap(),
            );
        }
    }
    println!("strategy: problems, not optimal, kernels too many, arrays too many at equal kernels");
    for (strategy, row) in tally {
        println!("{strategy}: {row:?}");
    }
}
