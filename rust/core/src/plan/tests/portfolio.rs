//! The strategies that are tried, and the choice of the winning plan.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::judges::definition::{cost_of_component, naive_cost};
use super::problems::arrays::{arrays_of_data, problem};
use super::problems::generated::wild_problems;
use super::problems::random::{Random, random_problems};
use super::steps::entry;
use crate::budget::Budget;
use crate::plan::problem::parts;
use crate::plan::search::portfolio::{self, AMPLE, Entry, PORTFOLIO, Question};
use crate::plan::search::sinks;
use crate::plan::{Cost, FusionProblem, Strategy, plan};

#[test]
fn a_plan_knows_its_strategy() {
    let fused =
        plan(&problem(1, &[(0, &[0]), (0, &[1])], 1024), None, &Budget::unlimited()).unwrap();
    assert_eq!(fused.strategy, Some(crate::plan::Strategy::DepthFromSinks));
    assert!(fused.exhausted.is_empty());
    let unfused =
        plan(&problem(1, &[(0, &[0]), (-1, &[1]), (0, &[2])], 1024), None, &Budget::unlimited())
            .unwrap();
    assert_eq!((unfused.strategy, unfused.exhausted), (None, Vec::new()));
}

#[test]
fn efforts_that_do_not_suffice_are_told() {
    use crate::plan::Strategy::{DepthFromSinks, GrowthFromSinks, LargestSavingFirst};
    let problem = problem(1, &[(0, &[0]), (0, &[1]), (0, &[2])], 1024);
    let question = Question { problem: &problem, strict: None, budget: &Budget::unlimited() };
    let best = |portfolio: &[Entry]| {
        let found = portfolio::best_of(portfolio, &question).unwrap();
        (found.strategy, found.exhausted)
    };
    // An unfinished strategy counts if it must run, and otherwise does not.
    let unfinished = [entry(GrowthFromSinks, 0), entry(DepthFromSinks, 0)];
    assert_eq!(best(&unfinished), (Some(GrowthFromSinks), vec![GrowthFromSinks, DepthFromSinks]));
    assert_eq!(best(&[entry(LargestSavingFirst, 0)]), (None, vec![LargestSavingFirst]));
    assert_eq!(best(&[entry(LargestSavingFirst, 100)]), (Some(LargestSavingFirst), vec![]));
    // Where growth and depth agree, the rest is skipped.
    let agreed =
        [entry(GrowthFromSinks, 9), entry(DepthFromSinks, 9), entry(LargestSavingFirst, 0)];
    assert_eq!(best(&agreed), (Some(GrowthFromSinks), vec![]));
}

#[test]
fn a_start_that_a_bound_proves_is_the_plan() {
    let best = |problem: &FusionProblem| {
        let question = Question { problem, strict: None, budget: &Budget::unlimited() };
        portfolio::best(&question).unwrap()
    };
    // Two nodes, and one beyond a barrier.
    let found = best(&problem(1, &[(0, &[0]), (0, &[1]), (-1, &[2]), (0, &[2, 3])], 1024));
    assert_eq!(
        (found.strategy, found.is_optimal),
        (Some(crate::plan::Strategy::DepthFromSinks), true)
    );
    assert_eq!(found.cost, Cost { kernels: 2, arrays: 5 });
    // Nothing can be fused.
    let found = best(&problem(1, &[(0, &[0]), (-1, &[1]), (0, &[2])], 1024));
    assert_eq!((found.strategy, found.is_optimal), (None, true));
}

#[test]
fn names_of_strategies_differ() {
    let names: BTreeSet<_> = PORTFOLIO.iter().map(|entry| entry.strategy.name()).collect();
    assert_eq!(names.len(), PORTFOLIO.len());
}

#[test]
fn what_may_be_left_out_comes_last() {
    // Whether the strategies that must run agree is known only after them.
    assert!(PORTFOLIO.is_sorted_by_key(|entry| !entry.must_run));
}

#[test]
fn strict_growth_is_that_of_strict_nodes() {
    let mut random = Random(32);
    let mut n_other = 0;
    for (_, problem) in random_problems(33, 100, 5..30) {
        let strict: Vec<bool> = (0..problem.n_nodes()).map(|_| random.percent(70)).collect();
        let question =
            Question { problem: &problem, strict: Some(&strict), budget: &Budget::unlimited() };
        let entry = &PORTFOLIO[1];
        assert_eq!(entry.strategy, Strategy::StrictGrowthFromSinks);
        assert!((entry.applies)(&question));
        let grown = (entry.start)(&question).unwrap();
        let expected =
            sinks::grow_from_sinks(&problem, |node| strict[node as usize], &Budget::unlimited())
                .unwrap();
        assert_eq!(grown, expected);
        n_other += usize::from(
            grown != sinks::grow_from_sinks(&problem, |_| true, &Budget::unlimited()).unwrap(),
        );
    }
    assert!(n_other > 10);
}

