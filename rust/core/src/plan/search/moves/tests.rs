//! Moves compared with independent definitions, and moves of small examples.

#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

use super::mover::TRIED;
use super::targets::TOGETHER;
use super::*;
use crate::plan::Cost;
use crate::plan::problem::cost::cost;
use crate::plan::search::portfolio::{PORTFOLIO, Question};
use crate::plan::search::split::split_oversized;
use crate::plan::tests::judges::definition::{connected, naive_interface};
use crate::plan::tests::judges::linear::Judge;
use crate::plan::tests::problems::arrays;
use crate::plan::tests::problems::random::{Random, SHAPES, random_arrays};
use crate::plan::tests::steps::moved;

/// Random problems, and plans of them before any merges.
fn starts(seed: u64, n_problems: usize) -> impl Iterator<Item = (FusionProblem, Partition)> {
    let mut random = Random(seed);
    (0..n_problems).filter_map(move |number| {
        let n_nodes = 5 + random.below(60);
        let arrays = random_arrays(&mut random, n_nodes, SHAPES[number % SHAPES.len()]);
        let problem = FusionProblem::new(arrays, &Budget::unlimited()).unwrap();
        let question = Question { problem: &problem, strict: None, budget: &Budget::unlimited() };
        let start = (PORTFOLIO[[0, 2, 3][number % 3]].start)(&question).unwrap();
        start.quotient_order(&problem, &Budget::unlimited()).ok()?;
        let start = split_oversized(&problem, start, &Budget::unlimited()).unwrap();
        Some((problem, start))
    })
}

fn mover<'a>(
    problem: &'a FusionProblem,
    partition: &'a Partition,
    budget: &'a Budget,
) -> Mover<'a> {
    let order = partition.quotient_order(problem, budget).unwrap();
    let edge = at_the_edge(problem, partition, budget).unwrap();
    Mover::new(problem, partition, &order, edge, budget)
}

/// Whether two nodes of one group are connected.
fn touch(problem: &FusionProblem, a: NodeId, b: NodeId) -> bool {
    problem.group(a).is_some()
        && problem.group(a) == problem.group(b)
        && connected(problem, &BTreeSet::from([a, b]))
}

/// Operands of a kernel, and the number of arrays among them.
fn n_operands(problem: &FusionProblem, members: &BTreeSet<NodeId>) -> (usize, usize) {
    let (inputs, outputs) = naive_interface(problem, members);
    let n_constants = inputs.iter().filter(|&&v| problem.is_constant(v)).count();
    (inputs.len() + outputs.len(), inputs.len() + outputs.len() - n_constants)
}

#[test]
fn the_edge_is_where_kernels_touch() {
    let mut n_edge = 0;
    for (problem, partition) in starts(51, 300) {
        let nodes = 0..problem.n_nodes() as NodeId;
        let edge = at_the_edge(&problem, &partition, &Budget::unlimited()).unwrap();
        for node in nodes.clone() {
            let is_other = |&other: &NodeId| partition.block(other) != partition.block(node);
            let mut others = nodes.clone().filter(is_other);
            let expected = others.any(|other| touch(&problem, node, other));
            assert_eq!(edge[node as usize], expected);
            n_edge += usize::from(expected);
        }
    }
    assert!(n_edge > 1000, "{n_edge}");
}

