//! The best plan of a component, by search.
//!
//! # Problem
//! Of all plans of a component, one of the cheapest, and to know that it is.
//!
//! # Approach
//! A plan is acyclic if and only if its kernels can be put in an order in which all that is in the
//! first k of them, for every k, has all that comes before any of it: an order ideal. So the best plan
//! for what an ideal leaves is one next kernel, of nodes that are ready, and the best plan for what is
//! left then. That is a shortest path between ideals, found by A* with the bounds of
//! [`super::bounds`]; those that need a search of their own are asked only when a state's turn comes.
//!
//! - *Next kernels* are the connected sets of ready nodes with all that comes before them. Each is
//!   met once: a set grows by one neighbor, with what that waits for, or never takes it. What no kernel
//!   that grows from a set can do without counts at once, so that most sets need not be grown.
//! - *Independent kernels* have a canonical order. What is left falls into connected pieces; where a
//!   choice of them waits for no others, a plan can begin with the kernels of that choice, and the
//!   smallest choice does. A piece that waits for none and can be one kernel is one: a plan that
//!   has it as several is not cheaper.
//! - *The incumbent* is a plan that is known: what cannot be cheaper is not followed.
//!
//! The search ends when nothing is left that could be cheaper than the incumbent, or when the effort
//! is spent, counted in words of sets and states and not in seconds, so that the same input has the same
//! output. In the latter case the least estimate of what was left is a bound.
//!
//! # Rejected
//! Branch and bound over the pairs of neighbors, together or not: the same kernels are met along many
//! ways, and a bound for what is left has no set of nodes to stand on.
//!
//! # Source
//! P. Hart, N. Nilsson, B. Raphael, "A formal basis for the heuristic determination of minimum cost
//! paths", IEEE Transactions on Systems Science and Cybernetics 4 (1968). M. Kristensen et al., "Fusion
//! of parallel array operations", PACT 2016: the problem as a weighted partition, and branch and bound
//! for it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::bounds::{Joint, Levels};
use super::component::{Component, KERNEL};
use super::masks::Mask;
use crate::budget::Budget;
use crate::error::Result;
use crate::plan::problem::NONE;

/// Steps of the joint bound for each state: it helps most where it is found soon.
const PATIENCE: u64 = 32;

/// What a state takes of the effort: about as long as so many sets.
const STATE: u64 = 8;

/// What came of a search.
pub(super) struct Found<const W: usize> {
    /// The kernels of a plan that is cheaper than the incumbent, if there is one.
    pub(super) kernels: Option<Vec<Mask<W>>>,
    /// No plan is cheaper than this.
    pub(super) bound: u64,
}

/// Looks for plans of `component` that cost less than `incumbent`.
///
/// # Errors
/// [`crate::Error::Interrupted`].
pub(super) fn search<const W: usize>(
    component: &Component<W>,
    levels: &Levels<W>,
    joint: &mut Joint<'_, W>,
    incumbent: u64,
    budget: &Budget,
) -> Result<Found<W>> {
    let mut search = Search {
        component,
        levels,
        best: incumbent,
        states: vec![(component.all, 0, NONE)],
        open: BinaryHeap::new(),
        cheapest: FxHashMap::default(),
        goal: None,
        next: Vec::new(),
        budget,
    };
    let estimate = search.estimate(component.all);
    if estimate >= incumbent {
        return Ok(Found { kernels: None, bound: incumbent });
    }
    search.open.push((Reverse(estimate), 0, Reverse(0), false));
    let mut bound = None;
    while let Some((Reverse(estimate), n_done, Reverse(number), is_checked)) = search.open.pop() {
        if estimate >= search.best {
            break;
        }
        let (rest, so_far, _) = search.states[number as usize];
        if search.cheapest.get(&rest).is_some_and(|&cheapest| cheapest < so_far) {
            continue;
        }
        budget.check(256 * component.step() as usize)?;
        if !is_checked {
            let n_kernels = joint.kernels(rest, PATIENCE, budget)?;
            let whole = so_far + KERNEL * n_kernels + levels.arrays(rest);
            if whole > estimate {
                if whole < search.best {
                    search.open.push((Reverse(whole), n_done, Reverse(number), true));
                }
                continue;
            }
        }
        search.expand(rest, so_far, number, estimate)?;
        if budget.is_spent() {
            let open = search.open.peek().map_or(u64::MAX, |&(Reverse(least), ..)| least);
            bound = Some(estimate.min(open).min(search.best));
            break;
        }
    }
    let bound = bound.unwrap_or(search.best);
    Ok(Found { kernels: search.goal.map(|goal| search.kernels_to(goal)), bound })
}

/// An estimate of the whole, nodes done, the number of the state, and whether the joint bound was
/// asked.
type Open = (Reverse<u64>, usize, Reverse<u32>, bool);

struct Search<'a, const W: usize> {
    component: &'a Component<W>,
    levels: &'a Levels<W>,
    /// What the best plan that is known costs.
    best: u64,
    /// What is left, what was spent, and the state before.
    states: Vec<(Mask<W>, u64, u32)>,
    open: BinaryHeap<Open>,
    /// The least that was spent for each set that may be left.
    cheapest: FxHashMap<Mask<W>, u64>,
    /// The state of the best plan, if the search found it.
    goal: Option<u32>,
    /// Next kernels of the state that is being expanded, with what they cost.
    next: Vec<(Mask<W>, u64)>,
    budget: &'a Budget,
}

