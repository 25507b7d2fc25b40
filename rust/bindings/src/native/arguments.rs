//! Arguments of a call, used in place or converted.

use std::ffi::c_int;

use numpy::npyffi::{self, NPY_ARRAY_NOTSWAPPED, PY_ARRAY_API, PyArray_Descr, PyArrayObject};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyTuple};

use super::memory::Workspace;
use super::program::{Input, Program, UNKNOWN};

/// The locations of a call's arguments: the first ones in a tuple, the rest in cells.
#[derive(Clone, Copy)]
pub(super) struct Arguments<'a, 'py> {
    pub(super) tuple: Option<&'a Bound<'py, PyTuple>>,
    pub(super) n_in_tuple: usize,
    pub(super) cells: &'a [Py<PyList>],
}

impl<'a, 'py> Arguments<'a, 'py> {
    pub(super) fn of_tuple(tuple: &'a Bound<'py, PyTuple>) -> Self {
        Self { tuple: Some(tuple), n_in_tuple: tuple.len(), cells: &[] }
    }

    /// Returns the argument at this position, borrowed, or null with an exception set.
    #[inline(always)]
    fn get(&self, position: usize) -> *mut ffi::PyObject {
        match self.tuple {
            // SAFETY: it is a tuple, and the interpreter is attached.
            Some(tuple) if position < self.n_in_tuple => unsafe {
                ffi::PyTuple_GetItem(tuple.as_ptr(), position as ffi::Py_ssize_t)
            },
            _ => match self.cells.get(position) {
                // SAFETY: it is a list, and the interpreter is attached.
                Some(cell) => unsafe { ffi::PyList_GetItem(cell.as_ptr(), 0) },
                None => std::ptr::null_mut(),
            },
        }
    }
}

impl Program {
    /// Puts the arguments into the workspace while they can be used in place; returns whether all
    /// can. Runs no Python code.
    ///
    /// `EXACT`: accept only instances of `numpy.ndarray` itself.
    #[inline(always)]
    pub(super) fn gather<const EXACT: bool>(
        &self,
        arguments: Arguments<'_, '_>,
        workspace: &mut Workspace,
    ) -> bool {
        let (mut lengths, mut dims) = (&self.lengths[..], &mut workspace.dims[..]);
        let places = workspace.arrays.iter_mut().zip(&mut workspace.data);
        for ((position, input), (array, data)) in self.inputs.iter().enumerate().zip(places) {
            let object = arguments.get(position);
            if object.is_null() {
                // SAFETY: the interpreter is attached.
                unsafe { ffi::PyErr_Clear() };
                return false;
            }
            // SAFETY: `object` is alive: it is in a tuple, or in a cell that nothing changes here.
            let class = unsafe { ffi::Py_TYPE(object) };
            // SAFETY: both are types.
            let is_subclass = || unsafe { ffi::PyType_IsSubtype(class, self.array_type) } != 0;
            if class != self.array_type && (EXACT || !is_subclass()) {
                return false;
            }
            // SAFETY: it is an array, and nothing changes it here.
            let fields = unsafe { &*npyffi::_PyArray_GET_ITEM_DATA(object.cast()) };
            if fields.nd != input.ndim
                || fields.flags & input.flags != input.flags
                || !input.is_dtype(fields.descr)
            {
                return false;
            }
            let (lengths_here, dims_here);
            (lengths_here, lengths) = lengths.split_at(input.ndim as usize);
            (dims_here, dims) = dims.split_at_mut(input.ndim as usize);
            for (axis, (length, dim)) in lengths_here.iter().zip(dims_here).enumerate() {
                // SAFETY: an array has one length for each dimension.
                *dim = unsafe { *fields.dimensions.add(axis) } as i64;
                if length != dim && *length != UNKNOWN {
                    return false;
                }
            }
            *array = object;
            *data = fields.data.cast();
        }
        true
    }

