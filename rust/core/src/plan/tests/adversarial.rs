//! Plans of problems of thousands of nodes: random ones, and families that are slow to plan.

use std::cell::Cell;
use std::rc::Rc;

use super::judges::linear::Judge;
use super::problems::families::families;
use super::problems::random::{Random, SHAPES, random_arrays};
use super::steps::{moved, stock};
use crate::budget::Budget;
use crate::plan::search::portfolio::{AMPLE, Entry, PORTFOLIO, Question, best_of};
use crate::plan::search::sinks;
use crate::plan::*;

/// Checks the plan, the bound, and the result of each strategy alone.
fn check_all(arrays: &ProblemArrays) {
    let problem = FusionProblem::new(arrays.clone(), &Budget::unlimited()).unwrap();
    let judge = Judge::new(arrays);
    let fast = plan(&problem, None, &Budget::unlimited()).unwrap();
    assert_eq!(judge.cost(&fast.partition), fast.after);
    let question = Question { problem: &problem, strict: None, budget: &Budget::unlimited() };
    for entry in PORTFOLIO {
        // Each strategy is finished, and counts.
        let forced = Entry { applies: |_| true, must_run: true, effort: 100 * AMPLE, ..entry };
        let alone = best_of(&[forced], &question).unwrap();
        assert_eq!(judge.cost(&alone.partition), alone.cost, "{:?}", entry.strategy);
        for ties in [false, true] {
            let moved = moved(&problem, &alone.partition, ties);
            assert!(judge.cost(&moved) <= alone.cost, "{:?}", entry.strategy);
        }
    }
    if let Some(stock) = stock(&problem, &judge) {
        assert!(fast.after <= stock, "{:?} and stock {stock:?}", fast.after);
    }
    let bound = lower_bound(&problem, &Budget::unlimited()).unwrap();
    let (best, proof) =
        plan_optimally(&problem, None, &Budget::unlimited().with_effort(20_000)).unwrap();
    let proven = proof.bound;
    assert_eq!(judge.cost(&best.partition), best.after);
    assert!(bound <= proven && proven <= best.after && best.after <= fast.after);
}

#[test]
fn every_strategy_is_legal_on_hundreds_of_nodes() {
    let mut random = Random(7);
    for n_nodes in [150, 600] {
        for shape in SHAPES {
            check_all(&random_arrays(&mut random, n_nodes, shape));
        }
    }
}

#[test]
fn every_strategy_is_legal_on_adversarial_families() {
    for limit in [1024, 8] {
        for (_, arrays) in families(150, limit) {
            check_all(&arrays);
        }
    }
}

/// Steps that growth from the sinks counts for each node, by the number of times that it asks
/// whether to go on.
fn steps_of_growth(arrays: &ProblemArrays) -> usize {
    let problem = FusionProblem::new(arrays.clone(), &Budget::unlimited()).unwrap();
    let n_asked = Rc::new(Cell::new(0));
    let count = Rc::clone(&n_asked);
    let may_go_on = Rc::new(move || {
        count.set(count.get() + 1);
        true
    });
    sinks::grow_from_sinks(&problem, |_| true, &Budget::asking(may_go_on)).unwrap();
    n_asked.get() * (1 << 16) / problem.n_nodes()
}

#[test]
fn what_is_contracted_costs_little_until_it_is_asked_for() {
    for (name, arrays) in families(4000, 1024) {
        let n_steps = steps_of_growth(&arrays);
        // If all dependents of a cluster were brought up to date at once, four families would take
        // 1900 to 3100 steps.
        assert!(n_steps < 1800, "{name}: {n_steps} steps for each node");
    }
}

#[test]
#[ignore = "minutes: cargo test --release -- --ignored thousands"]
fn every_strategy_is_legal_on_many_thousands_of_nodes() {
    let mut random = Random(8);
    for round in 0..200 {
        let n_nodes = 100 + random.below(5000);
        check_all(&random_arrays(&mut random, n_nodes, SHAPES[round % SHAPES.len()]));
    }
    for (n_nodes, limit) in [(1000, 1024), (1000, 6), (3000, 1024), (3000, 12)] {
        families(n_nodes, limit).iter().for_each(|(_, arrays)| check_all(arrays));
    }
}

/// Processor time of this thread in seconds, which other work does not add to.
fn seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1e9
}

#[test]
#[ignore = "a measurement, on Linux: cargo test --release -- --ignored --nocapture times_of_adversarial"]
fn times_of_adversarial_families() {
    for (n_nodes, limit) in [(40_000, 1024), (40_000, 8), (100_000, 1024), (100_000, 8)] {
        for (name, arrays) in families(n_nodes, limit) {
            let problem = FusionProblem::new(arrays, &Budget::unlimited()).unwrap();
            let before = seconds();
            let plan = plan(&problem, None, &Budget::unlimited()).unwrap();
            println!(
                "{n_nodes} {name}, limit {limit}: {:.2} s; {} kernels, {} arrays; {:?}, not finished {:?}",
                seconds() - before,
                plan.after.kernels,
                plan.after.arrays,
                plan.strategy,
                plan.exhausted
            );
        }
    }
}