#[test]
fn growth_from_the_sinks_is_not_tried_beyond_its_memory() {
    for (n_nodes, fits) in [(46_000, true), (47_000, false)] {
        let mut arrays = arrays_of_data(1, &[], 8);
        for _ in 0..n_nodes {
            arrays.inputs.push([0]).unwrap();
            arrays.outputs.push([]).unwrap();
        }
        arrays.groups = vec![-1; n_nodes];
        let problem = FusionProblem::new(arrays, &Budget::unlimited()).unwrap();
        let question = Question { problem: &problem, strict: None, budget: &Budget::unlimited() };
        assert_eq!((PORTFOLIO[0].applies)(&question), fits);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_found_is_that_of_the_best_strategy_in_each_component(problem in wild_problems(40, 3)) {
        let question = Question { problem: &problem, strict: None, budget: &Budget::unlimited() };
        let found = portfolio::best_of(&PORTFOLIO, &question).unwrap();
        let components = parts::Components::new(&problem, &parts::parts(&problem, &Budget::unlimited()).unwrap(), &Budget::unlimited()).unwrap();
        let mut best = vec![None; components.len()];
        let mut cheapest = Cost::default();
        for entry in PORTFOLIO {
            let (strategy, must_run) = (entry.strategy, entry.must_run);
            let alone = portfolio::best_of(&[entry], &question).unwrap();
            prop_assert!(!must_run || found.cost <= alone.cost);
            if found.strategy == Some(strategy) {
                cheapest = alone.cost;
            }
            for (component, best) in (0u32..).zip(&mut best) {
                let is_same = components.members(component).iter().all(|&node| {
                    found.partition.block(node) == alone.partition.block(node)
                });
                let cost = cost_of_component(&problem, &alone.partition, &components, component);
                let best = best.get_or_insert((cost, false));
                if must_run && cost < best.0 {
                    *best = (cost, false);
                }
                best.1 |= is_same && cost <= best.0;
            }
        }
        // Each component is that of some strategy, and no strategy that always runs has a cheaper
        // one.
        for (component, best) in (0u32..).zip(best) {
            let cost = cost_of_component(&problem, &found.partition, &components, component);
            prop_assert!(best.is_none_or(|(cheapest, is_some)| is_some && cost <= cheapest));
        }
        prop_assert!(found.strategy.is_none() || cheapest < found.unfused_cost);
        prop_assert_eq!(found.strategy.is_none(), found.cost == found.unfused_cost);
    }

    #[test]
    fn parts_are_doubtful_where_strategies_do_not_cost_the_same(problem in wild_problems(40, 3)) {
        use crate::plan::Strategy::{DepthFromSinks, DepthFromSources, GrowthFromSinks, LargestSavingFirst};
        let question = Question { problem: &problem, strict: None, budget: &Budget::unlimited() };
        // All of them count, and none stops the others.
        let strategies = [GrowthFromSinks, DepthFromSinks, DepthFromSources, LargestSavingFirst];
        let always = |strategy| Entry { applies: |_| true, must_run: true, ..entry(strategy, AMPLE) };
        let found = portfolio::best_of(&strategies.map(always), &question).unwrap();
        let mut candidates = Vec::new();
        for entry in strategies.map(always) {
            if (entry.start)(&question).unwrap().quotient_order(&problem, &Budget::unlimited()).is_ok() {
                candidates.push(portfolio::best_of(&[entry], &question).unwrap());
            }
        }
        // Strategies that fuse nothing count only after the first that fuses something.
        let merging = candidates.iter().position(|alone| alone.strategy.is_some());
        let counting = &candidates[merging.unwrap_or(candidates.len())..];
        let parts = parts::parts(&problem, &Budget::unlimited()).unwrap();
        let mut expected = vec![false; problem.n_nodes()];
        for part in parts.names().filter(|&part| problem.group(part).is_some()) {
            let costs = counting.iter().map(|alone| {
                let blocks = alone.partition.names().filter(|&name| parts.block(name) == part);
                let members = |name| alone.partition.members(name).iter().copied().collect();
                naive_cost(&problem, &blocks.map(members).collect::<Vec<BTreeSet<u32>>>())
            });
            let is_doubtful = costs.collect::<BTreeSet<_>>().len() > 1;
            parts.members(part).iter().for_each(|&node| expected[node as usize] = is_doubtful);
        }
        let is_any = expected.contains(&true);
        prop_assert_eq!(found.doubtful, if is_any { expected } else { Vec::new() });
    }
}
