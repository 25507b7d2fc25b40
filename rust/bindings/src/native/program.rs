//! Properties of machine code that are known before it is called.

use std::ffi::c_int;

use numpy::npyffi::{
    self, NPY_ARRAY_ALIGNED, NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_WRITEABLE, PyArray_Descr,
};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::frame::Frame;

/// The entry point of the machine code.
pub(super) type Entry =
    unsafe extern "C" fn(*const *mut u8, *const i64, *const *const u8, *mut Frame) -> i64;

/// A length that is unknown before the call.
pub(super) const UNKNOWN: i64 = -1;

/// Upper bound on the number of dimensions of an array.
pub(super) const DIMENSION_LIMIT: usize = 64;

/// The requirements on the arrays of one input.
pub(super) struct Input {
    pub(super) descr: Py<PyArrayDescr>,
    pub(super) descr_address: *mut PyArray_Descr,
    pub(super) type_num: c_int,
    pub(super) ndim: c_int,
    /// The flags that an array needs to be used in place.
    pub(super) flags: c_int,
}

/// The origin of an output.
pub(super) enum Source {
    Fresh { descr: Py<PyArrayDescr>, ndim: c_int },
    Input(usize),
    Output(usize),
}

/// Machine code and its known properties.
pub(super) struct Program {
    pub(super) entry: Entry,
    pub(super) array_type: *mut ffi::PyTypeObject,
    pub(super) inputs: Vec<Input>,
    /// The lengths of all axes of all inputs, or [`UNKNOWN`].
    pub(super) lengths: Vec<i64>,
    pub(super) constants: Vec<*const u8>,
    pub(super) outputs: Vec<Source>,
}

// SAFETY: a program is immutable. It points to the array type and to dtypes, which `Py` references
// in the same program keep alive, and to arrays that its `NativeFunction` keeps alive.
unsafe impl Send for Program {}
// SAFETY: as above.
unsafe impl Sync for Program {}

impl Program {
    pub(super) fn new(
        py: Python<'_>,
        address: usize,
        inputs: Vec<(Bound<'_, PyAny>, Vec<i64>)>,
        constants: &[Bound<'_, PyUntypedArray>],
        outputs: &[Bound<'_, PyTuple>],
        destroyed: &[usize],
    ) -> PyResult<Self> {
        if address == 0 {
            return Err(PyValueError::new_err("the address is 0"));
        }
        let n_inputs = inputs.len();
        let mut program = Self {
            // SAFETY: the caller guarantees that there is a function with this signature at the
            // address, which is not 0. This cannot be verified.
            entry: unsafe { std::mem::transmute::<usize, Entry>(address) },
            // SAFETY: the interpreter is attached.
            array_type: unsafe { npyffi::get_type_object(py, npyffi::NpyTypes::PyArray_Type) },
            inputs: Vec::with_capacity(n_inputs),
            lengths: Vec::new(),
            constants: constants.iter().map(data_of).collect(),
            outputs: Vec::with_capacity(outputs.len()),
        };
        for (position, (dtype, lengths)) in inputs.into_iter().enumerate() {
            let place = format!("input {position}");
            let descr = number_dtype(&place, &dtype)?;
            let ndim = dimensions(&place, lengths.len())?;
            if let Some(length) = lengths.iter().find(|&&length| length < UNKNOWN) {
                return Err(PyValueError::new_err(format!("{place}: {length} is no length")));
            }
            program.lengths.extend(lengths);
            program.inputs.push(Input {
                descr_address: descr.as_dtype_ptr(),
                type_num: descr.num(),
                descr: descr.unbind(),
                ndim,
                flags: NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED,
            });
        }
        for &position in destroyed {
            match program.inputs.get_mut(position) {
                Some(input) => input.flags |= NPY_ARRAY_WRITEABLE,
                None => return Err(no_such("destroyed", "input", position, n_inputs)),
            }
        }
        for (position, output) in outputs.iter().enumerate() {
            program.outputs.push(source(position, output, n_inputs)?);
        }
        Ok(program)
    }
}

/// Returns the dtype of this name, if its elements are numbers or bools.
fn number_dtype<'py>(place: &str, dtype: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArrayDescr>> {
    let descr = PyArrayDescr::new(dtype.py(), dtype)?;
    let is_native = descr.is_native_byteorder() != Some(false);
    if is_native && matches!(descr.kind(), b'b' | b'i' | b'u' | b'f' | b'c') {
        return Ok(descr);
    }
    Err(PyValueError::new_err(format!("{place}: {descr} is no dtype of native numbers or bools")))
}

fn dimensions(place: &str, ndim: usize) -> PyResult<c_int> {
    match c_int::try_from(ndim) {
        Ok(checked) if ndim <= DIMENSION_LIMIT => Ok(checked),
        _ => Err(PyValueError::new_err(format!(
            "{place} has {ndim} dimensions, more than {DIMENSION_LIMIT}"
        ))),
    }
}

fn no_such(place: &str, what: &str, position: usize, count: usize) -> PyErr {
    PyValueError::new_err(format!("{place} names {what} {position}, of {count}"))
}

/// Returns a constant, if its data can be read in place.
pub(super) fn constant_array<'py>(
    position: usize,
    constant: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyUntypedArray>> {
    let place = format!("constant {position}");
    let Ok(array) = constant.cast_into::<PyUntypedArray>() else {
        return Err(PyTypeError::new_err(format!("{place} is no array")));
    };
    number_dtype(&place, array.dtype().as_any())?;
    let flags = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED;
    // SAFETY: it is an array.
    let found = unsafe { (*npyffi::_PyArray_GET_ITEM_DATA(array.as_ptr().cast())).flags };
    if found & flags != flags {
        return Err(PyValueError::new_err(format!("{place} is not C-contiguous and aligned")));
    }
    Ok(array)
}

fn data_of(array: &Bound<'_, PyUntypedArray>) -> *const u8 {
    // SAFETY: it is an array.
    unsafe { (*npyffi::_PyArray_GET_ITEM_DATA(array.as_ptr().cast())).data.cast() }
}

fn source(position: usize, output: &Bound<'_, PyTuple>, n_inputs: usize) -> PyResult<Source> {
    let place = format!("output {position}");
    let kind = output.get_item(0)?.cast_into::<PyString>()?;
    match (kind.to_cow()?.as_ref(), output.len()) {
        ("fresh", 3) => {
            let descr = number_dtype(&place, &output.get_item(1)?)?.unbind();
            Ok(Source::Fresh { descr, ndim: dimensions(&place, output.get_item(2)?.extract()?)? })
        }
        ("input", 2) => match output.get_item(1)?.extract()? {
            input if input < n_inputs => Ok(Source::Input(input)),
            input => Err(no_such(&place, "input", input, n_inputs)),
        },
        ("output", 2) => match output.get_item(1)?.extract()? {
            earlier if earlier < position => Ok(Source::Output(earlier)),
            later => Err(no_such(&place, "earlier output", later, position)),
        },
        _ => Err(PyValueError::new_err(format!(
            "{place} is {output}; expected (\"fresh\", dtype, ndim), (\"input\", k) or (\"output\", j)"
        ))),
    }
}
