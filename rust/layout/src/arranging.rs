//! The arrangement of components in rows, like words in lines.
//!
//! # Problem
//! A graph may have thousands of small components, or one of hundreds of columns; the drawing should
//! have about the shape of a screen.
//!
//! # Approach
//! The width of a row follows from the area of all components. They are placed side by side; the first
//! that does not fit begins the next row. A long component is broken between two columns that few edges
//! connect, and continues in the next row.
//!
//! # Rejected
//! Packing that also places components below each other in one row: it saves space, but loses the
//! reading order.
//!
//! # Source
//! Rows are filled in order, like lines of text; for shelves, E. Coffman, M. Garey, D. Johnson,
//! R. Tarjan, "Performance bounds for level-oriented two-dimensional packing algorithms", SIAM
//! Journal on Computing 9 (1980).

use std::ops::Range;

use super::layers::LayeredGraph;
use super::ordering::Component;
use super::{Gaps, Layout};

/// The intended ratio of the drawing's width to its height.
const ASPECT: f64 = 1.7;

/// Components of at most this many columns are never cut.
const COLUMNS_UNCUT: usize = 24;

/// Maximum number of edges that may connect one row of a component with the next.
const EDGES_BETWEEN_ROWS: usize = 3;

/// Consecutive columns of a component.
struct Piece<'a> {
    component: &'a Component,
    columns: Range<usize>,
}

/// Cuts the components into pieces, and arranges these in rows in the order of the components. O(n).
///
/// # Arguments
/// * `widths`: of the nodes; bends have none.
/// * `heights`: of all vertices, with their gaps.
pub(super) fn arrange(
    layered: &LayeredGraph,
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
    let n_vertices = layered.layers.len();
    let mut layout = Layout {
        x: vec![0.0; n_vertices],
        y: vec![0.0; n_vertices],
        pieces: vec![0; n_vertices],
        columns: vec![0; n_vertices],
        bends: layered.bends.clone(),
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

/// The top and bottom of the vertices in these columns.
fn extent(component: &Component, columns: Range<usize>, heights: &[f64]) -> (f64, f64) {
    let mut extent = (f64::INFINITY, f64::NEG_INFINITY);
    for column in columns {
        for (&vertex, &y) in component.columns[column].iter().zip(&component.ys[column]) {
            let half = heights[vertex as usize] / 2.0;
            extent = (extent.0.min(y - half), extent.1.max(y + half));
        }
    }
    extent
}

/// Ranges of columns of at most about `row_width`, cut where there are few links. A range is wider
/// if it has no such place; up to [`COLUMNS_UNCUT`] columns, or twice the width, are not cut.
fn cut(widths: &[f64], n_links: &[usize], row_width: f64, gaps: Gaps) -> Vec<Range<usize>> {
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
