//! Sums that go below increments, for Python.

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
///     What each node reads; nothing where that cannot matter.
/// outputs : list of int or None
///     The output of each node, where it can matter.
/// owners : list of int or None
///     The node that makes each variable.
/// is_increment : list of bool
///     Whether a variable is an increment that sums can go below. Its node reads first what is
///     incremented.
/// readers : list of list of tuple of int
///     Who reads each variable: nodes and positions among what they read.
/// sums : list of int
///     The sums, in the order in which they are looked at.
///
/// Returns
/// -------
/// n_steps : int
///     How many times a sum has gone below increments.
/// moved : list of int
///     The given sums that have, in this order.
/// gone : list of int
///     The given nodes that nothing reads any more.
/// changed : list of int
///     The nodes that are left and are new, or read something else, each when it was first so. New
///     ones have numbers that follow those of the given, in the order in which they were made; so
///     have their outputs.
/// inputs : list of list of int
///     What these read.
/// repeats : list of int or None
///     For each new node the increment that it repeats; None if it is a sum.
/// notes : list of list of int
///     For each new node, the given variables whose notes its output takes over.
/// readers : list of list of tuple of int
///     Who reads each variable, in the order in which they came to.
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
