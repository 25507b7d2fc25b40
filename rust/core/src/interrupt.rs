//! Ending long work before it is done.
//!
//! Whoever starts the work says with it how to ask whether it may go on ([`interruptible`]). Loops
//! that can take long on a large input count their steps here (`check`), which costs a
//! subtraction; after some tens of thousands of steps the question is asked. Work that is not
//! interruptible never asks.
//!
//! An interruption changes no result: there is none then.
//!
//! # Rejected
//! Handing the question down as an argument: nearly every function of the crate would take it, for
//! the sake of callers that have a user in front of them.
//!
//! A second thread that sets a flag: starting one takes longer than planning a small graph.
//!
//! # Example
//! ```
//! use std::rc::Rc;
//! use pytensor_fuse_core::{Error, Graph, interrupt::interruptible, toposort::toposort};
//!
//! // 1 <- 2 <- ... and 0 alone
//! let nodes: Vec<u32> = (1..100_000).collect();
//! let graph = Graph::new(100_000, &nodes[1..], &nodes[..nodes.len() - 1])?;
//! let stopped = interruptible(Rc::new(|| false), || toposort(&graph, None));
//! assert_eq!(stopped, Err(Error::Interrupted));
//! assert_eq!(interruptible(Rc::new(|| true), || toposort(&graph, None))?.len(), 100_000);
//! # Ok::<(), Error>(())
//! ```

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::error::{Error, Result};

/// Whether the work may go on.
pub type MayGoOn = Rc<dyn Fn() -> bool>;

/// Steps between two questions: of some nanoseconds each, a fraction of a millisecond.
const INTERVAL: u64 = 1 << 16;

/// More steps than any work takes.
const NEVER: u64 = u64::MAX;

thread_local! {
    /// Steps that are left until the question is asked. None are left once the answer was no, so
    /// that all that is under way ends soon.
    static LEFT: Cell<u64> = const { Cell::new(NEVER) };
    static QUESTION: RefCell<Option<MayGoOn>> = const { RefCell::new(None) };
}

/// Runs `work`, which ends early with [`Error::Interrupted`] once `may_go_on` says no.
///
/// Only what `work` does on this thread asks. What `may_go_on` itself calls of this crate does not,
/// unless by a call of this function, which may be nested.
///
/// # Errors
/// Those of `work`.
pub fn interruptible<T>(may_go_on: MayGoOn, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let _outer = Scope::enter(Some(may_go_on), INTERVAL);
    let result = work();
    // Where a loop ended early and no one has asked since, the result is none.
    if LEFT.get() == 0 { Err(Error::Interrupted) } else { result }
}

/// Notes that about `steps` steps were taken since the last call, of some nanoseconds each.
///
/// # Errors
/// [`Error::Interrupted`] if the work is to end; then each time.
#[inline]
pub(crate) fn check(steps: usize) -> Result<()> {
    if is_requested(steps) { Err(Error::Interrupted) } else { Ok(()) }
}

/// As [`check`], for functions without a [`Result`]: if true, they are to return something soon,
/// which no one will use.
#[inline]
pub(crate) fn is_requested(steps: usize) -> bool {
    let left = LEFT.get();
    if left > steps as u64 {
        LEFT.set(left - steps as u64);
        return false;
    }
    ask()
}

#[cold]
fn ask() -> bool {
    let Some(may_go_on) = QUESTION.with_borrow(Clone::clone) else {
        LEFT.set(NEVER);
        return false;
    };
    let goes_on = {
        let _inner = Scope::enter(None, NEVER);
        may_go_on()
    };
    if goes_on {
        LEFT.set(INTERVAL);
    } else {
        LEFT.set(0);
        // Asked once: no is final.
        QUESTION.with_borrow_mut(|question| *question = Some(Rc::new(|| false)));
    }
    !goes_on
}

/// What holds on this thread until it is dropped; then what held before.
struct Scope {
    question: Option<MayGoOn>,
    left: u64,
}

