//! Looks through the lists in which PyTensor keeps who reads a variable: pairs of a node and a
//! position among what it reads. Decides nothing: which of them matter is for the Python package
//! to say.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// Removes the first pair of `node` and `position`, as `list.remove` does; says whether it has.
///
/// Nodes are compared by identity, where `list.remove` calls methods for each pair. So it removes
/// nothing where there is anything else in the list, before the pair, than pairs of nodes of the
/// class of this one.
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
