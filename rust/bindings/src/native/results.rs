//! Results of a call: small arrays are kept, and reused once they have no other references.
//!
//! NumPy takes 80 ns to create and free the smallest array, many times as long as checking one. An
//! array without other references would have been freed, and NumPy would have created the next one
//! in its place. All properties of an array that can be changed in place are checked; its elements
//! are overwritten.

use std::ffi::c_int;

use numpy::npyffi::{self, npy_intp};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::memory::Workspace;
use super::program::{Program, Source};

/// An array of at most this many bytes is kept for the next call.
const SMALL_BYTES: usize = 1 << 14;

/// An array that was allocated for an output, with its original flags.
pub(super) struct Spare {
    array: Py<PyAny>,
    flags: c_int,
}

impl Spare {
    /// Wraps the array, if it is small.
    fn new(array: &Bound<'_, PyAny>) -> Option<Self> {
        let array = array.cast::<PyUntypedArray>().ok()?;
        // The product does not overflow, since the array exists.
        if array.len() * array.dtype().itemsize() > SMALL_BYTES {
            return None;
        }
        // SAFETY: it is an array.
        let flags = unsafe { (*npyffi::_PyArray_GET_ITEM_DATA(array.as_array_ptr())).flags };
        Some(Self { array: array.as_any().clone().unbind(), flags })
    }

    /// Returns another reference to the array if it is equivalent to a new one of these lengths, or
    /// null.
    #[inline(always)]
    pub(super) fn again(
        &self,
        py: Python<'_>,
        descr: &Py<PyArrayDescr>,
        lengths: &[npy_intp],
    ) -> *mut ffi::PyObject {
        let array = self.array.as_ptr();
        // SAFETY: it is an array; references and fields only change while the interpreter is attached.
        let is_new = unsafe {
            let fields = &*npyffi::_PyArray_GET_ITEM_DATA(array.cast());
            ffi::Py_REFCNT(array) == 1
                && fields.flags == self.flags
                && fields.descr.cast() == descr.as_ptr()
                && fields.base.is_null()
                && fields.weakreflist.is_null()
                && fields.nd as usize == lengths.len()
                && (0..lengths.len()).all(|axis| *fields.dimensions.add(axis) == lengths[axis])
        };
        if is_new { self.array.clone_ref(py).into_ptr() } else { std::ptr::null_mut() }
    }
}

impl Program {
    /// Moves the outputs into a list of empty slots; returns the position of a missing one, if any.
    pub(super) fn hand_over(
        &self,
        workspace: &mut Workspace,
        list: &Bound<'_, PyList>,
    ) -> Option<usize> {
        for (position, output) in self.outputs.iter().enumerate() {
            let object = match *output {
                Source::Fresh { .. } => {
                    std::mem::replace(&mut workspace.results[position], std::ptr::null_mut())
                }
                // SAFETY: as for the machine code, arguments are alive.
                Source::Input(input) => unsafe { ffi::Py_NewRef(workspace.arrays[input]) },
                // SAFETY: the list has one slot for each output, and is filled up to here.
                Source::Output(earlier) => unsafe {
                    ffi::Py_NewRef(ffi::PyList_GetItem(list.as_ptr(), earlier as ffi::Py_ssize_t))
                },
            };
            if object.is_null() {
                return Some(position);
            }
            // SAFETY: the list has one slot for each output, and takes over the reference.
            unsafe { ffi::PyList_SetItem(list.as_ptr(), position as ffi::Py_ssize_t, object) };
        }
        None
    }

    /// Keeps the new arrays among the outputs for reuse.
    ///
    /// Must not be called while the machine code runs: an array that is dropped in their favor may
    /// have weak references, whose callbacks run Python code.
    #[cold]
    pub(super) fn keep_spares(
        &self,
        workspace: &mut Workspace,
        list: &Bound<'_, PyList>,
    ) -> PyResult<()> {
        for (position, output) in self.outputs.iter().enumerate() {
            if let Source::Fresh { .. } = output {
                let array = list.get_item(position)?;
                let [last, before] = &mut workspace.spares[position];
                let is_known = last.iter().chain(&*before).any(|spare| spare.array.is(&array));
                if !is_known {
                    drop(before.take());
                    *before = std::mem::replace(last, Spare::new(&array));
                }
            }
        }
        Ok(())
    }
}

/// Returns a list with this many empty slots, which Python must not see before they are filled.
pub(super) fn empty_list(py: Python<'_>, len: usize) -> PyResult<Bound<'_, PyList>> {
    // SAFETY: a new reference to a list, or null with an exception set.
    let list = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyList_New(len as isize)) }?;
    Ok(list.cast_into()?)
}
