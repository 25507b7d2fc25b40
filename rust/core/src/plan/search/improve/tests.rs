//! The merges that are found, the effort that they count, and the memory of refusals.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::plan::problem::cost::cost;
use crate::plan::tests::problems::arrays::arrays;

/// Nodes, given as groups and operands, after `n_roots` root variables. All variables are results.
fn problem(n_roots: usize, nodes: &[(i32, Vec<u32>)]) -> FusionProblem {
    let nodes: Vec<(i32, &[u32])> =
        nodes.iter().map(|(group, reads)| (*group, &reads[..])).collect();
    let mut arrays = arrays(n_roots, &nodes, u32::MAX);
    arrays.results.fill(true);
    FusionProblem::new(arrays, &Budget::unlimited()).unwrap()
}

#[test]
fn growth_counts_what_it_copies() {
    // Each of the readers has an operand of its own, which all later merges copy.
    let n: u32 = 2000;
    let nodes: Vec<_> = (1..=n).map(|own| (0, vec![0, own])).collect();
    let problem = problem(1 + n as usize, &nodes);
    let unfused = || Partition::singletons(n as usize);
    let (partition, is_complete) =
        improve(&problem, unfused(), &Budget::unlimited().with_effort(1 << 40)).unwrap();
    assert!(is_complete && cost(&problem, &partition, &Budget::unlimited()).unwrap().kernels == 1);
    let n_copied = u64::from(n) * u64::from(n) / 2;
    assert!(
        !improve(&problem, unfused(), &Budget::unlimited().with_effort(n_copied / 2)).unwrap().1
    );
}

/// [`problem`] with a limit, in which only variable 0 brings siblings together.
fn limited(n_roots: usize, nodes: &[(i32, Vec<u32>)], limit: u32) -> FusionProblem {
    let mut arrays = problem(n_roots, nodes).arrays().clone();
    arrays.links = (0..arrays.n_variables).map(|v| if v == 0 { 0 } else { -1 }).collect();
    arrays.max_operands = limit;
    FusionProblem::new(arrays, &Budget::unlimited()).unwrap()
}

#[test]
fn readers_find_each_other_beyond_those_that_follow() {
    // Two readers of one operand, and between them some readers that are at the operand limit.
    for n_between in [3, 4, 5, 20] {
        let full = (0..n_between).map(|i| (0, vec![0, 1 + 2 * i, 2 + 2 * i]));
        let nodes: Vec<_> = [(0, vec![0])].into_iter().chain(full).chain([(0, vec![0])]).collect();
        let problem = limited(1 + 2 * n_between as usize, &nodes, 4);
        let unfused = Partition::singletons(nodes.len());
        let (partition, is_complete) =
            improve(&problem, unfused, &Budget::unlimited().with_effort(1 << 20)).unwrap();
        assert!(is_complete);
        assert_eq!(partition.members(0), [0, n_between + 1]);
    }
}

#[test]
fn readers_are_looked_at_again_when_there_are_fewer() {
    // Twenty pairs, each of which fits together and with nothing else, between the two nodes of a
    // further pair. These are too far from one another until each of the pairs is one kernel.
    let own = |pair: u32| vec![0, 1 + pair];
    let pairs = (1..=20).chain(1..=20).map(|pair| (0, own(pair)));
    let nodes: Vec<_> = [(0, own(0))].into_iter().chain(pairs).chain([(0, own(0))]).collect();
    let problem = limited(22, &nodes, 4);
    let unfused = Partition::singletons(nodes.len());
    let (partition, is_complete) =
        improve(&problem, unfused, &Budget::unlimited().with_effort(1 << 20)).unwrap();
    assert!(is_complete);
    assert_eq!(partition.names().count(), 21);
    assert_eq!(partition.members(0), [0, 41]);
}

#[test]
fn merging_ends_with_the_effort() {
    let nodes: Vec<_> = (0..100).map(|i| (0, vec![i])).collect();
    let problem = problem(1, &nodes);
    let unfused = Partition::singletons(nodes.len());
    let budget = Budget::unlimited();
    let mut merger = Merger::new(&problem, &unfused, &budget).unwrap();
    merger.push_producers().unwrap();
    budget.spend(budget.effort() - 10);
    merger.run().unwrap();
    assert!((1..=5).contains(&merger.n_merges), "{}", merger.n_merges);
    assert!(budget.is_spent());
}

#[test]
fn many_refusals_that_hold_do_not_end_it() {
    // Readers of one operand, each of which waits for the one before through a node that is not
    // fused.
    let n_waiting = 100;
    let nodes: Vec<_> =
        (0..n_waiting).flat_map(|i| [(0, vec![0, 2 * i]), (-1, vec![2 * i + 1])]).collect();
    let problem = problem(1, &nodes);
    let unfused = Partition::singletons(nodes.len());
    let budget = Budget::unlimited();
    let mut merger = Merger::new(&problem, &unfused, &budget).unwrap();
    merger.push_siblings(0, nodes.len()).unwrap();
    merger.run().unwrap();
    assert_eq!(merger.n_merges, 0);
    assert!(!budget.is_spent() && merger.refused_at.len() > TIDY_AT);
}

#[test]
fn what_is_refused_again_and_again_is_remembered_once() {
    // Readers of one operand that wait for one another through nodes that are not fused; then
    // others that wait for nothing and join the first. Each time the rest refuse it again.
    let (n_waiting, n_free) = (20, 600);
    let waiting = (0..n_waiting).flat_map(|i| [(0, vec![0, 2 * i]), (-1, vec![2 * i + 1])]);
    let nodes: Vec<_> = waiting.chain((0..n_free).map(|_| (0, vec![0]))).collect();
    let problem = problem(1, &nodes);
    let unfused = Partition::singletons(nodes.len());
    let budget = Budget::unlimited();
    let mut merger = Merger::new(&problem, &unfused, &budget).unwrap();
    merger.push_siblings(0, nodes.len()).unwrap();
    merger.run().unwrap();
    assert_eq!(merger.n_merges, n_free as usize);
    let most = (n_waiting * n_waiting) as usize;
    let n_remembered: usize = merger.refused.iter().map(Vec::capacity).sum();
    assert!(n_remembered <= 8 * most, "{n_remembered}");
    let n_refused = merger.refused_at.len();
    assert!(n_refused <= TIDY_AT + 2 * most, "{n_refused}");
}
