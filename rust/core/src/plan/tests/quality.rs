//! The quality of plans and bounds on problems that stay the same.

use super::problems::random::{Random, SHAPES, random_arrays};
use super::steps::moved;
use crate::budget::Budget;
use crate::plan::problem::cost;
use crate::plan::search::portfolio::{Entry, PORTFOLIO, Question, best_of};
use crate::plan::{Cost, FusionProblem, lower_bound, plan, plan_optimally, prove};

/// Costs of plans and bounds on problems that stay the same, and the effort of the search.
#[derive(Debug, Default, PartialEq, Eq)]
struct Quality {
    /// Kernels and arrays of all fast plans.
    fast: (u64, u64),
    /// The same after moves, without a search.
    moved: (u64, u64),
    /// The bounds.
    bounds: (u64, u64),
    /// Plans with a search of little effort, and the bounds that it finds.
    some: (u64, u64),
    some_bounds: (u64, u64),
    /// The best plans that a search of more effort finds.
    best: (u64, u64),
    /// The effort of that search.
    effort: u64,
    /// Kernels and arrays of each strategy alone, and of its start without improvement.
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

/// Plans must not become worse unnoticed, nor bounds weaker, nor searches longer.
///
/// The numbers are the planner's results when the test was written: better ones may replace them.
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
