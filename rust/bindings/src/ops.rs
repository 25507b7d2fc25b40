//! Which of many op objects are plainly the same. Graphs hold an object for each node, and asking
//! Python whether two are equal takes longer than all else.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyString, PyTuple};
use rustc_hash::FxHashMap;

use crate::walk::Strings;

/// Numbers for ops, told apart by identity or, if they are of the very classes in `plain`, by the
/// attributes named there, as far as these are integers, strings, tuples of such, empty dictionaries
/// or the same objects. Ops of different numbers may be equal all the same.
#[derive(Default)]
pub(crate) struct PlainOps {
    plain: Option<Py<PyDict>>,
    /// An op of each number.
    pub(crate) distinct: Vec<Py<PyAny>>,
    numbers: FxHashMap<usize, u32>,
    /// For each class that was met the attributes that count, if not only identity does.
    classes: FxHashMap<usize, Option<Py<PyTuple>>>,
    seen: FxHashMap<Box<[i64]>, u32>,
    /// What is known by its address, so that no address is used twice.
    held: Vec<Py<PyAny>>,
    strings: Strings,
    key: Vec<i64>,
}

impl PlainOps {
    pub(crate) fn new(plain: Option<Py<PyDict>>) -> Self {
        Self { plain, ..Self::default() }
    }

    /// None of the ops, but the same classes.
    pub(crate) fn cleared(&self, py: Python<'_>) -> Self {
        Self::new(self.plain.as_ref().map(|plain| plain.clone_ref(py)))
    }

    /// The number of `op`, and whether it is new.
    pub(crate) fn number(&mut self, op: &Bound<'_, PyAny>) -> PyResult<(u32, bool)> {
        let address = op.as_ptr() as usize;
        if let Some(&number) = self.numbers.get(&address) {
            return Ok((number, false));
        }
        let next = self.distinct.len() as u32;
        let number = if self.write_key(op)? {
            match self.seen.get(self.key.as_slice()) {
                Some(&known) => known,
                None => {
                    self.seen.insert(self.key.as_slice().into(), next);
                    next
                }
            }
        } else {
            next
        };
        if number == next {
            self.distinct.push(op.clone().unbind());
        } else {
            self.held.push(op.clone().unbind());
        }
        self.numbers.insert(address, number);
        Ok((number, number == next))
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.plain)?;
        self.classes.values().try_for_each(|names| visit.call(names))?;
        self.distinct.iter().chain(&self.held).try_for_each(|object| visit.call(object))
    }

    /// Writes the key of `op`, if it is of a class whose attributes count.
    fn write_key(&mut self, op: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = op.py();
        let Some(plain) = &self.plain else { return Ok(false) };
        let class = op.get_type();
        let address = class.as_ptr() as usize;
        if !self.classes.contains_key(&address) {
            let names = plain.bind(py).get_item(&class)?;
            let names = names.map(|names| names.cast_into::<PyTuple>()).transpose()?;
            self.held.push(class.into_any().unbind());
            self.classes.insert(address, names.map(Bound::unbind));
        }
        let Some(Some(names)) = self.classes.get(&address) else { return Ok(false) };
        let names = names.clone_ref(py).into_bound(py);
        self.key.clear();
        self.key.push(address as i64);
        for name in names.iter() {
            let value = op.getattr(name.cast_into::<PyString>()?)?;
            self.write(&value)?;
        }
        Ok(true)
    }

    /// Writes what is the same for values that are: by value where that is plain, else the address.
    fn write(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        // On a stack of its own: tuples may be in tuples, however deep.
        let mut pending = vec![value.clone()];
        while let Some(value) = pending.pop() {
            if value.is_none() {
                self.key.push(0);
            } else if let Ok(flag) = value.cast_exact::<PyBool>() {
                self.key.extend([1, i64::from(flag.is_true())]);
            } else if let Some(number) =
                value.cast_exact::<PyInt>().ok().and_then(|number| number.extract().ok())
            {
                self.key.extend([2, number]);
            } else if let Ok(tuple) = value.cast_exact::<PyTuple>() {
                self.key.extend([3, tuple.len() as i64]);
                let first = pending.len();
                pending.extend(tuple.iter());
                pending[first..].reverse();
            } else if let Ok(text) = value.cast_exact::<PyString>() {
                let number = self.strings.id(text.clone())?;
                self.key.extend([6, i64::from(number)]);
            } else if value.cast_exact::<PyDict>().is_ok_and(|dict| dict.is_empty()) {
                self.key.push(4);
            } else {
                self.key.extend([5, value.as_ptr() as usize as i64]);
                self.held.push(value.unbind());
            }
        }
        Ok(())
    }
}
