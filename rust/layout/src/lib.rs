//! Layered drawings of directed acyclic graphs, from left to right.
//!
//! # Problem
//! A drawing of some thousand nodes must be readable: edges go to the right, few cross, nothing
//! overlaps, and the same graph looks the same in every process.
//!
//! # Approach
//! Three steps, each a module:
//!
//! - `layers`: the longest path from a node to a sink determines its column. An edge over several
//!   columns gets a *bend* in each column between its ends, which the layout treats as a small node.
//! - `ordering`: the order of the vertices in their columns, and their heights.
//! - `arranging`: connected components are laid out in rows, like words in lines.
//!
//! # Rejected
//! Measured at 10,000 nodes with 20,000 edges, whose sources are among the 20 nodes before the
//! target ("near") or any nodes before it ("far"), on two shared cores:
//!
//! - `rust-sugiyama` 0.4 for all three steps. It is used for the second: it takes 0.3 s (near) and 4 s
//!   (far) with bends, makes the same drawing in every process, and failed on no graph, except for its
//!   stack: it recurses along paths, and 100,000 nodes in a row overflow 8 MiB. So it runs on its own
//!   thread, with a stack that is large enough for [`VERTEX_LIMIT`], up to which the far graphs took
//!   0.7 s. Its network simplex for the columns takes 13 s (near), its search for components takes 35 s
//!   for isolated nodes, and it does not report the paths of long edges; so columns, components and
//!   bends are computed here.
//! - `dagre` 0.1 (a port of dagre.js): 2 s for 500 nodes with 1,000 edges.
//!
//! # Source
//! K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of hierarchical system
//! structures", IEEE Transactions on Systems, Man, and Cybernetics 11 (1981). The modules name their
//! other sources.

mod arranging;
mod layers;
mod ordering;

use arranging::arrange;
use layers::{LayeredGraph, layers};
use ordering::Component;

use pytensor_fuse_core::{Budget, Error, Graph, NodeId, Result};

/// The library lays out components of at most this many nodes and bends.
pub const VERTEX_LIMIT: usize = 12_000;

/// Height of a bend.
const BEND_HEIGHT: f64 = 4.0;

/// The gap beside a bend; smaller than between nodes, so that edges run side by side.
const BEND_GAP: f64 = 4.0;

/// The gaps in a drawing, in the unit of the sizes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gaps {
    /// Between two columns.
    pub columns: f64,
    /// Between two nodes of a column.
    pub nodes: f64,
    /// Between two rows.
    pub rows: f64,
}

/// The positions of the vertices: the nodes, then the bends.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    /// Centre of each vertex; x grows to the right, y downwards, both from 0.
    pub x: Vec<f64>,
    /// See [`x`](Self::x).
    pub y: Vec<f64>,
    /// The piece of a component that contains each vertex. Pieces are numbered in the order of the
    /// rows.
    pub pieces: Vec<u32>,
    /// The column of each vertex in its piece, from the left.
    pub columns: Vec<u32>,
    /// The bends of edge `i` are the vertices from `bends[i]` to `bends[i + 1]`, from its source to its
    /// target. A very long edge has none, and is drawn straight.
    pub bends: Vec<u32>,
    /// A row ends where the next piece would exceed this.
    pub row_width: f64,
}

/// Lays out an acyclic graph whose nodes have the given widths and heights.
///
/// # Errors
/// Those of [`Graph::new`] and [`pytensor_fuse_core::toposort::toposort`]; [`Error::LengthMismatch`] if `widths` and `heights`
/// differ in length, [`Error::Inconsistent`] if one of them is negative or not finite;
/// [`Error::Interrupted`].
///
/// # Complexity
/// O(n + m) apart from the library's sweeps, which take O(m log m) each; see the module for times.
///
/// # Examples
/// ```
/// use pytensor_fuse_core::Budget;
/// use pytensor_fuse_layout::{Gaps, VERTEX_LIMIT, layered_layout};
///
/// // 0 -> 1 -> 2 and 0 -> 2: the long edge has one bend, beside 1.
/// let sizes = [10.0, 10.0, 10.0];
/// let gaps = Gaps { columns: 20.0, nodes: 5.0, rows: 30.0 };
/// let edges = (&[0, 1, 0][..], &[1, 2, 2][..]);
/// let layout = layered_layout(
///     (&sizes, &sizes), edges, gaps, VERTEX_LIMIT, &Budget::unlimited(),
/// )?;
/// assert_eq!(layout.x, [5.0, 35.0, 65.0, 35.0]);
/// assert_eq!(layout.bends, [3, 3, 3, 4]);
/// # Ok::<(), pytensor_fuse_core::Error>(())
/// ```
pub fn layered_layout(
    (widths, heights): (&[f64], &[f64]),
    (sources, targets): (&[NodeId], &[NodeId]),
    gaps: Gaps,
    vertex_limit: usize,
    budget: &Budget,
) -> Result<Layout> {
    if widths.len() != heights.len() {
        let (left_len, right_len) = (widths.len(), heights.len());
        return Err(Error::LengthMismatch {
            left: "widths",
            left_len,
            right: "heights",
            right_len,
        });
    }
    let all = widths.iter().chain(heights).chain([&gaps.columns, &gaps.nodes, &gaps.rows]);
    if let Some(size) = all.copied().find(|size| !size.is_finite() || *size < 0.0) {
        return Err(Error::Inconsistent(format!("{size} is no size")));
    }
    let graph = Graph::new(widths.len(), sources, targets, budget)?;
    let layers = layers(&graph, budget)?;
    // The number of bends is proportional to edges and nodes; the links are sorted.
    budget.check(8 * (graph.n_edges() + 2 * graph.n_nodes()))?;
    let layered = LayeredGraph::new(layers, (sources, targets));
    // The heights of nodes include the rest of their gap.
    let mut spaced: Vec<f64> =
        heights.iter().map(|height| height + (gaps.nodes - BEND_GAP).max(0.0)).collect();
    spaced.resize(layered.layers.len(), BEND_HEIGHT);
    let mut components: Vec<Component> = layered
        .components()
        .into_iter()
        .map(|vertices| {
            // The library does not check the budget, but ends within a second.
            budget.check(16 * vertices.len())?;
            Component::new(&layered, vertices, &spaced, vertex_limit, budget)
        })
        .collect::<Result<_>>()?;
    budget.check(layered.layers.len())?;
    // Large components first; the sort is stable.
    components.sort_by_key(|component| std::cmp::Reverse(component.n_vertices()));
    Ok(arrange(&layered, &components, (widths, &spaced), gaps))
}

#[cfg(test)]
#[allow(dead_code, reason = "the tests of the core use the rest")]
#[path = "../../core/src/testing.rs"]
mod testing;
#[cfg(test)]
mod tests;
