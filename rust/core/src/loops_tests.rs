#![allow(clippy::unwrap_used)]

use crate::budget::Budget;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

type Edge = (u32, u32, bool);

/// Labels below `n_labels`, sometimes [`ALONE`], and edges that go forward.
fn problems(max_items: usize, n_labels: u32) -> impl Strategy<Value = (Vec<u32>, Vec<Edge>)> {
    let label = prop_oneof![8 => 0..n_labels, 1 => Just(ALONE)];
    vec(label, 0..=max_items).prop_flat_map(|labels| {
        let n_items = labels.len() as u32;
        let n_edges = if n_items < 2 { 0 } else { 2 * n_items as usize };
        let edge = (0..n_items.max(1), 0..n_items.max(1), any::<bool>());
        let edges = vec(edge, 0..=n_edges).prop_map(|edges| {
            let forward = edges.into_iter().map(|(a, b, fuses)| (a.min(b), a.max(b), fuses));
            forward.filter(|(a, b, _)| a != b).collect()
        });
        (Just(labels), edges)
    })
}

/// Whether the groups are a schedule by definition: whether they can run in the order of their
/// numbers.
fn is_schedule(labels: &[u32], edges: &[Edge], groups: &[u32]) -> bool {
    let used: BTreeSet<u32> = groups.iter().copied().collect();
    let is_dense = used.iter().enumerate().all(|(number, &group)| number as u32 == group);
    let pairs = (0..labels.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
    let mut together = pairs.filter(|&(a, b)| groups[a] == groups[b]);
    let in_order = edges.iter().all(|&(from, to, can_fuse)| {
        let (from, to) = (groups[from as usize], groups[to as usize]);
        if can_fuse { from <= to } else { from < to }
    });
    is_dense && in_order && together.all(|(a, b)| labels[a] == labels[b] && labels[a] != ALONE)
}

/// The least number of groups, found by trying each label at each step.
///
/// Running all items of a label that can run loses nothing: an item of the label that would have
/// run later may as well run now.
fn fewest(labels: &[u32], edges: &[Edge]) -> usize {
    let all = (1u32 << labels.len()) - 1;
    let has_run = |done: u32, item: u32| done >> item & 1 == 1;
    let mut states = BTreeSet::from([0u32]);
    for n_groups in 0.. {
        if states.contains(&all) {
            return n_groups;
        }
        let mut next = BTreeSet::new();
        for &before in &states {
            for first in (0..labels.len() as u32).filter(|&item| !has_run(before, item)) {
                let mut done = before;
                for item in first..labels.len() as u32 {
                    let is_of_group = item == first
                        || (labels[item as usize] == labels[first as usize]
                            && labels[item as usize] != ALONE);
                    let can_run = edges
                        .iter()
                        .filter(|edge| edge.1 == item)
                        .all(|edge| has_run(before, edge.0) || (edge.2 && has_run(done, edge.0)));
                    if is_of_group && !has_run(done, item) && can_run {
                        done |= 1 << item;
                    }
                }
                if done != before {
                    next.insert(done);
                }
            }
        }
        states = next;
    }
    unreachable!()
}

fn n_groups(groups: &[u32]) -> usize {
    groups.iter().max().map_or(0, |&last| last as usize + 1)
}

#[test]
fn nothing() {
    assert_eq!(schedule(&[], &[], &Budget::unlimited()).unwrap(), [0u32; 0]);
}

#[test]
fn items_that_stay_alone_do() {
    assert_eq!(schedule(&[ALONE; 3], &[(0, 2, true)], &Budget::unlimited()).unwrap().len(), 3);
    assert_eq!(n_groups(&schedule(&[ALONE; 3], &[], &Budget::unlimited()).unwrap()), 3);
}

#[test]
fn a_late_item_waits_for_its_label() {
    // 0 could run at once, but 2, of the same label, has to wait for 1.
    assert_eq!(schedule(&[5, 6, 5], &[(1, 2, true)], &Budget::unlimited()).unwrap(), [1, 0, 1]);
}

#[test]
fn neighbours_share_a_group_where_they_can() {
    // Label 1 needs two groups, since 3 runs between 0 and 4, and 2 belongs to its reader, 4.
    let labels = [1, 1, 1, 9, 1, 1];
    let edges = [(0, 3, true), (3, 4, true), (2, 4, true), (1, 5, true), (0, 1, true)];
    assert_eq!(schedule(&labels, &edges, &Budget::unlimited()).unwrap(), [0, 0, 2, 1, 2, 0]);
}

#[test]
fn wrong_edges_are_refused() {
    let refused = |edges: &[Edge]| schedule(&[0, 0], edges, &Budget::unlimited()).unwrap_err();
    assert_eq!(refused(&[(0, 1, true), (1, 1, true)]), Error::SelfLoop { edge: 1, node: 1 });
    assert_eq!(
        refused(&[(1, 0, true)]),
        Error::BackwardEdge { edge: 0, source_id: 1, target_id: 0 }
    );
    assert_eq!(
        refused(&[(0, 2, true)]),
        Error::EdgeOutOfRange { edge: 0, source_id: 0, target_id: 2, n_nodes: 2 }
    );
}

#[test]
fn a_long_program_takes_no_long_time() {
    let n_items = 20_000u32;
    let labels: Vec<u32> = (0..n_items).map(|item| item * 7919 % 50).collect();
    let edges: Vec<Edge> = (0..n_items)
        .flat_map(|item| (1..=3).map(move |step| (item, item + step * 17, item % 5 > 0)))
        .filter(|&(_, to, _)| to < n_items)
        .collect();
    let groups = schedule(&labels, &edges, &Budget::unlimited()).unwrap();
    assert!(edges.iter().all(|edge| groups[edge.0 as usize] <= groups[edge.1 as usize]));
}

proptest! {
    #[test]
    fn schedules_are_valid((labels, edges) in problems(30, 4)) {
        let groups = schedule(&labels, &edges, &Budget::unlimited()).unwrap();
        prop_assert!(is_schedule(&labels, &edges, &groups), "{groups:?}");
        prop_assert_eq!(schedule(&labels, &edges, &Budget::unlimited()).unwrap(), groups);
    }

    #[test]
    fn one_label_has_as_few_groups_as_there_can_be((labels, edges) in problems(12, 1)) {
        let groups = schedule(&labels, &edges, &Budget::unlimited()).unwrap();
        prop_assert_eq!(n_groups(&groups), fewest(&labels, &edges));
    }

    #[test]
    fn few_groups_are_found((labels, edges) in problems(9, 3)) {
        let groups = schedule(&labels, &edges, &Budget::unlimited()).unwrap();
        prop_assert!(n_groups(&groups) <= fewest(&labels, &edges) + 1);
    }
}

#[test]
fn steps_are_linear_with_many_results_of_one_loop() {
    // An item stands before and after each item of one label, like code that makes an array and
    // code that stores a number.
    let n_loops = 10_000;
    let labels: Vec<u32> = (0..n_loops).flat_map(|_| [ALONE, 0, ALONE]).collect();
    let edges: Vec<Edge> = (0..n_loops)
        .flat_map(|at| [(3 * at, 3 * at + 2, false), (3 * at + 1, 3 * at + 2, false)])
        .collect();
    let n_asked = Rc::new(Cell::new(0));
    let count = Rc::clone(&n_asked);
    let may_go_on = Rc::new(move || {
        count.set(count.get() + 1);
        true
    });
    let groups = schedule(&labels, &edges, &Budget::asking(may_go_on)).unwrap();
    assert!((0..n_loops as usize).all(|at| groups[3 * at + 1] == groups[1]));
    let n_steps = n_asked.get() * (1 << 16) / labels.len();
    assert!(n_steps < 50, "{n_steps} steps for each item");
}

/// Prints how many more groups schedules have than the fewest; run with `--ignored --nocapture`.
#[test]
#[ignore = "it prints figures"]
fn gap() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    for (n_items, n_labels) in [(8, 2), (8, 3), (12, 3), (12, 5), (14, 4)] {
        let strategy = problems(n_items, n_labels);
        let mut gaps = [0usize; 4];
        for _ in 0..20_000 {
            let (labels, edges) = strategy.new_tree(&mut runner).unwrap().current();
            let found = n_groups(&schedule(&labels, &edges, &Budget::unlimited()).unwrap());
            gaps[(found - fewest(&labels, &edges)).min(3)] += 1;
        }
        println!("{n_items} items, {n_labels} labels: {gaps:?} with 0, 1, 2, more groups too many");
    }
}
