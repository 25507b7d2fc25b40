//! Layered drawings for Python.

use numpy::PyArray1;
use pyo3::prelude::*;
use pytensor_fuse_layout::{Gaps, Layout, VERTEX_LIMIT};

use crate::ids::ids;
use crate::interrupt::detach;

type Floats<'py> = Bound<'py, PyArray1<f64>>;
type IdArray<'py> = Bound<'py, PyArray1<u32>>;
type Places<'py> = (Floats<'py>, Floats<'py>, IdArray<'py>, IdArray<'py>, IdArray<'py>, f64);

/// Lays out an acyclic graph from left to right.
///
/// Vertices are the nodes, then the bends of edges over several columns.
///
/// Parameters
/// ----------
/// widths, heights : sequence of float
///     The size of each node.
/// sources, targets : array_like of int
///     The edges ``sources[i] -> targets[i]``.
/// gaps : tuple of float
///     The gaps between columns, between the nodes of a column, and between rows.
///
/// Returns
/// -------
/// x, y : array of float64
///     The centre of each vertex; y grows downwards.
/// pieces, columns : array of uint32
///     The piece of each vertex, a part of the graph that lies in one row, and the column of
///     the vertex in its piece.
/// bends : array of uint32
///     Edge ``i`` has the bends ``bends[i]`` to ``bends[i + 1]``, in its direction.
/// row_width : float
///     The width that rows do not exceed: a piece that would exceed it begins the next row.
///
/// Raises
/// ------
/// GraphError
///     A size is negative or not finite, the arrays do not fit together, or the graph has a
///     cycle.
#[pyfunction]
pub(crate) fn layered_layout<'py>(
    py: Python<'py>,
    widths: Vec<f64>,
    heights: Vec<f64>,
    sources: &Bound<'py, PyAny>,
    targets: &Bound<'py, PyAny>,
    gaps: (f64, f64, f64),
) -> PyResult<Places<'py>> {
    let sources = ids("sources", "source", sources)?;
    let targets = ids("targets", "target", targets)?;
    let gaps = Gaps { columns: gaps.0, nodes: gaps.1, rows: gaps.2 };
    let Layout { x, y, pieces, columns, bends, row_width } = detach(py, |budget| {
        let edges = (sources.as_slice(), targets.as_slice());
        pytensor_fuse_layout::layered_layout((&widths, &heights), edges, gaps, VERTEX_LIMIT, budget)
    })?;
    Ok((
        PyArray1::from_vec(py, x),
        PyArray1::from_vec(py, y),
        PyArray1::from_vec(py, pieces),
        PyArray1::from_vec(py, columns),
        PyArray1::from_vec(py, bends),
        row_width,
    ))
}
