//! Layered drawings of directed acyclic graphs, from left to right.
//!
//! # Method
//! - A node stands in the column that its longest path to a sink gives, so that what is read once
//!   stands beside its reader.
//! - An edge over several columns gets a *bend* in each column between its ends, which takes part
//!   in the layout as a small node.
//! - Crossing reduction and coordinates within the columns are the crate `rust-sugiyama`'s
//!   (barycentre sweeps; Brandes and Köpf, "Fast and simple horizontal coordinate assignment",
//!   2001). What it leaves overlapping is moved apart, by least squares.
//! - Connected components are laid in rows, as words in lines. A long component is broken between
//!   two columns that few edges connect, and goes on in the next row.
//!
//! # Choice of the library
//! Measured at 10,000 nodes with 20,000 edges, whose sources are among the 20 nodes before the
//! target ("near") or any nodes before it ("far"), on two shared cores:
//!
//! - `rust-sugiyama` 0.4 takes 0.3 s (near) and 4 s (far), bends included, gives the same drawing in
//!   every process, and failed on no graph but for its stack: it recurses along paths, and 100,000
//!   nodes in a row overflow 8 MiB. So it runs on a thread of its own whose stack is large enough
//!   for [`VERTEX_LIMIT`], up to which the far graphs took 0.7 s. Its network simplex for the columns
//!   takes 13 s (near), its search for components 35 s for isolated nodes, and it does not say where
//!   long edges go: hence columns, components and bends are our own.
//! - `dagre` 0.1 (a port of dagre.js) takes 2 s for 500 nodes with 1,000 edges.
//!
//! Components above the limit, or on which the library fails, are ordered by two barycentre sweeps
//! alone.

use std::thread;

use rust_sugiyama::configure::{Config, CrossingMinimization, RankingType};

use crate::error::{Error, Result};
use crate::graph::{Graph, NodeId, check_same_length};
use crate::interrupt;
use crate::quotient::find;
use crate::toposort::toposort;

/// Nodes and bends of a component up to which the library lays it out.
pub const VERTEX_LIMIT: usize = 12_000;

/// Bytes of stack that the library may take per vertex: four times what it took at most, in debug
/// builds.
const STACK_PER_VERTEX: usize = 2048;

/// Vertices up to which neighbours are also exchanged one by one to reduce crossings.
const EXCHANGE_LIMIT: usize = 500;

/// Height of a bend.
const BEND_HEIGHT: f64 = 4.0;

/// What is left free beside a bend; less than between nodes, so that edges run side by side.
const BEND_GAP: f64 = 4.0;

/// Width of the whole drawing over its height, as far as rows can make it.
const ASPECT: f64 = 1.7;

/// Columns up to which a component is never cut.
const COLUMNS_UNCUT: usize = 24;

/// Edges that may connect one row of a component with the next.
const EDGES_BETWEEN_ROWS: usize = 3;

/// What stands between the parts of a drawing, in the unit of the sizes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gaps {
    /// Between two columns.
    pub columns: f64,
    /// Between two nodes of a column.
    pub nodes: f64,
    /// Between two rows.
    pub rows: f64,
}

/// Where everything stands. Vertices are the nodes, then the bends.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    /// Centre of each vertex; x grows to the right, y downwards, both from 0.
    pub x: Vec<f64>,
    /// The same.
    pub y: Vec<f64>,
    /// For each vertex the piece of a component that it is in. Pieces are numbered in the order in
    /// which they are laid in rows.
    pub pieces: Vec<u32>,
    /// The column of each vertex in its piece, from the left.
    pub columns: Vec<u32>,
    /// The bends of edge `i` are the vertices from `bends[i]` to `bends[i + 1]`, from its source to
    /// its target. An edge that is very long has none, and is to be drawn straight.
    pub bends: Vec<u32>,
    /// A row ends where the next piece would exceed this.
    pub row_width: f64,
}

