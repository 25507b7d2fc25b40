//! Integer arguments from Python.

use std::borrow::Cow;

use numpy::{PyArray1, PyArrayDescrMethods, PyReadonlyArray1, PyUntypedArray};
use numpy::{PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pytensor_fuse_core::{Error, NodeId};

use crate::errors::{not_integers, to_py};

/// A one-dimensional contiguous array of integers, read where it is if its dtype is one of these.
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

impl<'py> Ids<'py> {
    /// Reads the argument called `what`: an array or anything that NumPy makes one of.
    pub(crate) fn new(what: &str, values: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Some(ids) = Self::in_place(values) {
            return Ok(ids);
        }
        let py = values.py();
        let numpy = py.import("numpy")?;
        let array = numpy.call_method1("asarray", (values,))?.cast_into::<PyUntypedArray>()?;
        if array.ndim() != 1 {
            return Err(not_integers(what, &format!("not of {} dimensions", array.ndim())));
        }
        let dtype = array.dtype();
        let is_integer = matches!(dtype.kind(), b'i' | b'u');
        // An empty list has no integers to tell its dtype by.
        if !is_integer && !array.is_empty() {
            return Err(not_integers(what, &format!("not of dtype {dtype}")));
        }
        if dtype.kind() == b'u' && dtype.itemsize() == 8 && !array.is_empty() {
            let largest: u64 = array.call_method0("max")?.extract()?;
            if i64::try_from(largest).is_err() {
                return Err(not_integers(what, &format!("and {largest} does not fit 64 bits")));
            }
        }
        let options = PyDict::new(py);
        options.set_item("dtype", "int64")?;
        let copied = numpy.call_method("array", (array,), Some(&options))?;
        Ok(Self::I64(copied.cast_into::<PyArray1<i64>>()?.try_readonly()?))
    }

    fn in_place(values: &Bound<'py, PyAny>) -> Option<Self> {
        fn read<'py, T: numpy::Element>(
            values: &Bound<'py, PyAny>,
        ) -> Option<PyReadonlyArray1<'py, T>> {
            let array = values.cast::<PyArray1<T>>().ok()?.try_readonly().ok()?;
            array.as_slice().is_ok().then_some(array)
        }
        read(values)
            .map(Self::I64)
            .or_else(|| read(values).map(Self::I32))
            .or_else(|| read(values).map(Self::U32))
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

fn id_below(what: &'static str, id: i64, limit: usize) -> PyResult<u32> {
    match u32::try_from(id) {
        Ok(checked) if (checked as usize) < limit => Ok(checked),
        _ => Err(to_py(Error::OutOfRange { what, id, limit })),
    }
}
