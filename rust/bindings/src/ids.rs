//! Integer arguments from Python.
//!
//! # Copies
//! Rust reads no array that anybody else may write: it works without the interpreter, so another thread
//! could write meanwhile, and the checked numbers would not be the used ones. NumPy copies each array
//! into `bytes`, which nobody can write. The copy is one state of the numbers, or a mixture of several
//! where loops of NumPy write without the interpreter, but it is the same from the first check to the
//! last use.
//!
//! Rejected: `numpy.array`, which gives the interpreter up while it copies more than some hundred
//! numbers. Python before 3.14 ends a daemon thread there by unwinding through Rust when the interpreter
//! ends, which aborts the process.
//!
//! Two arrays of a million numbers are copied in five milliseconds, where making a graph of them takes
//! 4 to 17.

use std::borrow::Cow;

use numpy::{PyArray1, PyArrayDescrMethods, PyReadonlyArray1, PyUntypedArray};
use numpy::{PyArrayMethods, PyUntypedArrayMethods};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pytensor_fuse_core::hashcons::TermId;
use pytensor_fuse_core::{Error, NodeId};

use crate::errors::{not_integers, to_py};

/// One-dimensional integers, of the type in which they were given where it is one of these: in an array
/// that nobody else has.
pub(crate) enum Ids<'py> {
    I32(PyReadonlyArray1<'py, i32>),
    U32(PyReadonlyArray1<'py, u32>),
    I64(PyReadonlyArray1<'py, i64>),
}

/// [`Ids`] that can be read without the interpreter.
#[derive(Clone, Copy)]
pub(crate) enum Slice<'a> {
    I32(&'a [i32]),
    U32(&'a [u32]),
    I64(&'a [i64]),
}

/// A copy of a one-dimensional array of numbers that nobody can write.
fn copy<'py>(array: &Bound<'py, PyUntypedArray>) -> PyResult<Bound<'py, PyAny>> {
    static TO_BYTES: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static FROM_BUFFER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = array.py();
    // The base class's own method, which copies with the interpreter held.
    let to_bytes = TO_BYTES.get_or_try_init(py, || {
        let class = py.import(intern!(py, "numpy"))?.getattr(intern!(py, "ndarray"))?;
        Ok::<_, PyErr>(class.getattr(intern!(py, "tobytes"))?.unbind())
    })?;
    let bytes = to_bytes.bind(py).call1((array,))?;
    FROM_BUFFER.import(py, "numpy", "frombuffer")?.call1((bytes, array.dtype()))
}

/// The elements of an array, copied as `copy` says.
pub(crate) fn elements<T: numpy::Element + Copy>(
    array: &Bound<'_, PyArray1<T>>,
) -> PyResult<Vec<T>> {
    Ok(copy(array.as_untyped())?.cast_into::<PyArray1<T>>()?.to_vec()?)
}

/// The same of truth values, whose bytes may be any: such an array may be a view of numbers.
pub(crate) fn flags(array: &Bound<'_, PyArray1<bool>>) -> PyResult<Vec<bool>> {
    let bytes = array.call_method1(intern!(array.py(), "view"), (intern!(array.py(), "uint8"),))?;
    let bytes = elements(&bytes.cast_into::<PyArray1<u8>>()?)?;
    Ok(bytes.into_iter().map(|byte| byte != 0).collect())
}

impl<'py> Ids<'py> {
    /// Reads the argument called `what`: an array or anything that NumPy makes one of.
    pub(crate) fn new(what: &str, values: &Bound<'py, PyAny>) -> PyResult<Self> {
        static AS_ARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = values.py();
        let array = AS_ARRAY.import(py, "numpy", "asarray")?.call1((values,))?;
        let array = array.cast_into::<PyUntypedArray>()?;
        if array.ndim() != 1 {
            return Err(not_integers(what, &format!("not of {} dimensions", array.ndim())));
        }
        let dtype = array.dtype();
        // An empty list has no integers to tell its dtype by.
        if !matches!(dtype.kind(), b'i' | b'u') && !array.is_empty() {
            return Err(not_integers(what, &format!("not of dtype {dtype}")));
        }
        // NumPy makes no array of objects from bytes, not even an empty one.
        let copied = if array.is_empty() { array.clone().into_any() } else { copy(&array)? };
        if let Ok(ids) = copied.cast::<PyArray1<i64>>() {
            return Ok(Self::I64(ids.try_readonly()?));
        }
        if let Ok(ids) = copied.cast::<PyArray1<i32>>() {
            return Ok(Self::I32(ids.try_readonly()?));
        }
        if let Ok(ids) = copied.cast::<PyArray1<u32>>() {
            return Ok(Self::U32(ids.try_readonly()?));
        }
        if dtype.kind() == b'u' && dtype.itemsize() == 8 && !array.is_empty() {
            let largest: u64 = copied.call_method0(intern!(py, "max"))?.extract()?;
            if i64::try_from(largest).is_err() {
                return Err(not_integers(what, &format!("and {largest} does not fit 64 bits")));
            }
        }
        let converted = copied.call_method1(intern!(py, "astype"), (intern!(py, "int64"),))?;
        Ok(Self::I64(converted.cast_into::<PyArray1<i64>>()?.try_readonly()?))
    }

    pub(crate) fn as_slice(&self) -> PyResult<Slice<'_>> {
        Ok(match self {
            Self::I32(array) => Slice::I32(array.as_slice()?),
            Self::U32(array) => Slice::U32(array.as_slice()?),
            Self::I64(array) => Slice::I64(array.as_slice()?),
        })
    }

    /// The numbers as 32-bit ids of whatever `what` is.
    pub(crate) fn to_u32(&self, what: &'static str) -> PyResult<Vec<u32>> {
        match self.as_slice()? {
            Slice::U32(ids) => Ok(ids.to_vec()),
            ids => ids.to_i64().iter().map(|&id| id_below(what, id, u32::MAX as usize)).collect(),
        }
    }

    /// The numbers as ids of terms, which need not be there.
    pub(crate) fn to_terms(&self, what: &'static str) -> PyResult<Vec<TermId>> {
        self.as_slice()?.to_i64().iter().map(|&id| term_id(what, id)).collect()
    }

    /// The numbers as node ids of a graph of `n_nodes` nodes.
    pub(crate) fn to_nodes(&self, n_nodes: usize) -> PyResult<Vec<NodeId>> {
        self.as_slice()?.to_i64().iter().map(|&id| node_id(id, n_nodes)).collect()
    }
}

impl<'a> Slice<'a> {
    /// The numbers as `i64`, copied unless they are.
    pub(crate) fn to_i64(self) -> Cow<'a, [i64]> {
        match self {
            Self::I32(ids) => ids.iter().map(|&id| id.into()).collect(),
            Self::U32(ids) => ids.iter().map(|&id| id.into()).collect(),
            Self::I64(ids) => ids.into(),
        }
    }
}

/// `id` as a node id of a graph of `n_nodes` nodes.
pub(crate) fn node_id(id: i64, n_nodes: usize) -> PyResult<NodeId> {
    id_below("node", id, n_nodes)
}

/// A number as the id of a term.
pub(crate) fn term_id(what: &'static str, id: i64) -> PyResult<TermId> {
    let limit = i64::MAX as usize;
    let bits = u64::try_from(id).map_err(|_| to_py(Error::OutOfRange { what, id, limit }))?;
    Ok(TermId::from_bits(bits))
}

fn id_below(what: &'static str, id: i64, limit: usize) -> PyResult<u32> {
    match u32::try_from(id) {
        Ok(checked) if (checked as usize) < limit => Ok(checked),
        _ => Err(to_py(Error::OutOfRange { what, id, limit })),
    }
}
