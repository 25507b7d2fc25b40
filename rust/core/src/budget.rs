//! Budgets of work: a limit of effort, and interruption.
//!
//! The caller gives the work a [`Budget`], which is passed on to every function below. It counts two
//! things:
//!
//! - *Steps* of some nanoseconds each ([`Budget::check`]). Every loop that can take long on a large
//!   input counts its steps, which costs a subtraction; after some tens of thousands, a callback decides
//!   whether the work may go on. If not, the work ends with [`Error::Interrupted`] and has no result.
//! - *Effort* ([`Budget::spend`]) of work that has a result whenever it stops, such as a search for a
//!   better plan. The result depends on the amount of effort, never on the time.
//!
//! A part of the work can have its own effort ([`Budget::with_effort`]); it is interrupted with the
//! whole.
//!
//! The depth of recursions is not counted: none grows with the input.
//!
//! # Rejected
//! - A callback in a thread-local variable: signatures do not show that a function can end early, and
//!   loops in functions without a [`Result`] went on with meaningless data after an interruption.
//! - A second thread that sets a flag: starting it takes longer than planning a small graph.
//!
//! # Example
//! ```
//! use std::rc::Rc;
//! use pytensor_fuse_core::{Budget, Error, Graph, toposort::toposort};
//!
//! // 1 <- 2 <- ... and 0 alone
//! let nodes: Vec<u32> = (1..100_000).collect();
//! let (sources, targets) = (&nodes[1..], &nodes[..nodes.len() - 1]);
//! let graph = Graph::new(100_000, sources, targets, &Budget::unlimited())?;
//! let stopped = toposort(&graph, None, &Budget::asking(Rc::new(|| false)));
//! assert_eq!(stopped, Err(Error::Interrupted));
//! assert_eq!(toposort(&graph, None, &Budget::asking(Rc::new(|| true)))?.len(), 100_000);
//! # Ok::<(), Error>(())
//! ```

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use crate::error::{Error, Result};

/// Whether the work may go on.
pub type MayGoOn = Rc<dyn Fn() -> bool>;

/// Steps between two calls of the callback: a fraction of a millisecond.
const INTERVAL: u64 = 1 << 16;

/// More steps than any work takes.
const NEVER: u64 = u64::MAX;

/// See the module.
#[derive(Debug)]
pub struct Budget {
    interruption: Rc<Interruption>,
    /// The remaining units.
    effort: Cell<u64>,
}

/// The part that a budget shares with the budgets derived from it.
struct Interruption {
    /// Steps until the next call of the callback. Zero once the answer was no, so that all work under
    /// the budget ends.
    left: Cell<u64>,
    may_go_on: Option<MayGoOn>,
    is_over: Cell<bool>,
}

impl Budget {
    /// A budget without limits.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::new(NEVER, None)
    }

    /// A budget without limits of effort, interrupted once `may_go_on` returns false.
    #[must_use]
    pub fn asking(may_go_on: MayGoOn) -> Self {
        Self::new(INTERVAL, Some(may_go_on))
    }

    fn new(left: u64, may_go_on: Option<MayGoOn>) -> Self {
        let (left, is_over) = (Cell::new(left), Cell::new(false));
        let interruption = Rc::new(Interruption { left, may_go_on, is_over });
        Self { interruption, effort: Cell::new(u64::MAX) }
    }

    /// A budget for a part of the work, with its own effort, interrupted with the whole.
    #[must_use]
    pub fn with_effort(&self, effort: u64) -> Self {
        Self { interruption: Rc::clone(&self.interruption), effort: Cell::new(effort) }
    }

    /// Counts about `steps` steps of some nanoseconds each.
    ///
    /// # Errors
    /// [`Error::Interrupted`] once the work is interrupted, and at each later call.
    #[inline]
    pub fn check(&self, steps: usize) -> Result<()> {
        let left = self.interruption.left.get();
        if left > steps as u64 {
            self.interruption.left.set(left - steps as u64);
            return Ok(());
        }
        self.interruption.ask()
    }

    /// Spends `units` of the effort, or the rest of it.
    #[inline]
    pub fn spend(&self, units: u64) {
        self.effort.set(self.effort.get().saturating_sub(units));
    }

    /// Spends `units` of the effort, and counts as many steps.
    ///
    /// # Errors
    /// Those of [`Budget::check`]; spent effort is not an error.
    #[inline]
    pub fn work(&self, units: usize) -> Result<()> {
        self.spend(units as u64);
        self.check(units)
    }

    /// The effort that is left.
    #[inline]
    #[must_use]
    pub fn effort(&self) -> u64 {
        self.effort.get()
    }

    /// Whether no effort is left.
    #[inline]
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.effort.get() == 0
    }
}

impl Interruption {
    #[cold]
    fn ask(&self) -> Result<()> {
        let Some(may_go_on) = &self.may_go_on else {
            self.left.set(NEVER);
            return Ok(());
        };
        if !self.is_over.get() && may_go_on() {
            self.left.set(INTERVAL);
            return Ok(());
        }
        self.is_over.set(true);
        self.left.set(0);
        Err(Error::Interrupted)
    }
}

impl fmt::Debug for Interruption {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { left, may_go_on, is_over } = self;
        let mut shown = formatter.debug_struct("Interruption");
        shown.field("left", left).field("asks", &may_go_on.is_some());
        shown.field("is_over", is_over).finish()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::ancestors::AncestorSets;
    use crate::convex::{convex_subgraphs, is_convex};
    use crate::plan::{FusionProblem, ProblemArrays, plan};
    use crate::toposort::toposort;
    use crate::{Graph, Rows};

    fn run(n_steps: usize, budget: &Budget) -> Result<usize> {
        (0..n_steps).try_for_each(|_| budget.check(1)).map(|()| n_steps)
    }

