//! Merges compared with quotients that are built anew, and the edges that they read.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::testing::{dags, is_acyclic, reachability};
use proptest::prelude::*;

fn singletons(graph: &Graph) -> Vec<BlockId> {
    (0..graph.n_nodes() as BlockId).collect()
}

/// Whether merging two blocks of a partition leaves the quotient acyclic, computed from scratch.
fn naive_can_merge(graph: &Graph, blocks: &[BlockId], a: BlockId, b: BlockId) -> bool {
    let merged: Vec<_> = blocks.iter().map(|&c| if c == b { a } else { c }).collect();
    is_acyclic(&graph.contracted(&merged, &Budget::unlimited()).unwrap())
}

/// The invariants that hold between calls.
fn check(quotient: &mut Quotient, graph: &Graph) {
    let live: Vec<_> = quotient.blocks().collect();
    assert_eq!(live.len(), quotient.n_blocks());
    let blocks: Vec<_> =
        (0..graph.n_nodes() as NodeId).map(|node| quotient.block_of(node)).collect();
    for &block in &live {
        assert_eq!(quotient.find(block), block);
        let mut after: Vec<_> = graph
            .edges()
            .map(|(a, b)| (blocks[a as usize], blocks[b as usize]))
            .filter(|&(a, b)| a == block && b != block)
            .map(|edge| edge.1)
            .collect();
        after.sort_unstable();
        after.dedup();
        let mut row = Vec::new();
        quotient.successors(block, &mut row, &Budget::unlimited()).unwrap();
        row.sort_unstable();
        assert_eq!(row, after);
        quotient.predecessors(block, &mut row, &Budget::unlimited()).unwrap();
        for &other in &row {
            let mut back = Vec::new();
            quotient.successors(other, &mut back, &Budget::unlimited()).unwrap();
            assert!(back.contains(&block));
        }
        for other in after {
            quotient.predecessors(other, &mut row, &Budget::unlimited()).unwrap();
            assert!(row.contains(&block));
        }
    }
    for (a, b) in graph.edges() {
        let (a, b) = (blocks[a as usize], blocks[b as usize]);
        assert!(a == b || quotient.position(a) < quotient.position(b));
    }
    let partition = quotient.partition();
    assert!(graph.edges().all(|(a, b)| partition[a as usize] <= partition[b as usize]));
}

#[test]
fn a_joint_cycle_is_refused() {
    // a1 -> b1, b2 -> a2: {a1, a2} and {b1, b2} are legal alone, but not together.
    let graph = Graph::new(4, &[0, 3], &[1, 2], &Budget::unlimited()).unwrap();
    let mut quotient =
        Quotient::from_blocks(&graph, &singletons(&graph), &Budget::unlimited()).unwrap();
    assert!(quotient.can_merge(1, 3, &Budget::unlimited()).unwrap());
    assert!(quotient.can_merge(0, 2, &Budget::unlimited()).unwrap());
    let block = quotient.merge(0, 2, &Budget::unlimited()).unwrap();
    assert!(!quotient.can_merge(1, 3, &Budget::unlimited()).unwrap());
    assert_eq!(
        quotient.merge(1, 3, &Budget::unlimited()),
        Err(Error::Contraction { through: block })
    );
    check(&mut quotient, &graph);
}

#[test]
fn a_partition_with_a_cycle_is_refused() {
    let graph = Graph::new(4, &[0, 3], &[1, 2], &Budget::unlimited()).unwrap();
    let error = Quotient::from_blocks(&graph, &[0, 1, 0, 1], &Budget::unlimited()).unwrap_err();
    assert_eq!(error, Error::Cycle { nodes: vec![0, 1] });
}

#[test]
fn block_ids_must_be_dense() {
    let graph = Graph::new(3, &[], &[], &Budget::unlimited()).unwrap();
    assert!(matches!(
        Quotient::from_blocks(&graph, &[0, 2, 2], &Budget::unlimited()),
        Err(Error::Inconsistent(_))
    ));
    assert!(matches!(
        Quotient::from_blocks(&graph, &[0, 3, 1], &Budget::unlimited()),
        Err(Error::OutOfRange { .. })
    ));
    assert!(matches!(
        Quotient::from_blocks(&graph, &[0], &Budget::unlimited()),
        Err(Error::LengthMismatch { .. })
    ));
}

