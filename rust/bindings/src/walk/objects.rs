//! Functions of Python's C interface without a safe equivalent in PyO3.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// The dictionary in which Python stores the attributes of an object.
///
/// This bypasses `__dict__`: the class of PyTensor's tags implements it in Python, with the same
/// result but ten times as slowly.
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

/// The address of an item of a list, without a new reference; None if the index is out of range.
pub(crate) fn item_address(list: &Bound<'_, PyList>, index: usize) -> Option<usize> {
    if index >= list.len() {
        return None;
    }
    // SAFETY: it is a list, and the index is in range: no other thread can change it while this one
    // holds the interpreter. The borrowed item is not dereferenced.
    let item = unsafe { ffi::PyList_GetItem(list.as_ptr(), index as ffi::Py_ssize_t) };
    Some(item as usize)
}
