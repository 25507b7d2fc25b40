//! The motion of sums below increments, for Python.

use pyo3::prelude::*;
use pytensor_fuse_core::increments::{self, NONE, Strung, Sums};

use crate::interrupt::detach;

type Readers = Vec<Vec<(u32, u32)>>;
type Left =
    (usize, Vec<u32>, Vec<u32>, Vec<u32>, Vec<Vec<u32>>, Vec<Option<u32>>, Vec<Vec<u32>>, Readers);

/// Moves sums below the increments among their terms until none is on top of one.
///
/// Parameters
/// ----------
/// inputs : list of list of int
///     The inputs of each node; empty where they cannot matter.
/// outputs : list of int or None
///     The output of each node, where it can matter.
/// owners : list of int or None
///     The node that computes each variable.
/// is_increment : list of bool
///     Whether a variable is an increment below which sums can move. The first input of its node
///     is the incremented variable.
/// readers : list of list of tuple of int
///     The clients of each variable: nodes, and positions among their inputs.
/// sums : list of int
///     The sums, in the order in which they are processed.
///
/// Returns
/// -------
/// n_steps : int
///     The number of times that a sum moved below increments.
/// moved : list of int
///     The given sums that moved, in the order of their moves.
/// gone : list of int
///     The given nodes that nothing reads any more.
/// changed : list of int
///     The remaining nodes that are new or have changed inputs, in the order of their first
///     changes. The numbers of new nodes follow those of the given nodes, in the order in which
///     the new nodes were made; so do the numbers of their outputs.
/// inputs : list of list of int
///     The inputs of these nodes.
/// repeats : list of int or None
///     For each new node the increment that it repeats; None if it is a sum.
/// notes : list of list of int
///     For each new node, the given variables whose notes its output takes over.
/// readers : list of list of tuple of int
///     The clients of each variable, in the order in which they began to read it.
///
/// Raises
/// ------
/// GraphError
///     The lists contradict each other.
#[pyfunction]
pub(crate) fn string_together(
    py: Python<'_>,
    inputs: Vec<Vec<u32>>,
    outputs: Vec<Option<u32>>,
    owners: Vec<Option<u32>>,
    is_increment: Vec<bool>,
    readers: Readers,
    sums: Vec<u32>,
) -> PyResult<Left> {
    let or_none = |ids: Vec<Option<u32>>| ids.into_iter().map(|id| id.unwrap_or(NONE)).collect();
    let (outputs, owners) = (or_none(outputs), or_none(owners));
    let sums = Sums { inputs, outputs, owners, is_increment, readers, sums };
    let Strung { n_steps, moved, gone, changed, inputs, repeats, notes, readers } =
        detach(py, |budget| increments::string_together(&sums, budget))?;
    let repeats = repeats.into_iter().map(|id| (id != NONE).then_some(id)).collect();
    Ok((n_steps, moved, gone, changed, inputs, repeats, notes, readers))
}