#[test]
fn the_empty_graph_has_no_blocks() {
    let graph = Graph::new(0, &[], &[], &Budget::unlimited()).unwrap();
    let mut quotient = Quotient::from_blocks(&graph, &[], &Budget::unlimited()).unwrap();
    assert_eq!(quotient.n_blocks(), 0);
    assert!(quotient.partition().is_empty());
}

#[test]
fn a_hub_is_not_read_when_the_other_side_is_small() {
    // Node 0 feeds all others; each of them alone has no other predecessor.
    let n = 10_000;
    let graph = Graph::new(
        n as usize,
        &vec![0; n as usize - 1],
        &(1..n).collect::<Vec<_>>(),
        &Budget::unlimited(),
    );
    let graph = graph.unwrap();
    let mut quotient =
        Quotient::from_blocks(&graph, &singletons(&graph), &Budget::unlimited()).unwrap();
    for other in (1..n).rev() {
        assert!(quotient.can_merge(0, other, &Budget::unlimited()).unwrap());
    }
    assert_eq!(quotient.n_visited(), u64::from(n) - 1);
    for other in (1..n).rev() {
        quotient.merge(0, other, &Budget::unlimited()).unwrap();
    }
    assert_eq!(quotient.n_blocks(), 1);
    assert!(quotient.n_visited() < 3 * u64::from(n));
}

#[test]
fn a_hub_is_not_read_from_behind_either() {
    // All others feed the last node; each of them alone has no other successor.
    let n = 2000;
    let graph = Graph::new(
        n as usize,
        &(0..n - 1).collect::<Vec<_>>(),
        &vec![n - 1; n as usize - 1],
        &Budget::unlimited(),
    );
    let graph = graph.unwrap();
    let mut quotient =
        Quotient::from_blocks(&graph, &singletons(&graph), &Budget::unlimited()).unwrap();
    for other in 0..n - 1 {
        assert!(quotient.can_merge(other, n - 1, &Budget::unlimited()).unwrap());
    }
    assert_eq!(quotient.n_visited(), u64::from(n) - 1);
}

#[test]
fn a_search_is_not_repeated_and_the_larger_block_stays() {
    let graph = Graph::new(4, &[0, 1, 2], &[1, 2, 3], &Budget::unlimited()).unwrap();
    let mut quotient =
        Quotient::from_blocks(&graph, &singletons(&graph), &Budget::unlimited()).unwrap();
    assert!(quotient.can_merge(1, 2, &Budget::unlimited()).unwrap());
    let n_visited = quotient.n_visited();
    let block = quotient.merge(1, 2, &Budget::unlimited()).unwrap();
    assert_eq!(quotient.n_visited(), n_visited);
    assert_eq!(quotient.merge(0, 1, &Budget::unlimited()).unwrap(), block);
    assert_eq!(quotient.merge(3, 0, &Budget::unlimited()).unwrap(), block);
}

#[test]
fn what_is_read_counts_with_its_length() {
    // Node 0 feeds all others, and these feed the last: each block between has rows of one edge.
    let n: u32 = 1000;
    let middle = || 1..n - 1;
    let sources: Vec<_> = middle().map(|_| 0).chain(middle()).collect();
    let targets: Vec<_> = middle().chain(middle().map(|_| n - 1)).collect();
    let graph = Graph::new(n as usize, &sources, &targets, &Budget::unlimited()).unwrap();
    let mut quotient =
        Quotient::from_blocks(&graph, &singletons(&graph), &Budget::unlimited()).unwrap();
    let mut row = Vec::new();
    quotient.successors(1, &mut row, &Budget::unlimited()).unwrap();
    assert_eq!((quotient.n_visited(), quotient.n_read()), (1, 2));
    quotient.successors(0, &mut row, &Budget::unlimited()).unwrap();
    assert_eq!((quotient.n_visited(), quotient.n_read()), (2, 2 + u64::from(n) - 1));
    quotient.merge(1, 2, &Budget::unlimited()).unwrap();
    let before = quotient.n_read();
    quotient.successors(1, &mut row, &Budget::unlimited()).unwrap();
    // Two segments of one edge each, which this reading makes one.
    assert_eq!(quotient.n_read(), before + 4);
    quotient.successors(1, &mut row, &Budget::unlimited()).unwrap();
    assert_eq!(quotient.n_read(), before + 6);
}

