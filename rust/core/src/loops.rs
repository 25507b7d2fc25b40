//! Which statements run in one loop.
//!
//! # Problem
//! Items are element-wise statements, each over a space of indices that its label stands for. Those
//! of one label can run in one loop, unless one needs all of what another computes: then the other
//! loop must have ended. What lies between two items must run between them. Few loops are wanted,
//! since each goes through memory; with several labels, to find the fewest is NP-hard.
//!
//! # Approach
//! - *Depth*: how many loops of a label are needed from an item to the end, since no two of so many
//!   items on a path can share one. No schedule has fewer loops of a label than its largest depth.
//! - *List scheduling*: loop after loop, one label is chosen of those that have an item ready, and
//!   all its items run that can. First come labels of which nothing is left then, which costs
//!   nothing; then those of which no item of the largest depth is left, so that the bound of the
//!   rest is lower by one; of equals, the label with most items. The same is done from the end, for
//!   neither direction is always better, and the better schedule is taken.
//! - Then items move between loops of their label to where what they read is, or what reads them.
//!
//! On random problems (`gap` in the tests), 15 of 20 000 with 12 items and 3 labels have a loop more
//! than needed; with 14 items and 4 labels, 45 have one and one has two. With 40 items and 4 labels,
//! there are 4 % more loops than the sum of the largest depths, a bound that need not be reached.
//!
//! # Rejected
//! Stages, in which each item runs as early as it can, or as late: a quarter more loops with 40
//! items. Greedy typed fusion, one label after the other, the most frequent first: 3 % more loops;
//! fewer than here in 2 % of the problems, more in 20 %. Merging afterwards what still can be: one
//! loop in nine hundred.
//!
//! # Source
//! K. Kennedy, K. McKinley, "Typed fusion with applications to parallel and sequential code
//! generation", Rice University TR93-208 (1993), for the problem and the bound of one label.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::ids::check_count;

/// The label of an item that shares its loop with no other.
pub const ALONE: u32 = u32::MAX;

/// Edges that are read at most to find depths; what is deeper counts as of depth 1.
const DEPTH_STEPS: usize = 1 << 26;

/// Groups the items into loops, few of them.
///
/// # Arguments
/// * `labels`: the label of each item, or [`ALONE`]. The items are in a topological order.
/// * `edges`: pairs of items, the first of which runs before the second or, if the third says so
///   and the labels are the same, in the same loop.
///
/// # Returns
/// For each item the number of its group. All items of a group have one label; an edge goes from a
/// smaller to a larger number, or within a group if it allows that. So groups can run in the order
/// of their numbers, and those of one label between which nothing has to run are one. Among
/// schedules that are found with equally few groups, one with the most edges within groups is
/// taken, of these the first. The same input gives the same answer.
///
/// # Errors
/// [`Error::EdgeOutOfRange`], [`Error::SelfLoop`] and [`Error::BackwardEdge`] name an edge that
/// does not go forward; [`Error::TooLarge`] if there are more items or edges than ids;
/// [`Error::Interrupted`].
///
/// # Complexity
/// O(n + m) for each label with several items, over what stands between the first and the last of
/// them, and O((n + m) log n) to choose labels.
///
/// # Examples
/// ```
/// use pytensor_fuse_core::{Budget, Error, loops::{ALONE, schedule}};
///
/// // 0 and 1 of one shape feed a sum, 2, which 3 needs; 4 needs none of them.
/// let edges = [(0, 1, true), (1, 2, false), (2, 3, false)];
/// let groups = schedule(&[7, 7, ALONE, 7, 7], &edges, &Budget::unlimited())?;
/// assert_eq!(groups, [0, 0, 1, 2, 0]);
/// # Ok::<(), Error>(())
/// ```
pub fn schedule(labels: &[u32], edges: &[(u32, u32, bool)], budget: &Budget) -> Result<Vec<u32>> {
    let items = Items::new(labels, edges, budget)?;
    let mirrored = items.mirrored(budget)?;
    let forward = items.gathered(List::new(&items, budget)?.run()?, budget)?;
    let backward = items.gathered(mirror(&List::new(&mirrored, budget)?.run()?), budget)?;
    // Their costs are found edge by edge.
    budget.check(2 * edges.len())?;
    Ok(if items.cost(&backward) < items.cost(&forward) { backward } else { forward })
}

/// The number of groups, and of the edges between items that could have shared one but do not.
type Cost = (usize, usize);

/// Items with dense labels, and the edges at each. No label of an item that stays alone is met
/// twice, so nothing below has to ask for it.
struct Items {
    labels: Vec<u32>,
    n_labels: usize,
    successors: Edges,
    predecessors: Edges,
}

