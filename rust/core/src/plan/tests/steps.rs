//! Single steps of the planner, for the tests.

use super::judges::linear::Judge;
use crate::budget::Budget;
use crate::plan::problem::cost::Interfaces;
use crate::plan::search::portfolio::{Entry, PORTFOLIO, Question};
use crate::plan::search::{moves, sinks};
use crate::plan::{Cost, FusionProblem, Partition, Strategy};

/// The partition after moves, without a limit of effort. Moves that save nothing are initially
/// tried everywhere or nowhere.
pub(in crate::plan) fn moved(
    problem: &FusionProblem,
    partition: &Partition,
    ties: bool,
) -> Partition {
    let order = partition.quotient_order(problem, &Budget::unlimited()).unwrap();
    let doubtful = vec![ties; problem.n_nodes()];
    let moved = moves::move_nodes(
        problem,
        partition,
        &order,
        &doubtful,
        &Budget::unlimited().with_effort(u64::MAX),
    )
    .unwrap();
    moved.unwrap_or_else(|| partition.clone())
}

/// The starting partition of each strategy that applies.
pub(in crate::plan) fn starts(
    problem: &FusionProblem,
) -> impl Iterator<Item = (Strategy, Partition)> {
    PORTFOLIO.iter().filter_map(move |entry| {
        let question = Question { problem, strict: None, budget: &Budget::unlimited() };
        (entry.applies)(&question).then(|| (entry.strategy, (entry.start)(&question).unwrap()))
    })
}

/// The entry of a strategy, with another effort.
pub(in crate::plan) fn entry(strategy: Strategy, effort: u64) -> Entry {
    let known = PORTFOLIO.into_iter().find(|entry| entry.strategy == strategy).unwrap();
    Entry { effort, ..known }
}

/// The cost of PyTensor's own plan, which drops clusters with too many operands. None if there are
/// orderings, which may break it.
pub(in crate::plan) fn stock(problem: &FusionProblem, judge: &Judge<'_>) -> Option<Cost> {
    if problem.has_orderings() {
        return None;
    }
    let grown = sinks::grow_from_sinks(problem, |_| true, &Budget::unlimited()).unwrap();
    let budget = Budget::unlimited();
    let mut interfaces = Interfaces::new(problem, &budget);
    let mut names = grown.blocks().to_vec();
    for name in grown.names().filter(|&name| grown.members(name).len() > 1) {
        if interfaces.of(grown.members(name)).unwrap().operands() > problem.max_operands() {
            grown.members(name).iter().for_each(|&node| names[node as usize] = node);
        }
    }
    Some(judge.cost(&Partition::from_names(names)))
}
