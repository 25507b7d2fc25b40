//! What the bindings of Python's interface do not offer in safe functions.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// The dictionary in which Python keeps the attributes of an object.
///
/// The class is not asked for its `__dict__`: those of PyTensor's tags answer with code in Python,
/// which takes ten times as long and finds the same.
///
/// # Errors
/// `AttributeError` if there is none.
pub(crate) fn own_dictionary<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    // SAFETY: the object is alive, and the function takes no context. It returns a new reference, or
    // null and sets an exception.
    let found = unsafe {
        let found = ffi::PyObject_GenericGetDict(object.as_ptr(), std::ptr::null_mut());
        Bound::from_owned_ptr_or_err(object.py(), found)?
    };
    Ok(found.cast_into()?)
}

/// The address of an item of a list, which is left alone; nothing where there is no such item.
pub(crate) fn item_address(list: &Bound<'_, PyList>, index: usize) -> Option<usize> {
    if index >= list.len() {
        return None;
    }
    // SAFETY: it is a list, and the index is within it: nobody can change it meanwhile, for this
    // thread has the interpreter. The item is borrowed, and not used.
    let item = unsafe { ffi::PyList_GetItem(list.as_ptr(), index as ffi::Py_ssize_t) };
    Some(item as usize)
}