/// Lays out an acyclic graph whose nodes have the given widths and heights.
///
/// # Errors
/// Those of [`Graph::new`] and [`toposort`]; [`Error::LengthMismatch`] if `widths` and `heights`
/// differ in length, [`Error::Inconsistent`] if one of them is negative or not finite.
///
/// # Complexity
/// O(n + m) beside the library's sweeps, which take O(m log m) each; see the module for times.
///
/// # Examples
/// ```
/// use pytensor_fuse_core::layout::{Gaps, VERTEX_LIMIT, layered_layout};
///
/// // 0 -> 1 -> 2 and 0 -> 2: the long edge has one bend, beside 1.
/// let sizes = [10.0, 10.0, 10.0];
/// let gaps = Gaps { columns: 20.0, nodes: 5.0, rows: 30.0 };
/// let edges = (&[0, 1, 0][..], &[1, 2, 2][..]);
/// let layout = layered_layout((&sizes, &sizes), edges, gaps, VERTEX_LIMIT)?;
/// assert_eq!(layout.x, [5.0, 35.0, 65.0, 35.0]);
/// assert_eq!(layout.bends, [3, 3, 3, 4]);
/// # Ok::<(), pytensor_fuse_core::Error>(())
/// ```
pub fn layered_layout(
    (widths, heights): (&[f64], &[f64]),
    (sources, targets): (&[NodeId], &[NodeId]),
    gaps: Gaps,
    vertex_limit: usize,
) -> Result<Layout> {
    check_same_length(("widths", widths.len()), ("heights", heights.len()))?;
    let all = widths.iter().chain(heights).chain([&gaps.columns, &gaps.nodes, &gaps.rows]);
    if let Some(size) = all.copied().find(|size| !size.is_finite() || *size < 0.0) {
        return Err(Error::Inconsistent(format!("{size} is no size")));
    }
    let graph = Graph::new(widths.len(), sources, targets)?;
    let layers = layers(&graph)?;
    let skeleton = Skeleton::new(layers, (sources, targets));
    // Nodes carry the rest of their gap with them.
    let mut spaced: Vec<f64> =
        heights.iter().map(|height| height + (gaps.nodes - BEND_GAP).max(0.0)).collect();
    spaced.resize(skeleton.layers.len(), BEND_HEIGHT);
    let mut components: Vec<Component> = skeleton
        .components()
        .into_iter()
        .map(|vertices| {
            // The library does not ask, but ends within a second of its own.
            interrupt::check(16 * vertices.len())?;
            Ok(Component::new(&skeleton, vertices, &spaced, vertex_limit))
        })
        .collect::<Result<_>>()?;
    interrupt::check(skeleton.layers.len())?;
    // The large ones first; the sort is stable.
    components.sort_by_key(|component| std::cmp::Reverse(component.n_vertices()));
    Ok(arrange(&skeleton, &components, (widths, &spaced), gaps))
}

/// For each node the length of the longest path to a sink.
fn layers(graph: &Graph) -> Result<Vec<u32>> {
    let mut layers = vec![0; graph.n_nodes()];
    for &node in toposort(graph, None)?.iter().rev() {
        let after = graph.successors(node).iter().map(|&next| layers[next as usize] + 1);
        layers[node as usize] = after.max().unwrap_or(0);
    }
    Ok(layers)
}

/// The graph with bends: every link leads to the next column.
struct Skeleton {
    layers: Vec<u32>,
    bends: Vec<u32>,
    /// Pairs of vertices, sorted, each once.
    links: Vec<(u32, u32)>,
}

impl Skeleton {
    fn new(mut layers: Vec<u32>, (sources, targets): (&[NodeId], &[NodeId])) -> Self {
        let n_nodes = layers.len();
        let span = |(&a, &b): (&u32, &u32)| layers[a as usize] - layers[b as usize];
        let spans: Vec<u32> = sources.iter().zip(targets).map(span).collect();
        let longest = longest_bent(&spans, 1000 + n_nodes);
        let mut bends = vec![n_nodes as u32];
        let mut links = Vec::with_capacity(sources.len());
        for ((&source, &target), &span) in sources.iter().zip(targets).zip(&spans) {
            // Whatever is left out, every node keeps a reader in the next column.
            if span <= longest {
                let mut last = source;
                for step in 1..span {
                    let bend = layers.len() as u32;
                    layers.push(layers[source as usize] - step);
                    links.push((last, bend));
                    last = bend;
                }
                links.push((last, target));
            }
            bends.push(layers.len() as u32);
        }
        links.sort_unstable();
        links.dedup();
        Self { layers, bends, links }
    }

    /// The vertices of each connected component, ascending; the components by their first.
    fn components(&self) -> Vec<Vec<u32>> {
        let mut parents: Vec<u32> = (0..self.layers.len() as u32).collect();
        for &(a, b) in &self.links {
            let (a, b) = (find(&mut parents, a), find(&mut parents, b));
            parents[a.max(b) as usize] = a.min(b);
        }
        let mut position = vec![u32::MAX; parents.len()];
        let mut components: Vec<Vec<u32>> = Vec::new();
        for vertex in 0..parents.len() as u32 {
            let root = find(&mut parents, vertex) as usize;
            if position[root] == u32::MAX {
                position[root] = components.len() as u32;
                components.push(Vec::new());
            }
            components[position[root] as usize].push(vertex);
        }
        components
    }
}

/// The longest span of edges whose bends, with those of all shorter edges, are at most `budget`.
fn longest_bent(spans: &[u32], budget: usize) -> u32 {
    let mut sorted = spans.to_vec();
    sorted.sort_unstable();
    let mut n_bends = 0usize;
    let mut longest = 1;
    for equal in sorted.chunk_by(|a, b| a == b) {
        n_bends += (equal[0] as usize - 1) * equal.len();
        if n_bends > budget {
            break;
        }
        longest = equal[0];
    }
    longest
}

