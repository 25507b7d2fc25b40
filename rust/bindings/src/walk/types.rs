//! Numbers for type objects. A graph has thousands of these objects, but few distinct types.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};
use pytensor_fuse_core::plan::NONE;
use rustc_hash::FxHashMap;

use super::details::set;
use super::{Interned, Strings};

/// Numbers types by value if their class is exactly `plain_type`, and otherwise by identity.
#[derive(Default)]
pub(crate) struct Types<'py> {
    /// If None, no type is read.
    plain_type: Option<Bound<'py, PyType>>,
    /// Id of each object.
    objects: Interned,
    distinct_of: Vec<u32>,
    pub(crate) distinct: Vec<Py<PyAny>>,
    /// The number of each variable's type; [`NONE`] for a variable that has not been read.
    pub(crate) of_variables: Vec<u32>,
    dtypes: Strings,
    /// The numbers of plain types by dtype and static shape, with -1 for an unknown length.
    plain: FxHashMap<Box<[i64]>, u32>,
    key: Vec<i64>,
}

impl<'py> Types<'py> {
    pub(crate) fn new(plain_type: Bound<'py, PyType>) -> Self {
        Self { plain_type: Some(plain_type), ..Self::default() }
    }

    /// Reads the type of a variable.
    pub(super) fn read(&mut self, id: u32, variable: &Bound<'_, PyAny>) -> PyResult<()> {
        let Some(plain_type) = &self.plain_type else { return Ok(()) };
        let ty = variable.getattr(intern!(variable.py(), "type"))?;
        let (object, is_new) = self.objects.id(&ty)?;
        if is_new {
            let next = self.distinct.len() as u32;
            let mut number = next;
            let is_plain = ty.get_type().is(plain_type);
            if is_plain && self.write_plain_key(&ty)? {
                number = match self.plain.get(self.key.as_slice()) {
                    Some(&known) => known,
                    None => *self.plain.entry(self.key.as_slice().into()).or_insert(next),
                };
            }
            if number == next {
                self.distinct.push(ty.unbind());
            }
            self.distinct_of.push(number);
        }
        set(&mut self.of_variables, id, self.distinct_of[object as usize], NONE);
        Ok(())
    }

    /// Writes the key of a plain type, unless a length is negative or too large: PyTensor accepts any
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