impl Scope {
    fn enter(question: Option<MayGoOn>, left: u64) -> Self {
        Self { question: QUESTION.replace(question), left: LEFT.replace(left) }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        QUESTION.set(self.question.take());
        LEFT.set(self.left);
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

    fn run(n_steps: usize) -> Result<usize> {
        (0..n_steps).try_for_each(|_| check(1)).map(|()| n_steps)
    }

    /// A question that is answered yes `n` times, and how often it was asked.
    fn yes(n: usize) -> (MayGoOn, Rc<Cell<usize>>) {
        let asked = Rc::new(Cell::new(0));
        let count = Rc::clone(&asked);
        let question = move || {
            count.set(count.get() + 1);
            count.get() <= n
        };
        (Rc::new(question), asked)
    }

    #[test]
    fn small_work_never_asks() {
        let (question, asked) = yes(0);
        assert_eq!(interruptible(question, || run(1000)), Ok(1000));
        assert_eq!(asked.get(), 0);
    }

    #[test]
    fn work_ends_at_the_first_no_and_asks_no_more() {
        let (question, asked) = yes(3);
        let work = || {
            assert_eq!(run(10 * INTERVAL as usize), Err(Error::Interrupted));
            assert!(is_requested(0));
            run(1)
        };
        assert_eq!(interruptible(question, work), Err(Error::Interrupted));
        assert_eq!(asked.get(), 4);
        assert_eq!(run(10 * INTERVAL as usize), Ok(10 * INTERVAL as usize));
    }

    #[test]
    fn a_result_after_a_no_is_none() {
        let work = || {
            let _ended_early = is_requested(usize::MAX);
            Ok(1)
        };
        assert_eq!(interruptible(yes(0).0, work), Err(Error::Interrupted));
    }

    #[test]
    fn work_within_work_and_within_the_question() {
        let (outer, asked) = yes(usize::MAX);
        let question: MayGoOn = Rc::new(move || {
            assert_eq!(run(10 * INTERVAL as usize), Ok(10 * INTERVAL as usize));
            let inner = interruptible(yes(0).0, || run(INTERVAL as usize));
            assert_eq!(inner, Err(Error::Interrupted));
            outer()
        });
        let n_steps = 3 * INTERVAL as usize;
        assert_eq!(interruptible(question, || run(n_steps)), Ok(n_steps));
        assert_eq!(asked.get(), 3);
    }

    /// A path of `n` nodes, against the order of their ids.
    fn path(n: u32) -> Graph {
        let nodes: Vec<u32> = (0..n).collect();
        Graph::new(n as usize, &nodes[1..], &nodes[..nodes.len() - 1]).unwrap()
    }

    fn ends<T: std::fmt::Debug + PartialEq>(work: impl FnOnce() -> Result<T>) {
        assert_eq!(interruptible(Rc::new(|| false), work), Err(Error::Interrupted));
    }

    #[test]
    fn passes_over_a_graph_end() {
        let graph = path(INTERVAL as u32);
        ends(|| toposort(&graph, None));
        ends(|| is_convex(&graph, &[INTERVAL as u32 - 1]));
        ends(|| convex_subgraphs(&graph, &vec![0; graph.n_nodes()]));
        ends(|| AncestorSets::new(&path(5000), None));
    }

    #[test]
    fn contractions_of_ancestor_sets_end_before_anything_has_changed() {
        let nodes: Vec<u32> = (0..5000).collect();
        let sets = AncestorSets::new(&path(5000), None).unwrap();
        ends(|| sets.can_contract(&nodes));
        let mut contracted = sets.clone();
        ends(|| contracted.contract(&nodes));
        assert_eq!(contracted, sets);
    }

    #[cfg(feature = "layout")]
    #[test]
    fn layouts_end() {
        use crate::layout::{Gaps, layered_layout};
        let sizes = vec![1.0; 10_000];
        let targets: Vec<u32> = (1..10_000).collect();
        let gaps = Gaps { columns: 1.0, nodes: 1.0, rows: 1.0 };
        ends(|| layered_layout((&sizes, &sizes), (&vec![0; 9999], &targets), gaps, 0));
    }

    /// Nodes of two groups in turn, each of which reads two of the five variables before its own.
    fn problem(n_nodes: u32) -> FusionProblem {
        let (mut inputs, mut outputs) = (Rows::empty(), Rows::empty());
        for node in 0..n_nodes {
            inputs.push([node + node % 4, node + 4 - node % 3]);
            outputs.push([node + 5]);
        }
        let n_variables = n_nodes as usize + 5;
        FusionProblem::new(ProblemArrays {
            n_variables,
            inputs,
            outputs,
            groups: (0..n_nodes as i32).map(|node| node % 7 % 2).collect(),
            links: vec![-1; n_variables],
            constants: vec![false; n_variables],
            results: vec![true; n_variables],
            weights: None,
            orderings: Vec::new(),
            max_operands: 4,
        })
        .unwrap()
    }

    /// Wherever planning asks, it can be ended, and asks no more then.
    #[test]
    fn planning_ends_at_every_question() {
        for (n_nodes, n_tries) in [(8000, 30), (50_000, 3)] {
            let problem = problem(n_nodes);
            let (question, asked) = yes(usize::MAX);
            let whole = interruptible(question, || plan(&problem, None)).unwrap();
            assert_eq!(whole, plan(&problem, None).unwrap());
            let n_questions = asked.get();
            assert!(n_questions > n_tries);
            for n in (0..n_questions).step_by(1 + n_questions / n_tries) {
                let (question, asked) = yes(n);
                let ended = interruptible(question, || plan(&problem, None));
                assert_eq!(ended, Err(Error::Interrupted));
                assert_eq!(asked.get(), n + 1);
            }
        }
    }
}