/// A connected component with its vertices in their final order and heights.
struct Component {
    /// Vertices of each column from the top, from the left column on.
    columns: Vec<Vec<u32>>,
    /// Centres, as `columns`.
    ys: Vec<Vec<f64>>,
    /// Links from each column to the next.
    n_links: Vec<usize>,
}

impl Component {
    fn new(skeleton: &Skeleton, vertices: Vec<u32>, heights: &[f64], vertex_limit: usize) -> Self {
        let layer = |vertex: u32| skeleton.layers[vertex as usize];
        let n_layers = 1 + vertices.iter().map(|&vertex| layer(vertex)).max().unwrap_or(0);
        let column = |vertex: u32| (n_layers - 1 - layer(vertex)) as usize;
        let links: Vec<(u32, u32)> = vertices
            .iter()
            .flat_map(|&vertex| {
                let start = skeleton.links.partition_point(|&(source, _)| source < vertex);
                let of_vertex = skeleton.links[start..].iter();
                of_vertex.take_while(move |&&(source, _)| source == vertex).copied()
            })
            .collect();
        let mut n_links = vec![0; n_layers as usize];
        for &(source, _) in &links {
            n_links[column(source)] += 1;
        }
        let local = Local { vertices: &vertices, links: &links, heights };
        let wanted = (links.len() > 1 && vertices.len() <= vertex_limit)
            .then(|| local.by_library())
            .flatten()
            .unwrap_or_else(|| local.by_sweeps(n_layers as usize, column));
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
                ys.push(settle(&wanted, &local.heights_of(&column), BEND_GAP));
                column
            })
            .collect();
        Self { columns, ys, n_links }
    }

    fn n_vertices(&self) -> usize {
        self.columns.iter().map(Vec::len).sum()
    }
}

/// A component as the methods that find the heights see it.
struct Local<'a> {
    /// Ascending.
    vertices: &'a [u32],
    links: &'a [(u32, u32)],
    /// Of all vertices, with what is to be left free.
    heights: &'a [f64],
}

impl Local<'_> {
    fn heights_of(&self, vertices: &[u32]) -> Vec<f64> {
        vertices.iter().map(|&vertex| self.heights[vertex as usize]).collect()
    }

    fn position(&self, vertex: u32) -> u32 {
        self.vertices.partition_point(|&other| other < vertex) as u32
    }

    /// The library's coordinate of each vertex; None if it fails.
    fn by_library(&self) -> Option<Vec<f64>> {
        let n_vertices = self.vertices.len();
        // Reversed, its ranks from the top are our layers from the sinks.
        let edges: Vec<(u32, u32)> =
            self.links.iter().map(|&(a, b)| (self.position(b), self.position(a))).collect();
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

    /// A coordinate of each vertex by two sweeps: each column is sorted by the mean coordinate of
    /// what its vertices are linked to in the column before, from the right and then from the left.
    fn by_sweeps(&self, n_columns: usize, column: impl Fn(u32) -> usize) -> Vec<f64> {
        let mut columns = vec![Vec::new(); n_columns];
        for (position, &vertex) in self.vertices.iter().enumerate() {
            columns[column(vertex)].push(position);
        }
        let mut readers = vec![Vec::new(); self.vertices.len()];
        let mut operands = vec![Vec::new(); self.vertices.len()];
        for &(a, b) in self.links {
            let (a, b) = (self.position(a) as usize, self.position(b) as usize);
            readers[a].push(b);
            operands[b].push(a);
        }
        let mut ys = vec![0.0; self.vertices.len()];
        let mut sweep = |order: &mut dyn Iterator<Item = usize>, linked: &[Vec<usize>]| {
            for column in order {
                if interrupt::is_requested(64 * columns[column].len()) {
                    return;
                }
                let mean = |&position: &usize| {
                    let linked = &linked[position];
                    let sum: f64 = linked.iter().map(|&other| ys[other]).sum();
                    if linked.is_empty() { ys[position] } else { sum / linked.len() as f64 }
                };
                let mut wanted: Vec<(f64, usize)> =
                    columns[column].iter().map(|position| (mean(position), *position)).collect();
                wanted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                let (wanted, sorted): (Vec<f64>, Vec<usize>) = wanted.into_iter().unzip();
                let vertices: Vec<u32> = sorted.iter().map(|&p| self.vertices[p]).collect();
                let settled = settle(&wanted, &self.heights_of(&vertices), BEND_GAP);
                for (&position, y) in sorted.iter().zip(settled) {
                    ys[position] = y;
                }
            }
        };
        sweep(&mut (0..n_columns).rev(), &readers);
        sweep(&mut (0..n_columns), &operands);
        ys
    }
}

