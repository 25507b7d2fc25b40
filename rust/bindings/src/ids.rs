//! Integer arguments from Python.
//!
//! # Copies
//! Rust reads no array that other code may write. It runs without the interpreter, so another
//! thread could change the numbers between their check and their use. NumPy copies each array into
//! `bytes`, which are immutable. If loops of NumPy write without the interpreter, the copy may mix
//! several states of the array, but it stays the same from the first check to the last use.
//!
//! Rejected: `numpy.array`, which releases the interpreter while it copies more than a few hundred
//! numbers. When the interpreter ends, Python before 3.14 ends a daemon thread at that point by
//! unwinding through Rust, which aborts the process.
//!
//! Copying two arrays of a million numbers takes five milliseconds; making a graph of them takes 4 to
//! 17.

use numpy::{PyArray1, PyArrayDescrMethods, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pytensor_fuse_core::hashcons::TermId;
use pytensor_fuse_core::{Error, NodeId};

use crate::errors::{not_integers, to_py};

/// An immutable copy of a one-dimensional array of numbers.
fn copy<'py>(array: &Bound<'py, PyUntypedArray>) -> PyResult<Bound<'py, PyAny>> {
    static TO_BYTES: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static FROM_BUFFER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = array.py();
    // The method of the base class copies while it holds the interpreter.
    let to_bytes = TO_BYTES.get_or_try_init(py, || {
        let class = py.import(intern!(py, "numpy"))?.getattr(intern!(py, "ndarray"))?;
        Ok::<_, PyErr>(class.getattr(intern!(py, "tobytes"))?.unbind())
    })?;
    let bytes = to_bytes.bind(py).call1((array,))?;
    FROM_BUFFER.import(py, "numpy", "frombuffer")?.call1((bytes, array.dtype()))
}

/// The elements of an array; see the module about copies.
pub(crate) fn elements<T: numpy::Element + Copy>(
    array: &Bound<'_, PyArray1<T>>,
) -> PyResult<Vec<T>> {
    Ok(copy(array.as_untyped())?.cast_into::<PyArray1<T>>()?.to_vec()?)
}

/// The elements of an array of booleans. Its bytes may have any value, since it may be a view of numbers.
pub(crate) fn flags(array: &Bound<'_, PyArray1<bool>>) -> PyResult<Vec<bool>> {
    let bytes = array.call_method1(intern!(array.py(), "view"), (intern!(array.py(), "uint8"),))?;
    let bytes = elements(&bytes.cast_into::<PyArray1<u8>>()?)?;
    Ok(bytes.into_iter().map(|byte| byte != 0).collect())
}

/// The integers of the argument called `argument`: an array, or anything that NumPy converts to
/// one.
pub(crate) fn integers(argument: &str, values: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    static AS_ARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = values.py();
    let array = AS_ARRAY.import(py, "numpy", "asarray")?.call1((values,))?;
    let array = array.cast_into::<PyUntypedArray>()?;
    if array.ndim() != 1 {
        return Err(not_integers(argument, &format!("not of {} dimensions", array.ndim())));
    }
    // The dtype of an empty list is not integral.
    if array.is_empty() {
        return Ok(Vec::new());
    }
    let dtype = array.dtype();
    if !matches!(dtype.kind(), b'i' | b'u') {
        return Err(not_integers(argument, &format!("not of dtype {dtype}")));
    }
    let copied = copy(&array)?;
    if let Ok(numbers) = copied.cast::<PyArray1<i64>>() {
        return Ok(numbers.to_vec()?);
    }
    // These conversions avoid `astype`, which also releases the interpreter.
    if let Ok(numbers) = copied.cast::<PyArray1<i32>>() {
        return Ok(numbers.to_vec()?.into_iter().map(i64::from).collect());
    }
    if let Ok(numbers) = copied.cast::<PyArray1<u32>>() {
        return Ok(numbers.to_vec()?.into_iter().map(i64::from).collect());
    }
    if dtype.kind() == b'u' && dtype.itemsize() == 8 {
        let largest: u64 = copied.call_method0(intern!(py, "max"))?.extract()?;
        if i64::try_from(largest).is_err() {
            return Err(not_integers(argument, &format!("and {largest} does not fit 64 bits")));
        }
    }
    let converted = copied.call_method1(intern!(py, "astype"), (intern!(py, "int64"),))?;
    Ok(converted.cast_into::<PyArray1<i64>>()?.to_vec()?)
}

/// The integers of an argument as 32-bit ids, each called `what`.
pub(crate) fn ids(
    argument: &str,
    what: &'static str,
    values: &Bound<'_, PyAny>,
) -> PyResult<Vec<u32>> {
    if let Ok(array) = values.cast::<PyArray1<u32>>() {
        return elements(array);
    }
    integers(argument, values)?.iter().map(|&id| id_below(what, id, u32::MAX as usize)).collect()
}

/// An argument as node ids of a graph of `n_nodes` nodes.
pub(crate) fn nodes(values: &Bound<'_, PyAny>, n_nodes: usize) -> PyResult<Vec<NodeId>> {
    integers("nodes", values)?.iter().map(|&id| node_id(id, n_nodes)).collect()
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
