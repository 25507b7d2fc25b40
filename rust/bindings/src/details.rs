//! What a walk over a graph reads of its objects beside how they are connected.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};
use pytensor_fuse_core::plan::NONE;

use crate::objects::own_dictionary;
use crate::ops::PlainOps;
use crate::types::Types;
use crate::walk::Interned;

/// What a walk reads of ops, nodes and variables, by their ids.
pub(crate) trait Details {
    /// The number of an op.
    fn op(&mut self, op: Bound<'_, PyAny>) -> PyResult<u32>;

    /// Reads the next node.
    fn node(&mut self, _node: &Bound<'_, PyAny>) -> PyResult<()> {
        Ok(())
    }

    /// Reads some of the variables: inputs, or what nodes compute.
    fn variables(
        &mut self,
        _py: Python<'_>,
        _variables: &[Py<PyAny>],
        _ids: impl Iterator<Item = u32> + Clone,
    ) -> PyResult<()> {
        Ok(())
    }

    /// Reads the constants among the variables.
    fn constants(
        &mut self,
        _py: Python<'_>,
        _variables: &[Py<PyAny>],
        _ids: impl Iterator<Item = u32>,
    ) -> PyResult<()> {
        Ok(())
    }
}

/// Ops, told apart by identity.
impl Details for Interned {
    fn op(&mut self, op: Bound<'_, PyAny>) -> PyResult<u32> {
        self.id_of(op)
    }
}

/// Ops and types, told apart by what they are where that is plain.
pub(crate) struct OpsAndTypes<'py> {
    pub(crate) ops: PlainOps,
    pub(crate) types: Types<'py>,
    /// The number of each variable's type; [`NONE`] of what is neither an input nor computed.
    pub(crate) type_of: Vec<u32>,
}

impl<'py> OpsAndTypes<'py> {
    pub(crate) fn new(
        plain_type: &Bound<'py, PyType>,
        plain_ops: Option<&Bound<'py, PyDict>>,
    ) -> Self {
        let plain_ops = plain_ops.map(|plain| plain.clone().unbind());
        let (ops, types) = (PlainOps::new(plain_ops), Types::new(plain_type.clone()));
        Self { ops, types, type_of: Vec::new() }
    }
}

impl Details for OpsAndTypes<'_> {
    fn op(&mut self, op: Bound<'_, PyAny>) -> PyResult<u32> {
        Ok(self.ops.number(&op)?.0)
    }

    fn variables(
        &mut self,
        py: Python<'_>,
        variables: &[Py<PyAny>],
        ids: impl Iterator<Item = u32> + Clone,
    ) -> PyResult<()> {
        self.type_of.resize(variables.len(), NONE);
        for id in ids {
            let variable = variables[id as usize].bind(py);
            let ty = variable.getattr(intern!(py, "type"))?;
            self.type_of[id as usize] = self.types.number(&ty)?;
        }
        Ok(())
    }
}

/// The same, names, and what tags say. Decides nothing: which notes matter is for the Python package
/// to say.
pub(crate) struct WithNotes<'py> {
    pub(crate) ops_and_types: OpsAndTypes<'py>,
    /// The note in a tag that does not count: of variables, of nodes.
    harmless: [Bound<'py, PyString>; 2],
    /// Variables with names.
    pub(crate) names: Vec<(u32, Py<PyAny>)>,
    /// Whether each variable, and each node in its order, has other notes.
    pub(crate) noted_variables: Vec<bool>,
    pub(crate) noted_nodes: Vec<bool>,
}

impl<'py> WithNotes<'py> {
    pub(crate) fn new(
        ops_and_types: OpsAndTypes<'py>,
        harmless: [Bound<'py, PyString>; 2],
    ) -> Self {
        let (noted_variables, noted_nodes) = (Vec::new(), Vec::new());
        Self { ops_and_types, harmless, names: Vec::new(), noted_variables, noted_nodes }
    }
}

impl Details for WithNotes<'_> {
    fn op(&mut self, op: Bound<'_, PyAny>) -> PyResult<u32> {
        self.ops_and_types.op(op)
    }

    fn node(&mut self, node: &Bound<'_, PyAny>) -> PyResult<()> {
        self.noted_nodes.push(is_noted(node, &self.harmless[1])?);
        Ok(())
    }

    fn variables(
        &mut self,
        py: Python<'_>,
        variables: &[Py<PyAny>],
        ids: impl Iterator<Item = u32> + Clone,
    ) -> PyResult<()> {
        self.ops_and_types.variables(py, variables, ids.clone())?;
        self.noted_variables.resize(variables.len(), false);
        for id in ids {
            let variable = variables[id as usize].bind(py);
            let name = variable.getattr(intern!(py, "name"))?;
            if !name.is_none() {
                self.names.push((id, name.unbind()));
            }
            self.noted_variables[id as usize] = is_noted(variable, &self.harmless[0])?;
        }
        Ok(())
    }

    fn constants(
        &mut self,
        py: Python<'_>,
        variables: &[Py<PyAny>],
        ids: impl Iterator<Item = u32>,
    ) -> PyResult<()> {
        self.noted_variables.resize(variables.len(), false);
        for id in ids {
            let constant = variables[id as usize].bind(py);
            self.noted_variables[id as usize] = is_noted(constant, &self.harmless[0])?;
        }
        Ok(())
    }
}

/// Whether the tag of a node or variable has notes beside the one named `harmless`.
fn is_noted(object: &Bound<'_, PyAny>, harmless: &Bound<'_, PyString>) -> PyResult<bool> {
    let notes = own_dictionary(&object.getattr(intern!(object.py(), "tag"))?)?;
    let n_notes = notes.len();
    Ok(n_notes > 1 || (n_notes == 1 && !notes.contains(harmless)?))
}
