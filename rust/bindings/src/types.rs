//! Which of many type objects are plainly the same. Graphs hold thousands of them, of few types.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};
use rustc_hash::FxHashMap;

use crate::walk::{Interned, Strings};

/// The types of variables, told apart by identity or, if they are just a `plain_type`, by value.
pub(crate) struct Types<'py> {
    plain_type: Bound<'py, PyType>,
    /// Id of each object.
    objects: Interned,
    distinct_of: Vec<u32>,
    pub(crate) distinct: Vec<Py<PyAny>>,
    dtypes: Strings,
    /// Dtype and static shape, -1 where it is not known.
    plain: FxHashMap<Box<[i64]>, u32>,
    key: Vec<i64>,
}

impl<'py> Types<'py> {
    pub(crate) fn new(plain_type: Bound<'py, PyType>) -> Self {
        Self {
            plain_type,
            objects: Interned::default(),
            distinct_of: Vec::new(),
            distinct: Vec::new(),
            dtypes: Strings::default(),
            plain: FxHashMap::default(),
            key: Vec::new(),
        }
    }

    /// The number of a type.
    pub(crate) fn number(&mut self, ty: &Bound<'_, PyAny>) -> PyResult<u32> {
        let (object, is_new) = self.objects.id(ty)?;
        if is_new {
            let next = self.distinct.len() as u32;
            let is_plain = ty.get_type().is(&self.plain_type) && self.write_plain_key(ty)?;
            let id = if is_plain {
                match self.plain.get(self.key.as_slice()) {
                    Some(&known) => known,
                    None => {
                        self.plain.insert(self.key.as_slice().into(), next);
                        next
                    }
                }
            } else {
                next
            };
            if id == next {
                self.distinct.push(ty.clone().unbind());
            }
            self.distinct_of.push(id);
        }
        Ok(self.distinct_of[object as usize])
    }

    /// Writes the key of a plain type, unless it has a length that no array has: PyTensor takes any
    /// integer.
    fn write_plain_key(&mut self, ty: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = ty.py();
        let dtype = ty.getattr(intern!(py, "dtype"))?.cast_into::<PyString>()?;
        let shape = ty.getattr(intern!(py, "shape"))?.cast_into::<PyTuple>()?;
        self.key.clear();
        self.key.push(i64::from(self.dtypes.id(dtype)?));
        for length in shape.iter() {
            if length.is_none() {
                self.key.push(-1);
                continue;
            }
            let Ok(length @ 0..) = length.extract::<i64>() else { return Ok(false) };
            self.key.push(length);
        }
        Ok(true)
    }
}
