#![allow(clippy::expect_used)]

use super::layers::longest_bent;
use super::ordering::{Unordered, move_apart};
use super::*;
use crate::testing::dags;
use proptest::prelude::*;

const GAPS: Gaps = Gaps { columns: 40.0, nodes: 10.0, rows: 30.0 };

fn edges(graph: &Graph) -> (Vec<NodeId>, Vec<NodeId>) {
    graph.edges().unzip()
}

/// Different sizes, derived from the ids.
fn sizes(n_nodes: usize) -> (Vec<f64>, Vec<f64>) {
    let width = |i: usize| 20.0 + (i * 37 % 90) as f64;
    let height = |i: usize| 10.0 + (i * 53 % 60) as f64;
    ((0..n_nodes).map(width).collect(), (0..n_nodes).map(height).collect())
}

fn lay_out(graph: &Graph, vertex_limit: usize) -> Layout {
    let ((widths, heights), (sources, targets)) = (sizes(graph.n_nodes()), edges(graph));
    layered_layout(
        (&widths, &heights),
        (&sources, &targets),
        GAPS,
        vertex_limit,
        &Budget::unlimited(),
    )
    .expect("the graph is acyclic")
}

fn chain(n_nodes: u32) -> Graph {
    let sources: Vec<u32> = (0..n_nodes - 1).collect();
    let targets: Vec<u32> = (1..n_nodes).collect();
    Graph::new(n_nodes as usize, &sources, &targets, &Budget::unlimited())
        .expect("edges are in range")
}

/// Asserts the properties of every drawing.
fn check(graph: &Graph, layout: &Layout) {
    let (widths, heights) = sizes(graph.n_nodes());
    let n_vertices = layout.x.len();
    assert!(n_vertices >= graph.n_nodes());
    assert!(layout.x.iter().chain(&layout.y).all(|c| c.is_finite() && *c >= 0.0));
    for a in 0..graph.n_nodes() {
        for b in 0..a {
            let across = (layout.x[a] - layout.x[b]).abs() - (widths[a] + widths[b]) / 2.0;
            let along = (layout.y[a] - layout.y[b]).abs() - (heights[a] + heights[b]) / 2.0;
            assert!(across >= GAPS.columns - 1e-6 || along >= GAPS.nodes - 1e-6, "{a} over {b}");
        }
    }
    let place = |v: u32| (layout.pieces[v as usize], layout.columns[v as usize]);
    let (sources, targets) = edges(graph);
    assert_eq!(layout.bends.len(), sources.len() + 1);
    assert_eq!(layout.bends[sources.len()] as usize, n_vertices);
    for (i, (&source, &target)) in sources.iter().zip(&targets).enumerate() {
        let bends: Vec<u32> = (layout.bends[i]..layout.bends[i + 1]).collect();
        let mut path = vec![source];
        path.extend(&bends);
        path.push(target);
        for pair in path.windows(2) {
            let (from, to) = (place(pair[0]), place(pair[1]));
            assert!(from < to, "edges go on: {from:?} -> {to:?}");
            assert!(bends.is_empty() || from.0 != to.0 || from.1 + 1 == to.1);
            assert!(from.0 != to.0 || layout.x[pair[0] as usize] < layout.x[pair[1] as usize]);
        }
    }
}

proptest! {
    #[test]
    fn nothing_overlaps_and_edges_go_to_the_right(graph in dags(40)) {
        let layout = lay_out(&graph, VERTEX_LIMIT);
        check(&graph, &layout);
        prop_assert_eq!(&layout, &lay_out(&graph, VERTEX_LIMIT));
    }

    #[test]
    fn long_graphs_go_on_in_the_next_row(
        n_nodes in 25u32..90,
        skips in proptest::collection::vec((any::<proptest::sample::Index>(), 2u32..5), 0..12),
    ) {
        let (mut sources, mut targets): (Vec<u32>, Vec<u32>) =
            (1..n_nodes).map(|node| (node - 1, node)).unzip();
        for (start, length) in skips {
            let start = start.index(n_nodes as usize) as u32;
            if start + length < n_nodes {
                sources.push(start);
                targets.push(start + length);
            }
        }
        let graph = Graph::new(n_nodes as usize, &sources, &targets, &Budget::unlimited()).expect("edges are in range");
        let layout = lay_out(&graph, VERTEX_LIMIT);
        check(&graph, &layout);
        prop_assert!(layout.pieces.iter().any(|&piece| piece > 0));
    }

    #[test]
    fn the_same_without_the_library(graph in dags(40)) {
        check(&graph, &lay_out(&graph, 0));
    }

    #[test]
    fn the_library_fails_on_nothing(graph in dags(60)) {
        let (sources, targets) = edges(&graph);
        let layers = layers(&graph, &Budget::unlimited()).expect("the graph is acyclic");
        let layered = LayeredGraph::new(layers, (&sources, &targets));
        let heights = vec![10.0; layered.layers.len()];
        for vertices in layered.components().iter().filter(|vertices| vertices.len() > 2) {
            let links: Vec<(u32, u32)> = layered
                .links
                .iter()
                .filter(|(source, _)| vertices.binary_search(source).is_ok())
                .copied()
                .collect();
            let unordered = Unordered { vertices, links: &links, heights: &heights };
            prop_assert!(unordered.by_library().is_some());
        }
    }

    #[test]
    fn centres_moved_apart_are_the_nearest(
        items in proptest::collection::vec((-50.0..50.0, 0.0..20.0), 1..6)
    ) {
        let (mut wanted, heights): (Vec<f64>, Vec<f64>) = items.into_iter().unzip();
        wanted.sort_by(f64::total_cmp);
        let apart = move_apart(&wanted, &heights, 3.0);
        let distance = |ys: &[f64]| -> f64 {
            ys.iter().zip(&wanted).map(|(a, b)| (a - b).powi(2)).sum()
        };
        let is_apart = |ys: &[f64]| {
            (1..ys.len()).all(|i| ys[i] - ys[i - 1] >= (heights[i] + heights[i - 1]) / 2.0 + 3.0 - 1e-9)
        };
        prop_assert!(is_apart(&apart));
        // The problem is convex: no small move of a run of neighbors may improve on the solution.
        for start in 0..apart.len() {
            for end in start + 1..=apart.len() {
                for step in [-1e-3, 1e-3] {
                    let mut moved = apart.clone();
                    moved[start..end].iter_mut().for_each(|y| *y += step);
                    prop_assert!(!is_apart(&moved) || distance(&moved) >= distance(&apart) - 1e-9);
                }
            }
        }
    }
}