/// Compares a series of moves with the definitions.
#[test]
fn moves_are_what_their_definitions_say() {
    let mut random = Random(52);
    let (mut n_moved, mut n_merged, mut n_together, mut n_kept) = (0, 0, 0, [0; 3]);
    for (problem, partition) in starts(53, 600) {
        let nodes: Vec<NodeId> =
            (0..problem.n_nodes() as NodeId).filter(|&n| problem.group(n).is_some()).collect();
        let budget = Budget::unlimited();
        let mut mover = mover(&problem, &partition, &budget);
        for _ in 0..if nodes.is_empty() { 0 } else { 60 } {
            let node = nodes[random.below(nodes.len())];
            let from = mover.block[node as usize];
            mover.find_targets(node).unwrap();
            let targets = mover.targets.clone();
            let kernels: BTreeSet<NodeId> = nodes
                .iter()
                .filter(|&&other| touch(&problem, node, other))
                .map(|&other| mover.block[other as usize])
                .filter(|&label| label != from)
                .collect();
            assert!(targets.iter().all(|to| kernels.contains(to)));
            assert_eq!(targets.iter().collect::<BTreeSet<_>>().len(), targets.len());
            for &to in &kernels {
                let set = expected_set(&mover, &nodes, node, to);
                let may_go = mover.collect(node, to).unwrap();
                assert_eq!(may_go, set.is_some());
                let Some(set) = set else {
                    n_kept[0] += 1;
                    continue;
                };
                assert_eq!(mover.set.iter().copied().collect::<BTreeSet<_>>(), set);
                let output = problem.output(node);
                let mut operands = problem.inputs(node).iter().chain([&output]);
                if operands.all(|&v| problem.clients(v).len() <= TRIED) {
                    assert!(targets.contains(&to) || targets.len() == TRIED);
                }
                let of = |mover: &Mover<'_>, label: NodeId| -> BTreeSet<NodeId> {
                    nodes.iter().copied().filter(|&n| mover.block[n as usize] == label).collect()
                };
                let (source, target) = (of(&mover, from), of(&mover, to));
                let rest: BTreeSet<NodeId> = source.difference(&set).copied().collect();
                let grown: BTreeSet<NodeId> = target.union(&set).copied().collect();
                let arrays = |members: &BTreeSet<NodeId>| n_operands(&problem, members).1;
                let before = arrays(&source) + arrays(&target);
                let after = arrays(&grown) + if rest.is_empty() { 0 } else { arrays(&rest) };
                assert_eq!(mover.saved(from, to).unwrap(), before.checked_sub(after));
                let fits = |members: &BTreeSet<NodeId>| {
                    members.len() < 2 || n_operands(&problem, members).0 <= problem.max_operands()
                };
                let is_one =
                    |members: &BTreeSet<NodeId>| members.is_empty() || connected(&problem, members);
                let (keeps_limit, leaves) = (fits(&rest) && fits(&grown), is_one(&rest));
                assert_eq!(mover.keeps_limit(from, to).unwrap(), keeps_limit);
                assert_eq!(mover.leaves_connected(from).unwrap(), leaves);
                assert_eq!(mover.is_connected_with(to).unwrap(), is_one(&grown));
                let may_go = keeps_limit && leaves && is_one(&grown);
                assert_eq!(mover.may_go(from, to).unwrap(), may_go);
                n_kept[1] += usize::from(!keeps_limit);
                n_kept[2] += usize::from(!leaves);
                if may_go && random.percent(30) {
                    n_moved += 1;
                    n_merged += usize::from(rest.is_empty());
                    n_together += usize::from(set.len() > 1);
                    mover.carry_out(from, to).unwrap();
                    let sorted = |nodes: &[NodeId]| nodes.iter().copied().collect::<BTreeSet<_>>();
                    assert_eq!(sorted(mover.members(from)), rest);
                    assert_eq!(sorted(mover.members(to)), grown);
                    break;
                }
            }
        }
        let names = Partition::from_names(mover.block.clone());
        Judge::new(problem.arrays()).cost(&names);
    }
    assert!(n_moved > 1000 && n_merged > 100, "{n_moved} {n_merged}");
    assert!(n_together > 20 && n_kept.iter().all(|&n| n > 5), "{n_kept:?} {n_together}");
}

/// The node and all nodes before it in its kernel, or after it, if no node of another kernel is
/// between these and the kernel `to`.
fn expected_set(
    mover: &Mover<'_>,
    nodes: &[NodeId],
    node: NodeId,
    to: NodeId,
) -> Option<BTreeSet<NodeId>> {
    let graph = mover.problem.graph();
    let (from, there) = (mover.block[node as usize], mover.place[to as usize]);
    let is_later = there > mover.place[from as usize];
    let mut set = BTreeSet::from([node]);
    loop {
        let others = set.iter().flat_map(|&next| {
            if is_later { graph.successors(next) } else { graph.predecessors(next) }
        });
        let others: Vec<NodeId> = others.copied().collect();
        let n_before = set.len();
        for other in others {
            let place = mover.place[mover.block[other as usize] as usize];
            if mover.block[other as usize] == from && nodes.contains(&other) {
                set.insert(other);
            } else if if is_later { place < there } else { place > there } {
                return None;
            }
        }
        if set.len() > TOGETHER {
            return None;
        }
        if set.len() == n_before {
            return Some(set);
        }
    }
}