    /// Returns arrays of the arguments that can be used in place.
    #[cold]
    pub(super) fn convert<'py>(
        &self,
        py: Python<'py>,
        arguments: Arguments<'_, 'py>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let mut arrays = Vec::with_capacity(self.inputs.len());
        for position in 0..self.inputs.len() {
            let object = arguments.get(position);
            // SAFETY: borrowed, or null with an exception set.
            arrays.push(unsafe { Bound::from_borrowed_ptr_or_err(py, object) }?);
        }
        let mut first = 0;
        for (position, (input, object)) in self.inputs.iter().zip(&mut arrays).enumerate() {
            let array = input.array(position, object)?;
            let lengths = &self.lengths[first..][..input.ndim as usize];
            for (axis, (&expected, &found)) in lengths.iter().zip(array.shape()).enumerate() {
                if expected != UNKNOWN && expected != found as i64 {
                    return Err(PyValueError::new_err(format!(
                        "input {position}: axis {axis} must have length {expected}, not {found}"
                    )));
                }
            }
            first += lengths.len();
            *object = array.into_any();
        }
        PyTuple::new(py, arrays)
    }
}

impl Input {
    /// Whether a dtype is that of the input: identical, or equal in all relevant respects.
    #[inline(always)]
    fn is_dtype(&self, descr: *mut PyArray_Descr) -> bool {
        descr == self.descr_address || self.is_like_dtype(descr)
    }

    #[cold]
    fn is_like_dtype(&self, descr: *mut PyArray_Descr) -> bool {
        // SAFETY: the dtype of an array.
        let fields = unsafe { &*npyffi::_PyDataType_GET_ITEM_DATA(descr) };
        matches!(fields.byteorder as u8, b'=' | b'|') && self.is_like_type(fields.type_num)
    }

    /// Whether NumPy's type number stands for the same numbers: on some machines, two C types are
    /// equal.
    fn is_like_type(&self, type_num: c_int) -> bool {
        type_num == self.type_num
            // SAFETY: the interpreter is attached; the function compares two integers.
            || unsafe {
                let py = Python::assume_attached();
                PY_ARRAY_API.PyArray_EquivTypenums(py, type_num, self.type_num) != 0
            }
    }

    /// Returns the array itself if it can be used in place, or else a copy, or an array of a
    /// scalar.
    fn array<'py>(
        &self,
        position: usize,
        object: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyUntypedArray>> {
        let py = object.py();
        let array = match object.cast::<PyUntypedArray>() {
            Ok(array) => array.to_owned(),
            Err(_) if self.ndim == 0 && is_scalar(object)? => {
                py.import("numpy")?.call_method1("asarray", (object,))?.cast_into()?
            }
            Err(_) => return Err(self.refusal(position, object)),
        };
        if array.ndim() != self.ndim as usize || !self.is_like_type(array.dtype().num()) {
            return Err(self.refusal(position, object));
        }
        let flags = self.flags | NPY_ARRAY_NOTSWAPPED;
        let descr = self.descr.clone_ref(py).into_ptr();
        // SAFETY: the function steals the reference to the dtype, and returns a new reference to an
        // array, or null with an exception set.
        let copied = unsafe {
            let array = array.as_ptr().cast::<PyArrayObject>();
            let copied = PY_ARRAY_API.PyArray_FromArray(py, array, descr.cast(), flags);
            Bound::from_owned_ptr_or_err(py, copied)
        };
        Ok(copied?.cast_into()?)
    }

    /// Returns an error that states the expected and the actual type.
    #[cold]
    fn refusal(&self, position: usize, object: &Bound<'_, PyAny>) -> PyErr {
        let py = object.py();
        let expected = describe(self.descr.bind(py), self.ndim as usize);
        let found = match object.cast::<PyUntypedArray>() {
            Ok(array) => describe(&array.dtype(), array.ndim()),
            Err(_) => match object.get_type().fully_qualified_name() {
                Ok(name) => format!("an object of type {name}"),
                Err(error) => return error,
            },
        };
        PyTypeError::new_err(format!("input {position}: expected {expected}, found {found}"))
    }
}

/// Whether NumPy converts an object to an array without dimensions without calling its class.
fn is_scalar(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyBool>()
        || object.is_exact_instance_of::<PyComplex>()
    {
        return Ok(true);
    }
    object.is_instance(&object.py().import("numpy")?.getattr("generic")?)
}

fn describe(dtype: &Bound<'_, PyArrayDescr>, ndim: usize) -> String {
    let s = if ndim == 1 { "" } else { "s" };
    format!("an array of dtype {dtype} with {ndim} dimension{s}")
}
