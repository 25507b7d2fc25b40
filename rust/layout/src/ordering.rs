//! The order of the vertices in their columns, and their heights.
//!
//! # Problem
//! Few edges should cross, and those over several columns should be straight; nothing may overlap.
//! Minimizing the crossings of two columns is NP-hard already.
//!
//! # Approach
//! The crate `rust-sugiyama` reduces crossings and assigns coordinates (barycentre sweeps; Brandes and
//! Köpf). Components above a limit, or on which the library fails, are ordered by two barycentre
//! sweeps. Vertices that still overlap are moved apart, by least squares.
//!
//! # Rejected
//! The other libraries that were measured; see the module above.
//!
//! # Source
//! U. Brandes, B. Köpf, "Fast and simple horizontal coordinate assignment", Graph Drawing 2001, for
//! the library's coordinates; K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of
//! hierarchical system structures", IEEE Transactions on Systems, Man, and Cybernetics 11 (1981), for
//! barycentre sweeps; M. Ayer and others, "An empirical distribution function for sampling with
//! incomplete information", Annals of Mathematical Statistics 26 (1955), for pooling.

use std::thread;

use rust_sugiyama::configure::{Config, CrossingMinimization, RankingType};

use super::BEND_GAP;
use super::layers::LayeredGraph;
use pytensor_fuse_core::{Budget, Graph, Result};

/// Bytes of stack for the library per vertex: four times the measured maximum in debug builds.
const STACK_PER_VERTEX: usize = 2048;

/// Maximum number of vertices for which neighbors are also exchanged one by one to reduce
/// crossings.
const EXCHANGE_LIMIT: usize = 500;

/// A connected component with its vertices in their final order and heights.
pub(super) struct Component {
    /// Vertices of each column from the top, from the left column on.
    pub(super) columns: Vec<Vec<u32>>,
    /// The centres of these vertices.
    pub(super) ys: Vec<Vec<f64>>,
    /// Links from each column to the next.
    pub(super) n_links: Vec<usize>,
}

impl Component {
    /// Orders the component of `layered` that has these vertices.
    ///
    /// # Arguments
    /// * `vertices`: ascending.
    /// * `heights`: of all vertices of the graph, with their gaps.
    /// * `vertex_limit`: the library lays out at most this many vertices.
    ///
    /// # Complexity
    /// That of the library, or O(m log m) without it.
    pub(super) fn new(
        layered: &LayeredGraph,
        vertices: Vec<u32>,
        heights: &[f64],
        vertex_limit: usize,
        budget: &Budget,
    ) -> Result<Self> {
        let layer = |vertex: u32| layered.layers[vertex as usize];
        let n_layers = 1 + vertices.iter().map(|&vertex| layer(vertex)).max().unwrap_or(0);
        let column = |vertex: u32| (n_layers - 1 - layer(vertex)) as usize;
        let links: Vec<(u32, u32)> = vertices
            .iter()
            .flat_map(|&vertex| {
                let start = layered.links.partition_point(|&(source, _)| source < vertex);
                let of_vertex = layered.links[start..].iter();
                of_vertex.take_while(move |&&(source, _)| source == vertex).copied()
            })
            .collect();
        let mut n_links = vec![0; n_layers as usize];
        for &(source, _) in &links {
            n_links[column(source)] += 1;
        }
        let unordered = Unordered { vertices: &vertices, links: &links, heights };
        let by_library = (links.len() > 1 && vertices.len() <= vertex_limit)
            .then(|| unordered.by_library())
            .flatten();
        let wanted = match by_library {
            Some(wanted) => wanted,
            None => unordered.by_sweeps(n_layers as usize, column, budget)?,
        };
        let mut columns = vec![Vec::new(); n_layers as usize];
        for (&vertex, &y) in vertices.iter().zip(&wanted) {
            columns[column(vertex)].push((y, vertex));
        }
        let mut ys = Vec::with_capacity(columns.len());
        let columns: Vec<Vec<u32>> = columns
            .into_iter()
            .map(|mut column| {
                column.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                let (wanted, column): (Vec<f64>, Vec<u32>) = column.into_iter().unzip();
                ys.push(move_apart(&wanted, &unordered.heights_of(&column), BEND_GAP));
                column
            })
            .collect();
        Ok(Self { columns, ys, n_links })
    }

    /// Number of nodes and bends.
    pub(super) fn n_vertices(&self) -> usize {
        self.columns.iter().map(Vec::len).sum()
    }
}

/// A component whose vertices have columns, but no order within them yet.
pub(super) struct Unordered<'a> {
    /// Ascending.
    pub(super) vertices: &'a [u32],
    pub(super) links: &'a [(u32, u32)],
    /// The heights of all vertices, with their gaps.
    pub(super) heights: &'a [f64],
}