#[test]
fn moves_find_more_where_ties_are_tried() {
    let (mut more, mut all) = ([0, 0], [Cost::default(); 3]);
    for (problem, start) in starts(54, 600) {
        let before = cost(&problem, &start, &Budget::unlimited()).unwrap();
        let costs = [false, true].map(|ties| {
            let partition = moved(&problem, &start, ties);
            let after = cost(&problem, &partition, &Budget::unlimited()).unwrap();
            assert_eq!(after < before, partition != start);
            assert!(after.kernels <= before.kernels && after.arrays <= before.arrays);
            after
        });
        more[0] += usize::from(costs[0] < before);
        more[1] += usize::from(costs[1] < costs[0]);
        for (sum, cost) in all.iter_mut().zip([before, costs[0], costs[1]]) {
            sum.kernels += cost.kernels;
            sum.arrays += cost.arrays;
        }
    }
    assert!(more[0] > 200 && more[1] > 10, "{more:?} {all:?}");
    assert!(all[2] < all[1] && all[1] < all[0], "{all:?}");
}

/// Nodes after `n_roots` root variables. All variables bring siblings together.
fn problem(n_roots: usize, nodes: &[(i32, &[u32])]) -> FusionProblem {
    arrays::problem(n_roots, nodes, 1024)
}

#[test]
fn what_comes_after_a_node_goes_with_it() {
    // 0 -> 1 -> 2 and 0 -> (sum) 3 -> 4; 4 reads the results of 1 and 2, too. Variables 2 to 6.
    let nodes: [(i32, &[u32]); 5] =
        [(0, &[0]), (0, &[2, 1]), (0, &[3, 1]), (-1, &[2]), (0, &[5, 3, 4, 1])];
    let problem = problem(2, &nodes);
    let start = Partition::from_names(vec![0, 0, 0, 3, 4]);
    // Nodes 1 and 2 are in the later kernel then, which reads the result of 0 instead of theirs.
    assert_eq!(moved(&problem, &start, false).blocks(), [0, 1, 1, 3, 1]);
    // Node 1 cannot go alone: 2 reads its result.
    let order = start.quotient_order(&problem, &Budget::unlimited()).unwrap();
    let budget = Budget::unlimited();
    let mut mover = Mover::new(&problem, &start, &order, vec![true; nodes.len()], &budget);
    assert!(mover.collect(1, 4).unwrap());
    assert_eq!(mover.set, [1, 2]);
    assert!(mover.collect(2, 4).unwrap());
    assert_eq!(mover.set, [2]);
    // The sum reads the result of 0 and is before that kernel.
    assert!(!mover.collect(0, 4).unwrap());
}

#[test]
fn nothing_is_tried_without_effort() {
    for (problem, start) in starts(55, 100) {
        let order = start.quotient_order(&problem, &Budget::unlimited()).unwrap();
        let doubtful = vec![true; problem.n_nodes()];
        let moved =
            move_nodes(&problem, &start, &order, &doubtful, &Budget::unlimited().with_effort(0))
                .unwrap();
        assert_eq!(moved, None);
    }
}

#[test]
fn a_node_goes_where_that_saves_most() {
    // Node 2 shares one operand with 3, its kernel's other node, two with 0 and three with 1.
    let nodes: [(i32, &[u32]); 4] =
        [(0, &[1, 2]), (0, &[3, 4, 5]), (0, &[0, 1, 2, 3, 4, 5]), (0, &[0])];
    let problem = problem(6, &nodes);
    let start = Partition::from_names(vec![0, 1, 2, 2]);
    let budget = Budget::unlimited();
    let mut mover = mover(&problem, &start, &budget);
    assert!(mover.try_to_move(2).unwrap() && mover.is_cheaper);
    assert_eq!(mover.block, [0, 1, 1, 2]);
    // The node does not come back; the other one follows, as a merge.
    assert!(!mover.try_to_move(2).unwrap());
    assert!(mover.try_to_move(3).unwrap());
    assert_eq!(mover.block, [0, 1, 1, 1]);
}

#[test]
fn a_tie_goes_to_an_earlier_kernel_and_not_to_a_later_one() {
    // Two kernels that a sum keeps apart, and node 4, which shares one operand with each.
    let nodes: [(i32, &[u32]); 6] =
        [(0, &[0, 1]), (0, &[0]), (-1, &[5]), (0, &[6, 2, 3]), (0, &[1, 3]), (0, &[6, 2])];
    let problem = problem(4, &nodes);
    for (names, is_late) in [([0, 0, 2, 3, 3, 3], true), ([0, 0, 2, 3, 0, 3], false)] {
        let start = Partition::from_names(names.to_vec());
        for ties in [false, true] {
            let budget = Budget::unlimited();
            let mut mover = mover(&problem, &start, &budget);
            mover.ties_go_earlier = ties;
            assert_eq!(mover.try_to_move(4).unwrap(), ties && is_late);
            assert!(!mover.is_cheaper);
        }
        // A plan that is different but no cheaper is not taken.
        assert_eq!(moved(&problem, &start, true), start);
    }
}