/// For each item the items at the other ends of its edges in one direction, and whether they may
/// share a group with it.
struct Edges {
    offsets: Vec<u32>,
    ends: Vec<(u32, bool)>,
}

impl Edges {
    /// O(n + m), by counting.
    fn new(
        n_items: usize,
        edges: impl Iterator<Item = (u32, u32, bool)> + Clone,
        budget: &Budget,
    ) -> Result<Self> {
        let mut offsets = vec![0u32; n_items + 1];
        for (at, _, _) in edges.clone() {
            budget.check(1)?;
            offsets[at as usize + 1] += 1;
        }
        for i in 0..n_items {
            offsets[i + 1] += offsets[i];
        }
        let mut next = offsets.clone();
        let mut ends = vec![(0, false); offsets[n_items] as usize];
        for (at, end, can_fuse) in edges {
            budget.check(1)?;
            ends[next[at as usize] as usize] = (end, can_fuse);
            next[at as usize] += 1;
        }
        Ok(Self { offsets, ends })
    }

    fn of(&self, item: u32) -> &[(u32, bool)] {
        let item = item as usize;
        &self.ends[self.offsets[item] as usize..self.offsets[item + 1] as usize]
    }
}

impl Items {
    fn new(labels: &[u32], edges: &[(u32, u32, bool)], budget: &Budget) -> Result<Self> {
        let n_items = labels.len();
        check_count("labels", n_items)?;
        check_count("edges", edges.len())?;
        for (edge, &(from, to, _)) in edges.iter().enumerate() {
            budget.check(1)?;
            if from as usize >= n_items || to as usize >= n_items {
                let (source_id, target_id) = (from.into(), to.into());
                return Err(Error::EdgeOutOfRange { edge, source_id, target_id, n_nodes: n_items });
            }
            if from == to {
                return Err(Error::SelfLoop { edge, node: from });
            }
            if from > to {
                return Err(Error::BackwardEdge { edge, source_id: from, target_id: to });
            }
        }
        let mut known = FxHashMap::default();
        let mut n_labels = 0;
        let mut number = |label: u32| {
            let new = if label == ALONE { None } else { known.get(&label).copied() };
            new.unwrap_or_else(|| {
                known.insert(label, n_labels);
                n_labels += 1;
                n_labels - 1
            })
        };
        let labels = labels.iter().map(|&label| {
            budget.check(8)?;
            Ok(number(label))
        });
        let labels = labels.collect::<Result<Vec<u32>>>()?;
        Self::from_parts(labels, n_labels as usize, edges.iter().copied(), budget)
    }

    fn from_parts(
        labels: Vec<u32>,
        n_labels: usize,
        edges: impl Iterator<Item = (u32, u32, bool)> + Clone,
        budget: &Budget,
    ) -> Result<Self> {
        let is_same = |a: u32, b: u32| labels[a as usize] == labels[b as usize];
        let edges = edges.map(|(from, to, can_fuse)| (from, to, can_fuse && is_same(from, to)));
        let n_items = labels.len();
        let successors = Edges::new(n_items, edges.clone(), budget)?;
        let backward = edges.map(|(from, to, fuses)| (to, from, fuses));
        let predecessors = Edges::new(n_items, backward, budget)?;
        Ok(Self { labels, n_labels, successors, predecessors })
    }

    fn len(&self) -> usize {
        self.labels.len()
    }

    /// The same items from the end: the last one is the first, and edges are turned round.
    fn mirrored(&self, budget: &Budget) -> Result<Self> {
        let last = (self.len() as u32).wrapping_sub(1);
        let labels = self.labels.iter().rev().copied().collect();
        let edges = (0..self.len() as u32).flat_map(|item| {
            self.successors.of(item).iter().map(move |&(to, fuses)| (last - to, last - item, fuses))
        });
        Self::from_parts(labels, self.n_labels, edges, budget)
    }

    /// Moves items between groups of their label to where more of their neighbours are, as far as
    /// the order of the groups allows; numbers the groups that are left.
    ///
    /// First those at the ends of edges, so that a chain follows its last item; then the other way
    /// round.
    fn gathered(&self, mut groups: Vec<u32>, budget: &Budget) -> Result<Vec<u32>> {
        let n_items = self.len() as u32;
        let mut label_of = vec![0; self.len()];
        for (item, &group) in groups.iter().enumerate() {
            label_of[group as usize] = self.labels[item];
        }
        let mut near: Vec<u32> = Vec::new();
        for item in (0..n_items).rev().chain(0..n_items) {
            let (before, after) = (self.predecessors.of(item), self.successors.of(item));
            budget.check(1 + 2 * (before.len() + after.len()))?;
            near.clear();
            let (mut first, mut last) = (0, u32::MAX);
            for &(from, fuses) in before {
                let group = groups[from as usize];
                first = first.max(group + u32::from(!fuses));
                near.extend(fuses.then_some(group));
            }
            for &(to, fuses) in after {
                let group = groups[to as usize];
                last = last.min(group - u32::from(!fuses));
                near.extend(fuses.then_some(group));
            }
            near.retain(|group| (first..=last).contains(group));
            near.sort_unstable();
            let count = |group: u32| near.iter().filter(|&&other| other == group).count();
            let mut best = (count(groups[item as usize]), groups[item as usize]);
            for chunk in near.chunk_by(|a, b| a == b) {
                if chunk.len() > best.0 {
                    best = (chunk.len(), chunk[0]);
                }
            }
            groups[item as usize] = best.1;
        }
        Ok(numbered(groups.into_iter()))
    }

