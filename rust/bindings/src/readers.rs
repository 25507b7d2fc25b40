//! PyTensor's lists of clients: for each variable, pairs of a node that reads it and a position among
//! the inputs of that node.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// Removes the first pair of `node` and `position`, as `list.remove` does, and returns whether it was
/// removed.
///
/// Nodes are compared by identity, while `list.remove` calls methods for each pair. So nothing is
/// removed if an earlier item of the list is not a pair whose node has the class of `node`.
///
/// O(readers).
#[pyfunction]
pub(crate) fn remove_reader(
    readers: &Bound<'_, PyList>,
    node: &Bound<'_, PyAny>,
    position: &Bound<'_, PyAny>,
) -> PyResult<bool> {
    let class = node.get_type_ptr();
    for (index, pair) in readers.iter().enumerate() {
        let Ok(pair) = pair.cast_exact::<PyTuple>() else { return Ok(false) };
        if pair.len() != 2 {
            return Ok(false);
        }
        let reader = pair.get_borrowed_item(0)?;
        if reader.is(node) {
            let of_reader = pair.get_borrowed_item(1)?;
            if of_reader.is(position) || of_reader.eq(position)? {
                readers.del_item(index)?;
                return Ok(true);
            }
        } else if reader.get_type_ptr() != class {
            return Ok(false);
        }
    }
    Ok(false)
}
