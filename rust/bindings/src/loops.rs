//! Loops, buffers and regions of native code, for Python.

use pyo3::prelude::*;
use pytensor_fuse_core::graph::MAX_NODES;
use pytensor_fuse_core::{Error, Graph, buffers, loops, regions};

use crate::errors::to_py;
use crate::ids::{ids, integers};
use crate::interrupt::detach;

/// Groups statements into few loops.
///
/// Parameters
/// ----------
/// labels : array_like of int
///     The index space of each item, with the items in a topological order; -1 (or ``2**32 - 1``)
///     for an item that shares its loop with no other.
/// froms, tos : array_like of int
///     Item ``froms[i]`` runs before item ``tos[i]``, which comes later in the order.
/// can_fuse : sequence of bool
///     Whether the two items of each edge may share a loop if their labels are equal.
///
/// Returns
/// -------
/// list of int
///     The group of each item. All items of a group have the same label. An edge leads from a
///     smaller to a larger number, or stays within a group if ``can_fuse`` allows this.
///
/// Raises
/// ------
/// EdgeError
///     An edge does not go forward, or names an item that does not exist.
/// IdError
///     A label is below -1 or does not fit 32 bits.
/// GraphError
///     ``froms``, ``tos`` and ``can_fuse`` differ in length.
#[pyfunction]
pub(crate) fn schedule_loops(
    py: Python<'_>,
    labels: &Bound<'_, PyAny>,
    froms: &Bound<'_, PyAny>,
    tos: &Bound<'_, PyAny>,
    can_fuse: Vec<bool>,
) -> PyResult<Vec<u32>> {
    let labels = integers("labels", labels)?;
    let labels: Vec<u32> = labels.into_iter().map(loop_label).collect::<PyResult<_>>()?;
    let (froms, tos) = (integers("froms", froms)?, integers("tos", tos)?);
    check_same_length(("froms", froms.len()), ("tos", tos.len()))?;
    check_same_length(("froms", froms.len()), ("can_fuse", can_fuse.len()))?;
    let mut edges = Vec::with_capacity(can_fuse.len());
    for (edge, fuse) in can_fuse.into_iter().enumerate() {
        let (source_id, target_id) = (froms[edge], tos[edge]);
        match (u32::try_from(source_id), u32::try_from(target_id)) {
            (Ok(from), Ok(to)) => edges.push((from, to, fuse)),
            _ => {
                let n_nodes = labels.len();
                return Err(to_py(Error::EdgeOutOfRange { edge, source_id, target_id, n_nodes }));
            }
        }
    }
    detach(py, |budget| loops::schedule(&labels, &edges, budget))
}

/// Places buffers in one block of memory, such that buffers alive at the same time do not overlap.
///
/// Parameters
/// ----------
/// sizes : array_like of int
///     Bytes of each buffer.
/// first, last : array_like of int
///     The first and the last statement at which each buffer is alive.
/// alignment : int
///     A power of two that divides all offsets.
///
/// Returns
/// -------
/// offsets : list of int
/// total : int
///     The bytes of the block.
///
/// Raises
/// ------
/// IdError
///     A size, a statement or the alignment is negative, or a statement does not fit 32 bits.
/// GraphError
///     The arrays differ in length, a life ends before it begins, the alignment is no power of two,
///     or all buffers together have more than ``2**63 - 1`` bytes.
#[pyfunction]
pub(crate) fn place_buffers(
    py: Python<'_>,
    sizes: &Bound<'_, PyAny>,
    first: &Bound<'_, PyAny>,
    last: &Bound<'_, PyAny>,
    alignment: i64,
) -> PyResult<(Vec<u64>, u64)> {
    let sizes = integers("sizes", sizes)?.into_iter().map(|size| not_negative("size", size));
    let sizes: Vec<u64> = sizes.collect::<PyResult<_>>()?;
    let first = ids("first", "statement", first)?;
    let last = ids("last", "statement", last)?;
    let alignment = not_negative("alignment", alignment)?;
    detach(py, |budget| buffers::place(&sizes, &first, &last, alignment, budget))
}

/// Partitions the nodes of an acyclic graph into as few regions of native nodes as possible.
///
/// Parameters
/// ----------
/// n_nodes : int
/// froms, tos : array_like of int
///     The edges ``froms[i] -> tos[i]``.
/// is_native : sequence of bool
///     One for each node.
///
/// Returns
/// -------
/// list of int
///     The region of each node; every edge between two regions goes from a smaller to a larger
///     number. A node that is not native is a region of its own. Regions of native nodes need not
///     be connected.
///
/// Raises
/// ------
/// CycleError
///     The graph has a cycle.
/// EdgeError
///     An edge is a self-loop or names a node that the graph does not have.
/// GraphError
///     The arrays differ in length, or there is not one entry of ``is_native`` for each node.
#[pyfunction]
pub(crate) fn native_regions(
    py: Python<'_>,
    n_nodes: i64,
    froms: &Bound<'_, PyAny>,
    tos: &Bound<'_, PyAny>,
    is_native: Vec<bool>,
) -> PyResult<Vec<u32>> {
    let limit = MAX_NODES;
    let n_nodes = usize::try_from(n_nodes)
        .map_err(|_| to_py(Error::OutOfRange { what: "n_nodes", id: n_nodes, limit }))?;
    let (froms, tos) = (integers("froms", froms)?, integers("tos", tos)?);
    detach(py, |budget| {
        let graph = Graph::from_ids(n_nodes, &froms, &tos, budget)?;
        regions::native_regions(&graph, &is_native, budget)
    })
}

fn loop_label(label: i64) -> PyResult<u32> {
    match u32::try_from(label) {
        Ok(label) => Ok(label),
        Err(_) if label == -1 => Ok(loops::ALONE),
        Err(_) => {
            Err(to_py(Error::OutOfRange { what: "label", id: label, limit: loops::ALONE as usize }))
        }
    }
}

fn not_negative(what: &'static str, number: i64) -> PyResult<u64> {
    u64::try_from(number)
        .map_err(|_| to_py(Error::OutOfRange { what, id: number, limit: i64::MAX as usize }))
}

fn check_same_length(
    (left, left_len): (&'static str, usize),
    (right, right_len): (&'static str, usize),
) -> PyResult<()> {
    if left_len == right_len {
        return Ok(());
    }
    Err(to_py(Error::LengthMismatch { left, left_len, right, right_len }))
}