    fn cost(&self, groups: &[u32]) -> Cost {
        let n_groups = groups.iter().max().map_or(0, |&last| last as usize + 1);
        let is_apart = |item: u32, to: u32| groups[item as usize] != groups[to as usize];
        let n_apart = (0..self.len() as u32).map(|item| {
            let after = self.successors.of(item).iter();
            after.filter(|&&(to, fuses)| fuses && is_apart(item, to)).count()
        });
        (n_groups, n_apart.sum())
    }

    /// For each item how many groups of its label are needed from it to the end, at least.
    ///
    /// O(n + m) for each label with several items, between the first and the last of them, up to
    /// [`DEPTH_STEPS`] in all.
    fn depths(&self, budget: &Budget) -> Result<Vec<u32>> {
        let mut ranges = vec![(u32::MAX, 0u32); self.n_labels];
        for (item, &label) in self.labels.iter().enumerate() {
            let (first, last) = &mut ranges[label as usize];
            (*first, *last) = ((*first).min(item as u32), item as u32);
        }
        let mut depths = vec![1; self.len()];
        // For an item of another label, the depth that it comes before; items after the last one of
        // the label come before none.
        let mut below = vec![0; self.len()];
        let mut left = DEPTH_STEPS;
        for (label, &(first, last)) in ranges.iter().enumerate() {
            if first == last {
                continue;
            }
            for item in (first..=last).rev() {
                let after = self.successors.of(item);
                budget.check(1 + after.len())?;
                let Some(rest) = left.checked_sub(1 + after.len()) else { return Ok(depths) };
                left = rest;
                let is_of_label = self.labels[item as usize] == label as u32;
                let mut depth = u32::from(is_of_label);
                for &(to, fuses) in after.iter().filter(|&&(to, _)| to <= last) {
                    depth = depth.max(below[to as usize] + u32::from(is_of_label && !fuses));
                }
                below[item as usize] = depth;
                if is_of_label {
                    depths[item as usize] = depth;
                }
            }
        }
        Ok(depths)
    }
}

/// The groups of a schedule from the end, from the start.
fn mirror(groups: &[u32]) -> Vec<u32> {
    let last = groups.iter().max().copied().unwrap_or(0);
    groups.iter().rev().map(|group| last - group).collect()
}

/// The places of keys among all different ones, in ascending order.
fn numbered<K: Ord + Copy>(keys: impl Iterator<Item = K> + Clone) -> Vec<u32> {
    let mut sorted: Vec<(K, usize)> = keys.enumerate().map(|(item, key)| (key, item)).collect();
    sorted.sort_unstable();
    let mut numbers = vec![0; sorted.len()];
    for (number, chunk) in sorted.chunk_by(|a, b| a.0 == b.0).enumerate() {
        chunk.iter().for_each(|&(_, item)| numbers[item] = number as u32);
    }
    numbers
}

/// List scheduling: group after group, each of all items of a label that can run then.
struct List<'a> {
    items: &'a Items,
    budget: &'a Budget,
    depths: Vec<u32>,
    groups: Vec<u32>,
    n_groups: u32,
    /// Predecessors of each item that have not run.
    waiting: Vec<u32>,
    /// For each label how many items are left of each depth, none of the largest having been left.
    left: Vec<Vec<u32>>,
    /// For each label the items that would run now.
    next: Vec<Vec<u32>>,
    /// For each label how many of these are of the largest depth.
    n_deepest: Vec<u32>,
    is_next: Vec<bool>,
    /// How many predecessors of each item, of its label, would run now.
    n_next_before: Vec<u32>,
    /// Whether one of these keeps it from the group.
    is_kept: Vec<bool>,
    /// Labels of which other items would run than when they were ranked.
    changed: Vec<u32>,
    is_changed: Vec<bool>,
}

/// Whether nothing is left of a label then, whether nothing of the largest depth, the number of
/// items, the largest depth, and the label. What is best to run next has the highest rank.
type Rank = (bool, bool, usize, usize, Reverse<u32>);