#[test]
fn orderings_alone_take_nothing_along() {
    // Nodes 1 and 3 are connected through 2, and 1 has to come before 3: where 3 goes, 1 must go.
    let nodes: [(i32, &[u32]); 4] = [(0, &[1]), (0, &[0]), (0, &[0, 2]), (0, &[2, 1])];
    let mut arrays = problem(3, &nodes).arrays().clone();
    arrays.orderings = vec![(1, 3)];
    let problem = FusionProblem::new(arrays, &Budget::unlimited()).unwrap();
    let start = Partition::from_names(vec![0, 1, 1, 1]);
    let budget = Budget::unlimited();
    let mut mover = mover(&problem, &start, &budget);
    assert!(mover.collect(3, 0).unwrap());
    assert_eq!(mover.set, [3, 1]);
    assert!(mover.keeps_limit(1, 0).unwrap() && mover.leaves_connected(1).unwrap());
    assert!(!mover.is_connected_with(0).unwrap() && !mover.may_go(1, 0).unwrap());
    assert!(mover.collect(1, 0).unwrap() && mover.set == [1]);
    assert!(mover.leaves_connected(1).unwrap());
}

/// Four readers of `n` operands, each in an order of its own, one of them in a kernel by itself.
fn wide(n: u32, limit: u32) -> (FusionProblem, Partition) {
    let row = |node: u32| (0..n).map(|i| (i + node * (n / 3)) % n).collect();
    let rows: Vec<Vec<u32>> = (0..4).map(row).collect();
    let nodes: Vec<(i32, &[u32])> = rows.iter().map(|row| (0, &row[..])).collect();
    let mut arrays = problem(n as usize, &nodes).arrays().clone();
    arrays.max_operands = limit;
    let problem = FusionProblem::new(arrays, &Budget::unlimited()).unwrap();
    (problem, Partition::from_names(vec![0, 1, 1, 1]))
}

#[test]
fn effort_counts_each_operand() {
    for (limit, may_move) in [(1024, false), (u32::MAX, true)] {
        let spent = [10_000, 20_000].map(|n| {
            let (problem, start) = wide(n, limit);
            let asked = Rc::new(Cell::new(0));
            let count = Rc::clone(&asked);
            let may_go_on = Rc::new(move || {
                count.set(count.get() + 1);
                true
            });
            let budget = Budget::asking(may_go_on).with_effort(1 << 40);
            let mut mover = mover(&problem, &start, &budget);
            let before = budget.effort();
            assert_eq!(mover.try_to_move(0).unwrap(), may_move);
            let spent = before - budget.effort();
            // The try examines the readers of each operand, their kernels, and the operand limit.
            assert!((4..64).contains(&(spent / u64::from(n))), "{spent}");
            assert!(asked.get() >= spent >> 17, "{spent} {}", asked.get());
            spent
        });
        assert!(spent[1] < 2 * spent[0] + spent[0] / 4, "{spent:?}");
    }
}

#[test]
fn small_graphs_have_as_much_effort_as_if_they_were_larger() {
    assert_eq!([0, 1, 1000].map(|n| effort(n, 2 * n)), [8192, 8256, 72_192]);
}

#[test]
fn ties_are_tried_in_the_parts_in_which_something_has_moved() {
    let mut n_better = 0;
    for (problem, start) in starts(56, 300) {
        let budget = Budget::unlimited();
        let mut mover = mover(&problem, &start, &budget);
        mover.try_all(|_| true).unwrap();
        let alone =
            cost(&problem, &Partition::from_names(mover.block.clone()), &Budget::unlimited())
                .unwrap();
        let after = cost(&problem, &moved(&problem, &start, false), &Budget::unlimited()).unwrap();
        assert!(after <= alone);
        n_better += usize::from(after < alone);
        let mut marked = Vec::new();
        mark_parts(&problem, &mover.changed, &mut marked, &budget).unwrap();
        let parts = parts(&problem, &Budget::unlimited()).unwrap();
        for node in 0..problem.n_nodes() as NodeId {
            let is_changed = |label: &NodeId| parts.block(*label) == parts.block(node);
            assert_eq!(marked[node as usize], mover.changed.keys().any(is_changed));
        }
    }
    assert!(n_better > 0);
}
