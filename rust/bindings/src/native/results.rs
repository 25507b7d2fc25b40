//! The results of a call: small arrays are kept, and given out again once nobody else has them.
//!
//! NumPy takes 80 ns to make and free the smallest array, many times what it takes to look at one.
//! One that nobody else has would have been freed, and NumPy would have made the next one in its
//! place. What can be changed about an array in place is looked at; its numbers are written anew.

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

/// An array that was made for an output, with the flags that it had.
pub(super) struct Spare {
    array: Py<PyAny>,
    flags: c_int,
}

impl Spare {
    /// The array, if it is small.
    fn new(array: &Bound<'_, PyAny>) -> Option<Self> {
        let array = array.cast::<PyUntypedArray>().ok()?;
        // The product fits: there is such an array.
        if array.len() * array.dtype().itemsize() > SMALL_BYTES {
            return None;
        }
        // SAFETY: it is an array.
        let flags = unsafe { (*npyffi::_PyArray_GET_ITEM_DATA(array.as_array_ptr())).flags };
        Some(Self { array: array.as_any().clone().unbind(), flags })
    }

    /// Another reference to the array if it is as good as a new one of these lengths, or null.
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
    /// Moves the outputs into a list of empty places; the position of one that is missing, if any.
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
                // SAFETY: the list is as long as the outputs are many, and filled up to here.
                Source::Output(earlier) => unsafe {
                    ffi::Py_NewRef(ffi::PyList_GetItem(list.as_ptr(), earlier as ffi::Py_ssize_t))
                },
            };
            if object.is_null() {
                return Some(position);
            }
            // SAFETY: the list is as long as the outputs are many, and takes over the reference.
            unsafe { ffi::PyList_SetItem(list.as_ptr(), position as ffi::Py_ssize_t, object) };
        }
        None
    }

    /// Keeps the new ones among the outputs.
    ///
    /// Not to be called while the machine code runs: an array that is forgotten for them may have
    /// weak references, whose callbacks are code of Python.
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

/// A list with so many places and nothing in them, which must not get to Python before they are
/// filled.
pub(super) fn empty_list(py: Python<'_>, len: usize) -> PyResult<Bound<'_, PyList>> {
    // SAFETY: a new reference to a list, or null with an exception set.
    let list = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyList_New(len as isize)) }?;
    Ok(list.cast_into()?)
}