impl Unordered<'_> {
    fn heights_of(&self, vertices: &[u32]) -> Vec<f64> {
        vertices.iter().map(|&vertex| self.heights[vertex as usize]).collect()
    }

    /// The links, by positions in `vertices`.
    fn links_by_position(&self) -> Vec<(u32, u32)> {
        let position = |vertex: u32| self.vertices.partition_point(|&other| other < vertex) as u32;
        self.links.iter().map(|&(a, b)| (position(a), position(b))).collect()
    }

    /// The library's coordinate of each vertex; None if it fails.
    pub(super) fn by_library(&self) -> Option<Vec<f64>> {
        let n_vertices = self.vertices.len();
        // The edges are reversed, so that the library's ranks from the top are our layers from the
        // sinks.
        let edges: Vec<(u32, u32)> =
            self.links_by_position().into_iter().map(|(a, b)| (b, a)).collect();
        let sizes: Vec<(u32, (f64, f64))> =
            (0u32..).zip(self.heights_of(self.vertices).into_iter().map(|h| (h, 1.0))).collect();
        let config = Config {
            minimum_length: 1,
            vertex_spacing: BEND_GAP,
            dummy_vertices: true,
            dummy_size: 1.0,
            ranking_type: RankingType::Up,
            c_minimization: CrossingMinimization::Barycenter,
            transpose: n_vertices <= EXCHANGE_LIMIT,
        };
        let places = thread::Builder::new()
            .stack_size((1 << 20) + STACK_PER_VERTEX * n_vertices)
            .spawn(move || rust_sugiyama::from_vertices_and_edges(&sizes, &edges, &config))
            .ok()?
            .join()
            .ok()?;
        let mut ys = vec![f64::NAN; n_vertices];
        for (vertex, (y, _)) in places.into_iter().flat_map(|(places, _, _)| places) {
            *ys.get_mut(vertex)? = y;
        }
        ys.iter().all(|y| y.is_finite()).then_some(ys)
    }

    /// A coordinate of each vertex by two sweeps, from the right and then from the left: each column is
    /// sorted by the mean coordinate of the linked vertices in the column before.
    fn by_sweeps(
        &self,
        n_columns: usize,
        column: impl Fn(u32) -> usize,
        budget: &Budget,
    ) -> Result<Vec<f64>> {
        let mut columns = vec![Vec::new(); n_columns];
        for (position, &vertex) in (0u32..).zip(self.vertices) {
            columns[column(vertex)].push(position);
        }
        let n_vertices = self.vertices.len();
        let (sources, targets): (Vec<_>, Vec<_>) = self.links_by_position().into_iter().unzip();
        let graph = Graph::new(n_vertices, &sources, &targets, budget)?;
        let mut ys = vec![0.0; n_vertices];
        let mut sweep = |positions: &[u32], links: &Graph| -> Result<()> {
            let n_linked: usize = positions.iter().map(|&at| links.successors(at).len()).sum();
            budget.check(64 * positions.len() + n_linked)?;
            let mean = |&position: &u32| {
                let linked = links.successors(position);
                let sum: f64 = linked.iter().map(|&other| ys[other as usize]).sum();
                let n_linked = linked.len() as f64;
                if linked.is_empty() { ys[position as usize] } else { sum / n_linked }
            };
            let mut wanted: Vec<(f64, u32)> =
                positions.iter().map(|position| (mean(position), *position)).collect();
            wanted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let (wanted, sorted): (Vec<f64>, Vec<u32>) = wanted.into_iter().unzip();
            let vertices: Vec<u32> =
                sorted.iter().map(|&position| self.vertices[position as usize]).collect();
            let apart = move_apart(&wanted, &self.heights_of(&vertices), BEND_GAP);
            for (&position, y) in sorted.iter().zip(apart) {
                ys[position as usize] = y;
            }
            Ok(())
        };
        columns.iter().rev().try_for_each(|column| sweep(column, &graph))?;
        let reversed = graph.transposed();
        columns.iter().try_for_each(|column| sweep(column, &reversed))?;
        Ok(ys)
    }
}

/// The centres that are nearest to the wanted ones, by least squares, keep their order, and leave `gap`
/// between neighbors. O(n).
///
/// This is isotonic regression: after subtracting the heights of the earlier items, the centres must not
/// decrease, and decreasing runs are pooled at their mean.
pub(super) fn move_apart(wanted: &[f64], heights: &[f64], gap: f64) -> Vec<f64> {
    let mut offsets = Vec::with_capacity(wanted.len());
    let mut pools: Vec<(f64, usize)> = Vec::new();
    let mut offset = 0.0;
    for (i, (&y, &height)) in wanted.iter().zip(heights).enumerate() {
        if i > 0 {
            offset += (heights[i - 1] + height) / 2.0 + gap;
        }
        offsets.push(offset);
        let mut pool = (y - offset, 1);
        while let Some(&(mean, n)) = pools.last() {
            if mean <= pool.0 {
                break;
            }
            let total = n + pool.1;
            pool = ((mean * n as f64 + pool.0 * pool.1 as f64) / total as f64, total);
            pools.pop();
        }
        pools.push(pool);
    }
    let means = pools.iter().flat_map(|&(mean, n)| std::iter::repeat_n(mean, n));
    means.zip(offsets).map(|(mean, offset)| mean + offset).collect()
}