    /// A budget whose callback returns true `n` times, and the number of calls of the callback.
    fn yes(n: usize) -> (Budget, Rc<Cell<usize>>) {
        let asked = Rc::new(Cell::new(0));
        let count = Rc::clone(&asked);
        let question = move || {
            count.set(count.get() + 1);
            count.get() <= n
        };
        (Budget::asking(Rc::new(question)), asked)
    }

    const MANY: usize = 10 * INTERVAL as usize;

    #[test]
    fn small_work_never_asks() {
        let (budget, asked) = yes(0);
        assert_eq!(run(1000, &budget), Ok(1000));
        assert_eq!(asked.get(), 0);
    }

    #[test]
    fn work_ends_at_the_first_no_and_asks_no_more() {
        let (budget, asked) = yes(3);
        let part = budget.with_effort(5);
        assert_eq!(run(MANY, &budget), Err(Error::Interrupted));
        assert_eq!(asked.get(), 4);
        for budget in [&budget, &part] {
            assert_eq!(budget.check(0), Err(Error::Interrupted));
            assert_eq!(run(1, budget), Err(Error::Interrupted));
        }
        assert_eq!(asked.get(), 4);
    }

    #[test]
    fn the_answer_may_come_of_other_work() {
        let (outer, asked) = yes(usize::MAX);
        let question: MayGoOn = Rc::new(move || {
            assert_eq!(run(MANY, &Budget::unlimited()), Ok(MANY));
            assert_eq!(run(MANY, &yes(0).0), Err(Error::Interrupted));
            outer.check(INTERVAL as usize).is_ok()
        });
        let n_steps = 3 * INTERVAL as usize;
        assert_eq!(run(n_steps, &Budget::asking(question)), Ok(n_steps));
        assert_eq!(asked.get(), 3);
    }

    #[test]
    fn effort_is_that_of_each_part_and_steps_are_those_of_the_whole() {
        let (budget, asked) = yes(usize::MAX);
        let part = budget.with_effort(10);
        assert_eq!((budget.effort(), part.effort()), (u64::MAX, 10));
        part.spend(4);
        part.work(5).unwrap();
        assert!(part.effort() == 1 && !part.is_spent());
        // Spending more effort than is left ends the effort, and is not an error.
        part.work(INTERVAL as usize / 2).unwrap();
        assert!(part.is_spent() && !budget.is_spent());
        assert_eq!(asked.get(), 0);
        budget.check(INTERVAL as usize / 2).unwrap();
        assert_eq!(asked.get(), 1);
    }

    /// A path of `n` nodes, in descending order of their ids.
    fn path(n: u32) -> Graph {
        let nodes: Vec<u32> = (0..n).collect();
        Graph::new(n as usize, &nodes[1..], &nodes[..nodes.len() - 1], &Budget::unlimited())
            .unwrap()
    }

    fn ends<T: fmt::Debug + PartialEq>(work: impl FnOnce(&Budget) -> Result<T>) {
        assert_eq!(work(&yes(0).0), Err(Error::Interrupted));
    }

    #[test]
    fn passes_over_a_graph_end() {
        let graph = path(INTERVAL as u32);
        ends(|budget| toposort(&graph, None, budget));
        ends(|budget| is_convex(&graph, &[INTERVAL as u32 - 1], budget));
        ends(|budget| convex_subgraphs(&graph, &vec![0; graph.n_nodes()], budget));
        ends(|budget| AncestorSets::new(&path(5000), None, budget));
    }

    #[test]
    fn contractions_of_ancestor_sets_end_before_anything_has_changed() {
        let nodes: Vec<u32> = (0..5000).collect();
        let sets = AncestorSets::new(&path(5000), None, &Budget::unlimited()).unwrap();
        ends(|budget| sets.can_contract(&nodes, budget));
        let mut contracted = sets.clone();
        ends(|budget| contracted.contract(&nodes, budget));
        assert_eq!(contracted, sets);
    }

    /// Nodes of two groups. Each node reads two of the five variables before its own.
    fn problem(n_nodes: u32) -> FusionProblem {
        let (mut inputs, mut outputs) = (Rows::empty(), Rows::empty());
        for node in 0..n_nodes {
            inputs.push([node + node % 4, node + 4 - node % 3]).unwrap();
            outputs.push([node + 5]).unwrap();
        }
        let n_variables = n_nodes as usize + 5;
        FusionProblem::new(
            ProblemArrays {
                n_variables,
                inputs,
                outputs,
                groups: (0..n_nodes as i32).map(|node| node % 7 % 2).collect(),
                links: vec![-1; n_variables],
                constants: vec![false; n_variables],
                results: vec![true; n_variables],
                orderings: Vec::new(),
                max_operands: 4,
            },
            &Budget::unlimited(),
        )
        .unwrap()
    }

    /// Planning can be interrupted at each call of the callback, and makes no further calls.
    #[test]
    fn planning_ends_at_every_question() {
        for (n_nodes, n_tries) in [(8000, 30), (50_000, 3)] {
            let problem = problem(n_nodes);
            let (budget, asked) = yes(usize::MAX);
            let whole = plan(&problem, None, &budget).unwrap();
            assert_eq!(whole, plan(&problem, None, &Budget::unlimited()).unwrap());
            let n_questions = asked.get();
            assert!(n_questions > n_tries);
            for n in (0..n_questions).step_by(1 + n_questions / n_tries) {
                let (budget, asked) = yes(n);
                let ended = plan(&problem, None, &budget);
                assert_eq!(ended, Err(Error::Interrupted));
                assert_eq!(asked.get(), n + 1);
            }
        }
    }
}