impl<'a> List<'a> {
    fn new(items: &'a Items, budget: &'a Budget) -> Result<Self> {
        let depths = items.depths(budget)?;
        let n_items = items.len();
        let mut left = vec![Vec::new(); items.n_labels];
        for (&label, &depth) in items.labels.iter().zip(&depths) {
            let (left, depth) = (&mut left[label as usize], depth as usize);
            left.resize(left.len().max(depth + 1), 0);
            left[depth] += 1;
        }
        Ok(Self {
            groups: vec![0; n_items],
            n_groups: 0,
            waiting: (0..n_items as u32).map(|at| items.predecessors.of(at).len() as u32).collect(),
            next: vec![Vec::new(); items.n_labels],
            n_deepest: vec![0; items.n_labels],
            is_next: vec![false; n_items],
            n_next_before: vec![0; n_items],
            is_kept: vec![false; n_items],
            changed: Vec::new(),
            is_changed: vec![false; items.n_labels],
            items,
            budget,
            depths,
            left,
        })
    }

    fn run(mut self) -> Result<Vec<u32>> {
        // The rank of each label with items that would run, and ranks that labels had before.
        let mut ranks = BinaryHeap::new();
        let mut stack = Vec::new();
        for item in 0..self.items.len() as u32 {
            self.reach(item, &mut stack)?;
        }
        loop {
            while let Some(label) = self.changed.pop() {
                self.is_changed[label as usize] = false;
                ranks.extend(self.rank(label));
            }
            let Some(rank) = ranks.pop() else { break };
            let Reverse(label) = rank.4;
            if self.rank(label) == Some(rank) {
                self.take(label, &mut stack)?;
            }
        }
        Ok(self.groups)
    }

    /// The rank of a label, if any of its items would run.
    fn rank(&self, label: u32) -> Option<Rank> {
        let next = &self.next[label as usize];
        if next.is_empty() {
            return None;
        }
        let left = &self.left[label as usize];
        let depth = left.len() - 1;
        let n_missing = left[depth] - self.n_deepest[label as usize];
        let (costs_nothing, is_last) = (n_missing == 0, depth == 1 && n_missing == 0);
        Some((is_last, costs_nothing, next.len(), depth, Reverse(label)))
    }

    /// Whether an item could run now that is not among those that would: what it waits for, if
    /// anything, would run in its group.
    fn can_join(&self, item: u32) -> bool {
        let item = item as usize;
        !self.is_next[item] && !self.is_kept[item] && self.n_next_before[item] == self.waiting[item]
    }

    /// Adds an item to those that would run, if it can, and what can then.
    fn reach(&mut self, item: u32, stack: &mut Vec<u32>) -> Result<()> {
        if !self.can_join(item) {
            return Ok(());
        }
        let label = self.items.labels[item as usize];
        if !self.is_changed[label as usize] {
            self.is_changed[label as usize] = true;
            self.changed.push(label);
        }
        let depth = self.left[label as usize].len() as u32 - 1;
        self.is_next[item as usize] = true;
        stack.push(item);
        while let Some(item) = stack.pop() {
            self.next[label as usize].push(item);
            self.n_deepest[label as usize] += u32::from(self.depths[item as usize] == depth);
            let after = self.items.successors.of(item);
            self.budget.check(1 + after.len())?;
            for &(to, fuses) in
                after.iter().filter(|&&(to, _)| self.items.labels[to as usize] == label)
            {
                self.n_next_before[to as usize] += 1;
                self.is_kept[to as usize] |= !fuses;
                if self.can_join(to) {
                    self.is_next[to as usize] = true;
                    stack.push(to);
                }
            }
        }
        Ok(())
    }

    /// Runs all items of a label that can.
    fn take(&mut self, label: u32, stack: &mut Vec<u32>) -> Result<()> {
        let run = std::mem::take(&mut self.next[label as usize]);
        self.n_deepest[label as usize] = 0;
        let left = &mut self.left[label as usize];
        for &item in &run {
            self.groups[item as usize] = self.n_groups;
            left[self.depths[item as usize] as usize] -= 1;
        }
        while left.last() == Some(&0) {
            left.pop();
        }
        self.n_groups += 1;
        // All have run before any other is looked at: what would run next does not depend on their
        // order.
        for &item in &run {
            let after = self.items.successors.of(item);
            self.budget.check(1 + 2 * after.len())?;
            for &(to, _) in after {
                self.waiting[to as usize] -= 1;
                if self.items.labels[to as usize] == label {
                    self.n_next_before[to as usize] = 0;
                    self.is_kept[to as usize] = false;
                }
            }
        }
        for &item in &run {
            for &(to, _) in self.items.successors.of(item) {
                self.reach(to, stack)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "loops_tests.rs"]
mod tests;
