//! Which of many op objects are plainly the same. Graphs hold an object for each node, and asking
//! Python whether two are equal takes longer than all else.

use pyo3::exceptions::PyKeyError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PySlice, PyString, PyTuple};
use rustc_hash::FxHashMap;

/// Numbers for ops, told apart by identity or, if `plain` has their very class, by the attributes
/// named there, as far as these are integers, strings, tuples and slices of such, empty dictionaries
/// or the same objects. The name `__dict__` stands for each attribute of the op's own. Ops of
/// different numbers may be equal all the same.
#[derive(Default)]
pub(crate) struct PlainOps {
    plain: Option<Py<PyDict>>,
    /// An op of each number.
    pub(crate) distinct: Vec<Py<PyAny>>,
    numbers: FxHashMap<usize, u32>,
    /// For each class that was met the attributes that count, if not only identity does.
    classes: FxHashMap<usize, Option<Vec<Attribute>>>,
    seen: FxHashMap<Box<[i64]>, u32>,
    /// What is known by its address, so that no address is used twice.
    held: Vec<Py<PyAny>>,
    /// Strings by value: messages may be as many as the ops.
    texts: FxHashMap<Box<str>, i64>,
    key: Vec<i64>,
}

/// What counts of an op.
enum Attribute {
    Named(Py<PyString>),
    /// All that is in its dictionary.
    Own,
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
        for attribute in self.classes.values().flatten().flatten() {
            if let Attribute::Named(name) = attribute {
                visit.call(name)?;
            }
        }
        self.distinct.iter().chain(&self.held).try_for_each(|object| visit.call(object))
    }

    /// Writes the key of `op`, if it is of a class whose attributes count.
    fn write_key(&mut self, op: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = op.py();
        let class = op.get_type();
        let address = class.as_ptr() as usize;
        if !self.classes.contains_key(&address) {
            let attributes = self.attributes(class.as_any())?;
            self.held.push(class.into_any().unbind());
            self.classes.insert(address, attributes);
        }
        // Out of the table while the rest of this changes.
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

    /// The attributes of instances of `class` that count, if not only identity does.
    fn attributes(&self, class: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Attribute>>> {
        let py = class.py();
        let Some(plain) = &self.plain else { return Ok(None) };
        // Not as a dictionary's: the package chooses names for classes that it meets.
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

    /// Writes what is the same for values that are: by value where that is plain, else the address.
    fn write(&mut self, value: Bound<'_, PyAny>) -> PyResult<()> {
        // On a stack of its own: tuples may be in tuples, however deep.
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
