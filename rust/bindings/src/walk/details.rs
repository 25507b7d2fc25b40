//! The properties of objects that a walk reads besides their connections.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};
use rustc_hash::FxHashMap;

use super::objects::own_dictionary;
use super::ops::PlainOps;
use super::types::Types;

/// The properties of ops, nodes and variables that a walk reads; by default, only the identity of ops.
#[derive(Default)]
pub(crate) struct Details<'py> {
    pub(crate) ops: PlainOps,
    pub(crate) types: Types<'py>,
    pub(crate) notes: Notes<'py>,
}

impl<'py> Details<'py> {
    /// Details without notes: types are numbered as [`Types`] describes, ops as [`PlainOps`] does.
    pub(crate) fn new(
        plain_type: &Bound<'py, PyType>,
        plain_ops: Option<&Bound<'py, PyDict>>,
    ) -> Self {
        let ops = PlainOps::new(plain_ops.map(|plain| plain.clone().unbind()));
        Self { ops, types: Types::new(plain_type.clone()), ..Self::default() }
    }

    /// Reads variables: inputs, or the outputs of a node.
    pub(super) fn read_variables(
        &mut self,
        py: Python<'_>,
        variables: &[Py<PyAny>],
        ids: impl Iterator<Item = u32>,
    ) -> PyResult<()> {
        for id in ids {
            let variable = variables[id as usize].bind(py);
            self.types.read(id, variable)?;
            self.notes.read_variable(id, variable)?;
        }
        Ok(())
    }
}

/// The names of variables, and flags for the variables and nodes whose tags have notes. The Python
/// package decides which notes matter.
#[derive(Default)]
pub(crate) struct Notes<'py> {
    /// The name of the harmless note in the tags of variables, and of that in the tags of nodes. If
    /// None, nothing is read.
    harmless: Option<[Bound<'py, PyString>; 2]>,
    /// The names of variables, by their ids.
    pub(crate) names: FxHashMap<u32, Py<PyAny>>,
    /// Whether each variable, and each node by its position, has other notes.
    pub(crate) noted_variables: Vec<bool>,
    pub(crate) noted_nodes: Vec<bool>,
}

impl<'py> Notes<'py> {
    pub(crate) fn new(harmless: [Bound<'py, PyString>; 2]) -> Self {
        Self { harmless: Some(harmless), ..Self::default() }
    }

    /// Reads the next node.
    pub(super) fn read_node(&mut self, node: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Some([_, harmless]) = &self.harmless {
            self.noted_nodes.push(is_noted(node, harmless)?);
        }
        Ok(())
    }

    fn read_variable(&mut self, id: u32, variable: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.harmless.is_some() {
            let name = variable.getattr(intern!(variable.py(), "name"))?;
            if !name.is_none() {
                self.names.insert(id, name.unbind());
            }
        }
        self.read_tag(id, variable)
    }

    /// Reads the tag of a variable.
    pub(super) fn read_tag(&mut self, id: u32, variable: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Some([harmless, _]) = &self.harmless {
            let is_noted = is_noted(variable, harmless)?;
            set(&mut self.noted_variables, id, is_noted, false);
        }
        Ok(())
    }
}

/// Sets an entry of a vector that grows as needed.
pub(super) fn set<T: Copy>(values: &mut Vec<T>, id: u32, value: T, missing: T) {
    if values.len() <= id as usize {
        values.resize(id as usize + 1, missing);
    }
    values[id as usize] = value;
}

/// Whether the tag of a node or variable has notes besides the one named `harmless`.
fn is_noted(object: &Bound<'_, PyAny>, harmless: &Bound<'_, PyString>) -> PyResult<bool> {
    let notes = own_dictionary(&object.getattr(intern!(object.py(), "tag"))?)?;
    let n_notes = notes.len();
    Ok(n_notes > 1 || (n_notes == 1 && !notes.contains(harmless)?))
}