impl<const W: usize> Search<'_, W> {
    /// What plans for `rest` cost at least.
    fn estimate(&self, rest: Mask<W>) -> u64 {
        KERNEL * self.levels.kernels(rest) + self.levels.arrays(rest)
    }

    fn expand(&mut self, rest: Mask<W>, so_far: u64, number: u32, estimate: u64) -> Result<()> {
        let pieces = self.component.pieces(rest);
        let sources = self.component.sources(&pieces, rest);
        self.next.clear();
        if let [source] = sources[..]
            && let Some(cost) = self.as_one_kernel(pieces[source], rest)
        {
            self.next.push((pieces[source], cost));
        } else {
            for source in sources {
                self.next_kernels(pieces[source], rest, so_far)?;
            }
        }
        for (kernel, cost) in std::mem::take(&mut self.next) {
            let (left, spent) = (rest.without(kernel), so_far + cost);
            let whole = estimate.max(spent + self.estimate(left));
            if whole >= self.best {
                continue;
            }
            if self.cheapest.get(&left).is_some_and(|&cheapest| cheapest <= spent) {
                continue;
            }
            self.cheapest.insert(left, spent);
            let next = self.states.len() as u32;
            self.states.push((left, spent, number));
            self.budget.spend(STATE * self.component.step());
            if left.is_empty() {
                self.best = spent;
                self.goal = Some(next);
            } else {
                let n_done = self.component.nodes.len() - left.len();
                self.open.push((Reverse(whole), n_done, Reverse(next), false));
            }
        }
        Ok(())
    }

    /// What the piece costs as one kernel, if it can be one now.
    fn as_one_kernel(&self, piece: Mask<W>, rest: Mask<W>) -> Option<u64> {
        let operands = self.component.operands(piece, piece);
        let can_be =
            self.component.allows(piece, operands) && self.component.ready(piece, rest) == piece;
        can_be.then_some(KERNEL + operands.arrays)
    }

    /// Adds the next kernels in a piece of what is left to `next`.
    fn next_kernels(&mut self, piece: Mask<W>, rest: Mask<W>, so_far: u64) -> Result<()> {
        let ready = self.component.ready(piece, rest);
        let mut growth = Growth { search: self, ready, rest, so_far };
        // Each kernel has a node that waits for none; the first of these starts it.
        let mut excluded = Mask::EMPTY;
        for start in ready.iter() {
            let component = growth.search.component;
            if component.before[start].meets(rest) {
                continue;
            }
            let without = growth.with_what_waits(excluded, component.excluded[start]);
            growth.grow(Mask::of(start), component.adjacent[start], without)?;
            excluded.insert(start);
            excluded |= component.after[start] & ready;
        }
        Ok(())
    }

    fn kernels_to(&self, goal: u32) -> Vec<Mask<W>> {
        let mut kernels = Vec::new();
        let (mut left, _, mut number) = self.states[goal as usize];
        while let Some(&(more, _, parent)) = self.states.get(number as usize) {
            kernels.push(more.without(left));
            (left, number) = (more, parent);
        }
        kernels.reverse();
        kernels
    }
}

/// Kernels that grow from a set.
struct Growth<'a, 'b, const W: usize> {
    search: &'a mut Search<'b, W>,
    /// What they may have.
    ready: Mask<W>,
    rest: Mask<W>,
    so_far: u64,
}

impl<const W: usize> Growth<'_, '_, W> {
    /// Adds the next kernels that have all of `kernel` and none of `excluded`. `near` has the
    /// neighbors of `kernel`; it has all that it waits for, and `excluded` all that waits for it.
    fn grow(&mut self, kernel: Mask<W>, near: Mask<W>, excluded: Mask<W>) -> Result<()> {
        // On a stack of its own: a kernel grows node by node, by as many as the component has.
        let mut pending = vec![(kernel, near, excluded)];
        while let Some((kernel, near, excluded)) = pending.pop() {
            let budget = self.search.budget;
            if budget.is_spent() {
                return Ok(());
            }
            let component = self.search.component;
            budget.spend(component.step());
            budget.check(64 * component.step() as usize)?;
            let most = self.ready.without(excluded);
            let operands = component.operands(kernel, most);
            if !component.allows(kernel, operands) {
                continue;
            }
            let (least, left) = (self.rest.without(most), self.rest.without(kernel));
            let levels = self.search.levels;
            let n_kernels = 1 + levels.kernels(least);
            let n_arrays = operands.arrays + levels.arrays_of(least, left);
            if self.so_far + KERNEL * n_kernels + n_arrays >= self.search.best {
                continue;
            }
            let Some(next) = (near & most).without(kernel).first() else {
                self.add(kernel);
                continue;
            };
            // Those without the neighbor come after those with it.
            pending.push((kernel, near, self.with_what_waits(excluded, Mask::of(next))));
            let waits_for = (component.before[next] & self.rest) | Mask::of(next);
            let is_one = !waits_for.iter().any(|i| component.excluded[i].meets(waits_for));
            if is_one && !waits_for.meets(excluded) {
                let near = waits_for.iter().fold(near, |near, i| near | component.adjacent[i]);
                let never =
                    waits_for.iter().fold(Mask::EMPTY, |mask, i| mask | component.excluded[i]);
                pending.push((kernel | waits_for, near, self.with_what_waits(excluded, never)));
            }
        }
        Ok(())
    }

    /// `excluded` with those of `more` that are ready and all that waits for these.
    fn with_what_waits(&self, mut excluded: Mask<W>, more: Mask<W>) -> Mask<W> {
        for i in (more & self.ready).without(excluded).iter() {
            excluded.insert(i);
            excluded |= self.search.component.after[i] & self.ready;
        }
        excluded
    }

    fn add(&mut self, kernel: Mask<W>) {
        let component = self.search.component;
        let operands = component.operands(kernel, kernel);
        let is_legal = component.allows(kernel, operands)
            && (!component.has_orderings || component.is_connected(kernel));
        if is_legal {
            self.search.next.push((kernel, KERNEL + operands.arrays));
        }
    }
}