#[test]
fn a_chain_does_not_grow_by_what_is_empty() {
    // Node 0 feeds all others, of which only node 1 feeds another, the last.
    let n: u32 = 1000;
    let sources: Vec<_> = vec![0; n as usize - 1].into_iter().chain([1]).collect();
    let targets: Vec<_> = (1..n).chain([n - 1]).collect();
    let graph = Graph::new(n as usize, &sources, &targets, &Budget::unlimited()).unwrap();
    let mut quotient =
        Quotient::from_blocks(&graph, &singletons(&graph), &Budget::unlimited()).unwrap();
    for other in 2..n - 1 {
        quotient.merge(1, other, &Budget::unlimited()).unwrap();
    }
    let mut segments = 0;
    let mut segment = quotient.find(1);
    while segment != NONE {
        segments += 1;
        segment = quotient.successors.next[segment as usize];
    }
    assert!(segments <= 2);
    check(&mut quotient, &graph);
}

#[test]
fn epochs_wrap() {
    let graph = Graph::new(3, &[0, 1], &[1, 2], &Budget::unlimited()).unwrap();
    let mut quotient =
        Quotient::from_blocks(&graph, &singletons(&graph), &Budget::unlimited()).unwrap();
    quotient.scratch.epoch = u32::MAX - 7;
    quotient.scratch.row_epoch = u32::MAX - 3;
    for _ in 0..10 {
        assert!(!quotient.can_merge(0, 2, &Budget::unlimited()).unwrap());
        assert!(quotient.can_merge(0, 1, &Budget::unlimited()).unwrap());
    }
    assert!(quotient.scratch.epoch < 100 && quotient.scratch.row_epoch < 100);
}

proptest! {
    #[test]
    fn merges_agree_with_recomputation(
        graph in dags(12),
        picks in proptest::collection::vec((any::<u32>(), any::<u32>(), any::<bool>()), 0..40)
    ) {
        let mut quotient = Quotient::from_blocks(&graph, &singletons(&graph), &Budget::unlimited()).unwrap();
        let n_nodes = graph.n_nodes() as u32;
        for (a, b, merge) in picks {
            if n_nodes == 0 {
                break;
            }
            let (a, b) = (a % n_nodes, b % n_nodes);
            let blocks: Vec<_> = (0..n_nodes).map(|node| quotient.block_of(node)).collect();
            let (block_a, block_b) = (quotient.block_of(a), quotient.block_of(b));
            let legal = naive_can_merge(&graph, &blocks, block_a, block_b);
            if merge {
                let merged = quotient.merge(a, b, &Budget::unlimited());
                prop_assert_eq!(merged.is_ok(), legal);
                prop_assert!(!legal || quotient.block_of(a) == quotient.block_of(b));
            } else {
                prop_assert_eq!(quotient.can_merge(a, b, &Budget::unlimited()).unwrap(), legal);
                prop_assert_eq!(quotient.can_merge(b, a, &Budget::unlimited()).unwrap(), legal);
            }
            check(&mut quotient, &graph);
        }
    }

    #[test]
    fn any_start_is_accepted_exactly_when_acyclic(
        (graph, picks) in dags(10).prop_flat_map(|graph| {
            let picks = proptest::collection::vec(0u32..4, graph.n_nodes());
            (Just(graph), picks)
        })
    ) {
        let mut ids: Vec<u32> = picks.clone();
        ids.sort_unstable();
        ids.dedup();
        let blocks: Vec<u32> =
            picks.iter().map(|pick| ids.binary_search(pick).unwrap() as u32).collect();
        let contracted = graph.contracted(&blocks, &Budget::unlimited()).unwrap();
        match Quotient::from_blocks(&graph, &blocks, &Budget::unlimited()) {
            Ok(mut quotient) => check(&mut quotient, &graph),
            Err(error) => {
                let is_cycle = matches!(error, Error::Cycle { .. });
                prop_assert!(is_cycle);
                let reach = reachability(&contracted);
                prop_assert!((0..reach.len()).any(|block| reach[block][block]));
            }
        }
    }
}