#[test]
fn small_graphs() {
    for (n_nodes, sources, targets) in [
        (0, vec![], vec![]),
        (1, vec![], vec![]),
        (5, vec![], vec![]),
        (2, vec![0], vec![1]),
        (3, vec![0, 0, 1], vec![1, 2, 2]),
        (2, vec![0, 0, 0], vec![1, 1, 1]),
    ] {
        let graph = Graph::new(n_nodes, &sources, &targets, &Budget::unlimited())
            .expect("edges are in range");
        check(&graph, &lay_out(&graph, VERTEX_LIMIT));
    }
}

#[test]
fn a_path_as_long_as_the_library_takes_does_not_overflow_the_stack() {
    let graph = chain(VERTEX_LIMIT as u32);
    let layout = lay_out(&graph, VERTEX_LIMIT);
    let n_rows = 1 + layout.pieces.iter().max().expect("there are nodes");
    assert!(n_rows > 20, "{n_rows} rows");
}

#[test]
fn short_paths_stay_in_one_row() {
    for n_nodes in [2, 10, 24] {
        assert!(lay_out(&chain(n_nodes), VERTEX_LIMIT).pieces.iter().all(|&piece| piece == 0));
    }
    let layout = lay_out(&chain(400), VERTEX_LIMIT);
    let height = layout.y.iter().copied().fold(0.0, f64::max);
    let width = layout.x.iter().copied().fold(0.0, f64::max);
    assert!((0.8..4.0).contains(&(width / height)), "{width} by {height}");
}

#[test]
fn wide_graphs() {
    let n_nodes = 3000u32;
    let middle: Vec<u32> = (1..n_nodes - 1).collect();
    let hub = vec![0; middle.len()];
    let sink = vec![n_nodes - 1; middle.len()];
    let (sources, targets) = ([hub, middle.clone()].concat(), [middle, sink].concat());
    let graph = Graph::new(n_nodes as usize, &sources, &targets, &Budget::unlimited())
        .expect("edges are in range");
    let layout = lay_out(&graph, VERTEX_LIMIT);
    assert_eq!(layout.columns.iter().max(), Some(&2));
    assert_eq!(lay_out(&chain(100_000), VERTEX_LIMIT).x.len(), 100_000);
    assert_eq!(
        lay_out(
            &Graph::new(20_000, &[], &[], &Budget::unlimited()).expect("no edges"),
            VERTEX_LIMIT
        )
        .x
        .len(),
        20_000
    );
}

#[test]
fn edges_that_are_too_long_for_bends_have_none() {
    assert_eq!(longest_bent(&[1, 1, 5, 5, 9], 8), 5);
    assert_eq!(longest_bent(&[1, 1, 5, 5, 9], 7), 1);
    assert_eq!(longest_bent(&[1, 1, 5, 5, 9], 16), 9);
    assert_eq!(longest_bent(&[], 0), 1);
}

#[test]
fn bad_input_is_refused() {
    let layout = |widths: &[f64], sources: &[u32], targets: &[u32]| {
        let heights = [1.0, 1.0];
        layered_layout(
            (widths, &heights),
            (sources, targets),
            GAPS,
            VERTEX_LIMIT,
            &Budget::unlimited(),
        )
        .expect_err("bad input")
        .kind()
    };
    assert_eq!(layout(&[1.0], &[], &[]), "length-mismatch");
    assert_eq!(layout(&[1.0, f64::NAN], &[], &[]), "inconsistent");
    assert_eq!(layout(&[1.0, -1.0], &[], &[]), "inconsistent");
    assert_eq!(layout(&[1.0, 1.0], &[0], &[0]), "self-loop");
    assert_eq!(layout(&[1.0, 1.0], &[0], &[2]), "edge-out-of-range");
    assert_eq!(layout(&[1.0, 1.0], &[0, 1], &[1, 0]), "cycle");
}

#[test]
fn layouts_can_be_interrupted() {
    let sizes = vec![1.0; 10_000];
    let targets: Vec<u32> = (1..10_000).collect();
    let never = Budget::asking(std::rc::Rc::new(|| false));
    let edges = (&vec![0; 9999][..], &targets[..]);
    let layout = layered_layout((&sizes, &sizes), edges, GAPS, 0, &never);
    assert_eq!(layout, Err(Error::Interrupted));
}