/// Centres nearest to the wanted ones, by least squares, that keep their order and leave `gap`
/// between neighbours. O(n).
///
/// Less the heights of those before, the centres must not decrease, which is isotonic regression:
/// runs that do are pooled at their mean.
fn settle(wanted: &[f64], heights: &[f64], gap: f64) -> Vec<f64> {
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

/// Consecutive columns of a component.
struct Piece<'a> {
    component: &'a Component,
    columns: std::ops::Range<usize>,
}

fn arrange(
    skeleton: &Skeleton,
    components: &[Component],
    (widths, heights): (&[f64], &[f64]),
    gaps: Gaps,
) -> Layout {
    let width_of = |column: &Vec<u32>| {
        column.iter().map(|&v| widths.get(v as usize).copied().unwrap_or(0.0)).fold(0.0, f64::max)
    };
    let column_widths: Vec<Vec<f64>> =
        components.iter().map(|c| c.columns.iter().map(width_of).collect()).collect();
    let area = |(component, widths): (&Component, &Vec<f64>)| {
        let (top, bottom) = extent(component, 0..component.columns.len(), heights);
        (total_width(widths, gaps) + gaps.columns) * (bottom - top + gaps.rows)
    };
    let area: f64 = components.iter().zip(&column_widths).map(area).sum();
    let mut row_width = (area * ASPECT).sqrt();
    let mut pieces = Vec::new();
    for (component, widths) in components.iter().zip(&column_widths) {
        for columns in cut(widths, &component.n_links, row_width, gaps) {
            row_width = row_width.max(total_width(&widths[columns.clone()], gaps));
            pieces.push((Piece { component, columns: columns.clone() }, &widths[columns]));
        }
    }
    let n_vertices = skeleton.layers.len();
    let mut layout = Layout {
        x: vec![0.0; n_vertices],
        y: vec![0.0; n_vertices],
        pieces: vec![0; n_vertices],
        columns: vec![0; n_vertices],
        bends: skeleton.bends.clone(),
        row_width,
    };
    let (mut left, mut row_top, mut next_top) = (0.0, 0.0, 0.0);
    for (number, (Piece { component, columns }, widths)) in (0u32..).zip(pieces) {
        let width = total_width(widths, gaps);
        if left > 0.0 && left + width > row_width {
            (left, row_top) = (0.0, next_top);
        }
        let (top, bottom) = extent(component, columns.clone(), heights);
        let mut x = left;
        for ((column, position), width) in columns.zip(0u32..).zip(widths) {
            for (&vertex, &y) in component.columns[column].iter().zip(&component.ys[column]) {
                let vertex = vertex as usize;
                layout.x[vertex] = x + width / 2.0;
                layout.y[vertex] = row_top + y - top;
                layout.pieces[vertex] = number;
                layout.columns[vertex] = position;
            }
            x += width + gaps.columns;
        }
        left += width + gaps.columns;
        next_top = f64::max(next_top, row_top + bottom - top + gaps.rows);
    }
    layout
}

fn total_width(columns: &[f64], gaps: Gaps) -> f64 {
    columns.iter().sum::<f64>() + gaps.columns * columns.len().saturating_sub(1) as f64
}

/// Top and bottom of what stands in these columns.
fn extent(component: &Component, columns: std::ops::Range<usize>, heights: &[f64]) -> (f64, f64) {
    let mut extent = (f64::INFINITY, f64::NEG_INFINITY);
    for column in columns {
        for (&vertex, &y) in component.columns[column].iter().zip(&component.ys[column]) {
            let half = heights[vertex as usize] / 2.0;
            extent = (extent.0.min(y - half), extent.1.max(y + half));
        }
    }
    extent
}

/// Ranges of columns of about `row_width` at most, cut where few links are; wider where none is.
fn cut(
    widths: &[f64],
    n_links: &[usize],
    row_width: f64,
    gaps: Gaps,
) -> Vec<std::ops::Range<usize>> {
    let n_columns = widths.len();
    if n_columns <= COLUMNS_UNCUT || total_width(widths, gaps) <= 2.0 * row_width {
        return std::iter::once(0..n_columns).collect();
    }
    let mut ranges = Vec::new();
    let (mut start, mut width) = (0, 0.0);
    let mut last_good = None;
    for (column, column_width) in widths.iter().enumerate() {
        width += column_width + gaps.columns;
        if let Some(end) = last_good.take_if(|_| width > row_width) {
            ranges.push(start..end);
            start = end;
            width = total_width(&widths[start..=column], gaps) + gaps.columns;
        }
        if n_links[column] <= EDGES_BETWEEN_ROWS && column + 1 < n_columns {
            last_good = Some(column + 1);
        }
    }
    ranges.push(start..n_columns);
    ranges
}

#[cfg(test)]
mod tests;
