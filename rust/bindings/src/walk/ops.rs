//! Numbers for ops. A graph has an op object for each node, and comparing them in Python takes longer
//! than the rest of a walk.

use pyo3::exceptions::PyKeyError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PySlice, PyString, PyTuple};
use rustc_hash::FxHashMap;

/// Numbers ops by identity or, if `plain` has their exact class, by the attributes named there.
/// Attributes are compared by value if they are integers, strings, tuples and slices of these, or
/// empty dictionaries, and otherwise by identity. The name `__dict__` stands for all attributes in
/// the op's dictionary. Ops with different numbers may still be equal.
#[derive(Default)]
pub(crate) struct PlainOps {
    plain: Option<Py<PyDict>>,
    /// One op for each number.
    pub(crate) distinct: Vec<Py<PyAny>>,
    numbers: FxHashMap<usize, u32>,
    /// The compared attributes of each class; None if only identity counts.
    classes: FxHashMap<usize, Option<Vec<Attribute>>>,
    seen: FxHashMap<Box<[i64]>, u32>,
    /// The objects that keys identify by address. They stay alive here, so that no address is
    /// reused.
    held: Vec<Py<PyAny>>,
    /// Numbers of strings, by value: there may be as many messages as ops.
    texts: FxHashMap<Box<str>, i64>,
    key: Vec<i64>,
}

/// A compared attribute of an op.
enum Attribute {
    Named(Py<PyString>),
    /// The whole dictionary.
    Own,
}

impl PlainOps {
    pub(crate) fn new(plain: Option<Py<PyDict>>) -> Self {
        Self { plain, ..Self::default() }
    }

    /// An empty numbering with the same classes.
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
        let mut number = next;
        if self.write_key(op)? {
            // Most keys are known, and need no copy.
            number = match self.seen.get(self.key.as_slice()) {
                Some(&known) => known,
                None => *self.seen.entry(self.key.as_slice().into()).or_insert(next),
            };
        }
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
        for attribute in self.classes.values().flatten().flatten() {
            if let Attribute::Named(name) = attribute {
                visit.call(name)?;
            }
        }
        self.distinct.iter().chain(&self.held).try_for_each(|object| visit.call(object))
    }

    /// Writes the key of `op`, if its class compares attributes.
    fn write_key(&mut self, op: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = op.py();
        let class = op.get_type();
        let address = class.as_ptr() as usize;
        if !self.classes.contains_key(&address) {
            let attributes = self.attributes(class.as_any())?;
            self.held.push(class.into_any().unbind());
            self.classes.insert(address, attributes);
        }
        // The attributes are taken out of the table, since `write` needs the rest of `self`.
        let Some(Some(attributes)) = self.classes.get_mut(&address) else { return Ok(false) };
        let attributes = std::mem::take(attributes);
        self.key.clear();
        self.key.push(address as i64);
        let written = attributes.iter().try_for_each(|attribute| match attribute {
            Attribute::Named(name) => self.write(op.getattr(name.bind(py))?),
            Attribute::Own => {
                let own = op.getattr(intern!(py, "__dict__"))?.cast_into::<PyDict>()?;
                self.key.push(own.len() as i64);
                own.iter().try_for_each(|(name, value)| {
                    self.write(name)?;
                    self.write(value)
                })
            }
        });
        self.classes.insert(address, Some(attributes));
        written.map(|()| true)
    }

    /// The compared attributes of a class; None if only identity counts.
    fn attributes(&self, class: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Attribute>>> {
        let py = class.py();
        let Some(plain) = &self.plain else { return Ok(None) };
        // The look-up calls `__getitem__`, since the package chooses the names for a class on its
        // first use.
        let names = match plain.bind(py).as_any().get_item(class) {
            Ok(names) => names.cast_into::<PyTuple>()?,
            Err(error) if error.is_instance_of::<PyKeyError>(py) => return Ok(None),
            Err(error) => return Err(error),
        };
        let attribute = |name: Bound<'_, PyAny>| {
            let name = name.cast_into::<PyString>()?;
            Ok(if name == "__dict__" { Attribute::Own } else { Attribute::Named(name.unbind()) })
        };
        names.iter().map(attribute).collect::<PyResult<_>>().map(Some)
    }

    /// Writes a key that equal plain values share; for other values, their address.
    fn write(&mut self, value: Bound<'_, PyAny>) -> PyResult<()> {
        // On an explicit stack, since tuples may be nested to any depth.
        let mut pending = vec![value];
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
            } else if let Some(text) =
                value.cast_exact::<PyString>().ok().and_then(|text| text.to_str().ok())
            {
                let next = self.texts.len() as i64;
                let number = match self.texts.get(text) {
                    Some(&known) => known,
                    None => *self.texts.entry(text.into()).or_insert(next),
                };
                self.key.extend([6, number]);
            } else if let Ok(slice) = value.cast_exact::<PySlice>() {
                let py = slice.py();
                self.key.push(7);
                for name in [intern!(py, "step"), intern!(py, "stop"), intern!(py, "start")] {
                    pending.push(slice.getattr(name)?);
                }
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
