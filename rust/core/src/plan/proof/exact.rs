//! Exact search for the best plan of a component.
//!
//! # Problem
//! Find one of the cheapest plans of a component, and prove that no plan is cheaper.
//!
//! # Approach
//! A plan is acyclic if and only if its kernels can be ordered such that, for every k, the nodes of
//! the first k kernels contain all nodes that come before any of them: they are an order ideal. So
//! the best plan for the remainder of an ideal is one next kernel, of ready nodes, and the best
//! plan for what remains then. This is a shortest path between ideals, found by A* with the bounds
//! of [`super::bounds`]; bounds that need a search of their own are computed only when a state's
//! turn comes.
//!
//! - *Next kernels* are the connected sets of ready nodes with all that comes before them. Each is
//!   enumerated once: a set takes one neighbor, with all that it waits for, or excludes it for
//!   good. Costs that no kernel grown from a set can avoid count at once, so that most sets need
//!   not be grown.
//! - *Independent kernels* have a canonical order. The remainder splits into connected pieces;
//!   where a choice of pieces waits for no others, a plan can begin with the kernels of that
//!   choice, and the smallest choice is enough. A piece that waits for no other and can be one
//!   kernel is one: a plan that splits it is not cheaper.
//! - *The incumbent* is a known plan: states that cannot be cheaper are not expanded.
//!
//! The search ends when no state is left that could be cheaper than the incumbent, or when the
//! effort is spent. Effort is counted in words of sets and states rather than in seconds, so that
//! the same input has the same output. When the effort is spent, the least estimate of the
//! remaining states is a bound.
//!
//! # Rejected
//! Branch and bound over the pairs of neighbors, together or not: it meets the same kernels in many
//! ways, and there is no set of remaining nodes to compute a bound for.
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

/// Steps of the joint bound for each state: the bound helps most where few steps find it.
const PATIENCE: u64 = 32;

/// Effort of a state: it takes about as long as this many sets.
const STATE: u64 = 8;

/// The result of a search.
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

/// An estimate of the total, the number of nodes done, the number of the state, and whether the
/// joint bound has been computed.
type Open = (Reverse<u64>, usize, Reverse<u32>, bool);

struct Search<'a, const W: usize> {
    component: &'a Component<W>,
    levels: &'a Levels<W>,
    /// The cost of the best known plan.
    best: u64,
    /// The remaining nodes, the cost so far, and the state before.
    states: Vec<(Mask<W>, u64, u32)>,
    open: BinaryHeap<Open>,
    /// The lowest cost so far for each set of remaining nodes.
    cheapest: FxHashMap<Mask<W>, u64>,
    /// The state of the best plan, if the search found it.
    goal: Option<u32>,
    /// Next kernels of the state that is being expanded, with their costs.
    next: Vec<(Mask<W>, u64)>,
    budget: &'a Budget,
}

impl<const W: usize> Search<'_, W> {
    /// A lower bound on the cost of plans for `rest`.
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

    /// The cost of the piece as one kernel, if it can be one now.
    fn as_one_kernel(&self, piece: Mask<W>, rest: Mask<W>) -> Option<u64> {
        let operands = self.component.operands(piece, piece);
        let can_be =
            self.component.allows(piece, operands) && self.component.ready(piece, rest) == piece;
        can_be.then_some(KERNEL + operands.arrays)
    }

    /// Adds the next kernels within a piece of the remainder to `next`.
    fn next_kernels(&mut self, piece: Mask<W>, rest: Mask<W>, so_far: u64) -> Result<()> {
        let ready = self.component.ready(piece, rest);
        let mut growth = Growth { search: self, ready, rest, so_far };
        // Each kernel has a node that waits for no other; the first of these starts it.
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
    /// Nodes that the kernels may have.
    ready: Mask<W>,
    rest: Mask<W>,
    so_far: u64,
}

impl<const W: usize> Growth<'_, '_, W> {
    /// Adds the next kernels that contain all of `kernel` and none of `excluded`. `near` has the
    /// neighbors of `kernel`; `kernel` has all that its nodes wait for, and `excluded` all that
    /// waits for its nodes.
    fn grow(&mut self, kernel: Mask<W>, near: Mask<W>, excluded: Mask<W>) -> Result<()> {
        // The stack is explicit, because a kernel grows node by node, up to the whole component.
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
            // Kernels without the neighbor come after those with it.
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

    /// `excluded` with the ready nodes of `more` and all that waits for these.
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
