//! Graphs as integer arrays for the planner; `pytensor_fuse._fusion.extract` interprets them.

use std::collections::hash_map::Entry;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple, PyType};
use pytensor_fuse_core::Error;
use pytensor_fuse_core::Rows;
use pytensor_fuse_core::plan::NONE;
use rustc_hash::FxHashMap;

use crate::walk::{Details, Interned, QUICK, Strings, Walk};

/// The number of bits of a broadcast pattern, and NumPy's limit on the number of dimensions.
const MAX_NDIM: usize = 64;

/// A broadcast pattern and a dtype: bit `i` of `mask` is set if dimension `i` has static length 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TypeInfo {
    pub(crate) dtype: u32,
    pub(crate) ndim: u32,
    pub(crate) mask: u64,
}

/// A graph as integer arrays; nodes are numbered in a topological order.
#[pyclass(frozen, module = "pytensor_fuse._core")]
pub(crate) struct Extraction {
    pub(crate) nodes: Vec<Py<PyAny>>,
    pub(crate) variables: Vec<Py<PyAny>>,
    pub(crate) inputs: Rows,
    pub(crate) outputs: Rows,
    /// The types of the operands of typed nodes; None for other variables.
    pub(crate) types: Vec<Option<TypeInfo>>,
    pub(crate) dtypes: Vec<Py<PyString>>,
    pub(crate) constants: Vec<bool>,
    pub(crate) results: Vec<u32>,
    /// Signature of each typed node, [`NONE`] for others.
    pub(crate) signatures: Vec<u32>,
    /// A node of each signature.
    pub(crate) examples: Vec<u32>,
    /// A key of each signature, valid in all extractions.
    keys: Vec<Py<PyBytes>>,
}

struct Extractor<'py, 'a> {
    walk: Walk<'py, 'a>,
    types: Vec<Option<TypeInfo>>,
    dtypes: Strings,
    /// The id of the kind of each op; None if the op is not typed.
    op_kinds: Vec<Option<u32>>,
    kinds: Interned,
    /// Ids of signatures. A signature describes a typed node apart from the shapes of its operands: the
    /// kind of the op, the number of inputs, the dtype of each input and its first position among the
    /// inputs, and the dtypes of the outputs.
    signature_ids: FxHashMap<Box<[u32]>, u32>,
    /// The last node that was found to read each variable, and the first position of the variable
    /// among its inputs.
    first_read: Vec<(u32, u32)>,
}

impl<'py, 'a> Extractor<'py, 'a> {
    fn new(
        walk: Walk<'py, 'a>,
        typed_op: &Bound<'py, PyType>,
        attribute: &Bound<'py, PyString>,
    ) -> PyResult<Self> {
        let mut kinds = Interned::default();
        let mut op_kinds = Vec::with_capacity(walk.details.ops.distinct.len());
        // Each class is checked once, since the check calls a method in Python.
        let mut is_typed_class: FxHashMap<usize, bool> = FxHashMap::default();
        for op in &walk.details.ops.distinct {
            let op = op.bind(walk.py);
            let is_typed = match is_typed_class.entry(op.get_type_ptr() as usize) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(place) => *place.insert(op.is_instance(typed_op)?),
            };
            let kind = is_typed.then(|| kinds.id(&op.getattr(attribute)?)).transpose()?;
            op_kinds.push(kind.map(|(id, _)| id));
        }
        let types = vec![None; walk.variables.objects.len()];
        let (dtypes, signature_ids) = (Strings::default(), FxHashMap::default());
        let first_read = vec![(NONE, 0); types.len()];
        Ok(Self { walk, types, dtypes, op_kinds, kinds, signature_ids, first_read })
    }

    fn type_info(&mut self, variable: u32) -> PyResult<TypeInfo> {
        if let Some(known) = self.types[variable as usize] {
            return Ok(known);
        }
        let py = self.walk.py;
        self.walk.signals.check(py)?;
        let object = self.walk.variables.objects[variable as usize].bind(py);
        let ty = object.getattr(intern!(py, "type"))?;
        let dtype = ty.getattr(intern!(py, "dtype"))?.cast_into::<PyString>()?;
        let shape = ty.getattr(intern!(py, "shape"))?.cast_into::<PyTuple>()?;
        if shape.len() > MAX_NDIM {
            return Err(crate::errors::too_many_dimensions(shape.len(), MAX_NDIM));
        }
        let mut mask = 0;
        for (axis, length) in shape.iter().enumerate() {
            // PyTensor accepts any integer as a length.
            if !length.is_none() && length.extract::<u64>().is_ok_and(|length| length == 1) {
                mask |= 1 << axis;
            }
        }
        let info = TypeInfo { dtype: self.dtypes.id(dtype)?, ndim: shape.len() as u32, mask };
        self.types[variable as usize] = Some(info);
        Ok(info)
    }

    /// The id of the signature of `node`, and whether it is new; `parts` is scratch space.
    fn signature(&mut self, node: u32, kind: u32, parts: &mut Vec<u32>) -> PyResult<(u32, bool)> {
        let n_inputs = self.walk.inputs.row(node).len();
        parts.clear();
        parts.extend([kind, n_inputs as u32]);
        for position in 0..n_inputs {
            let input = self.walk.inputs.row(node)[position];
            let dtype = self.type_info(input)?.dtype;
            let (reader, first) = &mut self.first_read[input as usize];
            if *reader != node {
                (*reader, *first) = (node, position as u32);
            }
            parts.extend([dtype, *first]);
        }
        for position in 0..self.walk.outputs.row(node).len() {
            let output = self.walk.outputs.row(node)[position];
            parts.push(self.type_info(output)?.dtype);
        }
        if let Some(&id) = self.signature_ids.get(&parts[..]) {
            return Ok((id, false));
        }
        let id = self.signature_ids.len() as u32;
        self.signature_ids.insert(parts.as_slice().into(), id);
        Ok((id, true))
    }

    /// The key of a signature, which distinguishes it in all extractions while its kind is alive: the
    /// address of the kind, the number of inputs, their first positions, and the names of all dtypes.
    fn key(&self, kind: u32, parts: &[u32]) -> PyResult<Py<PyBytes>> {
        let py = self.walk.py;
        let n_inputs = parts[1] as usize;
        let (inputs, outputs) = parts[2..].split_at(2 * n_inputs);
        let address = self.kinds.objects[kind as usize].as_ptr() as usize;
        let mut key = address.to_ne_bytes().to_vec();
        key.extend(parts[1].to_ne_bytes());
        key.extend(inputs.chunks(2).flat_map(|input| input[1].to_ne_bytes()));
        for dtype in inputs.iter().step_by(2).chain(outputs) {
            key.extend(self.dtypes.0[*dtype as usize].bind(py).to_str()?.as_bytes());
            key.push(0);
        }
        Ok(PyBytes::new(py, &key).unbind())
    }

    fn finish(mut self, results: Vec<u32>) -> PyResult<Extraction> {
        let n_nodes = self.walk.nodes.len();
        let (mut signatures, mut examples) = (Vec::with_capacity(n_nodes), Vec::new());
        let (mut parts, mut keys) = (Vec::new(), Vec::new());
        for node in 0..n_nodes as u32 {
            let n_inputs = self.walk.inputs.row(node).len();
            self.walk.signals.check_many(self.walk.py, 1 + n_inputs / QUICK)?;
            let mut id = NONE;
            if let Some(kind) = self.op_kinds[self.walk.ops[node as usize] as usize] {
                let is_new;
                (id, is_new) = self.signature(node, kind, &mut parts)?;
                if is_new {
                    examples.push(node);
                    keys.push(self.key(kind, &parts)?);
                }
            }
            signatures.push(id);
        }
        let Walk { py, nodes, applies, .. } = &self.walk;
        let object = |&node: &u32| applies.objects[node as usize].clone_ref(*py);
        let nodes = nodes.iter().map(object).collect();
        Ok(Extraction {
            nodes,
            variables: self.walk.variables.objects,
            inputs: self.walk.inputs,
            outputs: self.walk.outputs,
            types: self.types,
            dtypes: self.dtypes.0,
            constants: self.walk.constants,
            results,
            signatures,
            examples,
            keys,
        })
    }
}

/// The graph between `outputs` and its roots as integer arrays.
///
/// `order` lists the apply nodes in a topological order that respects more than the data flow; by
/// default, it is the order of `pytensor.graph.traversal.toposort`. Dtypes and shapes are read only for
/// the operands of typed nodes, whose ops are instances of `typed_op`. Two such ops are considered
/// equal if their attribute named `attribute` is the same object.
#[pyfunction]
#[pyo3(signature = (outputs, typed_op, attribute, constant, order=None))]
pub(crate) fn extract(
    py: Python<'_>,
    outputs: &Bound<'_, PyAny>,
    typed_op: &Bound<'_, PyType>,
    attribute: &Bound<'_, PyString>,
    constant: &Bound<'_, PyType>,
    order: Option<&Bound<'_, PyAny>>,
) -> PyResult<Extraction> {
    let mut walk = Walk::new(py, constant, Details::default());
    let results = match order {
        None => walk.up_to(outputs)?,
        Some(order) => {
            let results = walk.variables_of(outputs)?;
            walk.given(order)?;
            results
        }
    };
    Extractor::new(walk, typed_op, attribute)?.finish(results)
}

#[pymethods]
impl Extraction {
    /// The variables that are results of the whole graph, in its order.
    #[getter]
    fn results(&self) -> Vec<u32> {
        self.results.clone()
    }

    /// Apply nodes, by node id.
    #[getter]
    fn nodes(&self, py: Python<'_>) -> Vec<Py<PyAny>> {
        self.nodes.iter().map(|node| node.clone_ref(py)).collect()
    }

    /// Variables, by variable id.
    #[getter]
    fn variables(&self, py: Python<'_>) -> Vec<Py<PyAny>> {
        self.variables.iter().map(|variable| variable.clone_ref(py)).collect()
    }

    /// Distinct dtypes of the operands of typed nodes.
    #[getter]
    fn dtypes(&self, py: Python<'_>) -> Vec<Py<PyString>> {
        self.dtypes.iter().map(|dtype| dtype.clone_ref(py)).collect()
    }

    /// The inputs of a node, with repetitions.
    fn inputs(&self, node: u32) -> PyResult<Vec<u32>> {
        self.check(node)?;
        Ok(self.inputs.row(node).to_vec())
    }

    /// The outputs of a node.
    fn outputs(&self, node: u32) -> PyResult<Vec<u32>> {
        self.check(node)?;
        Ok(self.outputs.row(node).to_vec())
    }

    /// Dtype of an operand of a typed node, as an index into `dtypes`.
    fn dtype(&self, variable: u32) -> PyResult<u32> {
        let info = self.types.get(variable as usize).copied().flatten();
        info.map(|info| info.dtype).ok_or_else(|| {
            let limit = self.types.len();
            let what = "operand of a typed node";
            crate::errors::to_py(Error::OutOfRange { what, id: variable.into(), limit })
        })
    }

    /// Signature id of each node, -1 for nodes that are not typed.
    #[getter]
    fn signatures(&self) -> Vec<i64> {
        self.signatures.iter().map(|&id| if id == NONE { -1 } else { id.into() }).collect()
    }

    /// A node of each signature.
    fn examples(&self, py: Python<'_>) -> Vec<Py<PyAny>> {
        self.examples.iter().map(|&node| self.nodes[node as usize].clone_ref(py)).collect()
    }

    /// A key of each signature, valid in all extractions while the scalar op is alive: nodes with equal
    /// keys have the same scalar op and equal dtypes, and repeat inputs in the same way.
    fn signature_keys(&self, py: Python<'_>) -> Vec<Py<PyBytes>> {
        self.keys.iter().map(|key| key.clone_ref(py)).collect()
    }

    /// The constants that typed nodes read and that may have more than one element, as pairs of a
    /// variable id and an object.
    fn array_constants(&self, py: Python<'_>) -> Vec<(u32, Py<PyAny>)> {
        let larger = |info: &TypeInfo| info.mask.count_ones() < info.ndim;
        (0u32..)
            .zip(&self.types)
            .filter(|&(id, info)| self.constants[id as usize] && info.as_ref().is_some_and(larger))
            .map(|(id, _)| (id, self.variables[id as usize].clone_ref(py)))
            .collect()
    }

    /// Whether `other` was extracted from the same objects in the same state.
    fn same_objects(&self, other: &Self) -> bool {
        let same = |a: &[Py<PyAny>], b: &[Py<PyAny>]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is(b))
        };
        same(&self.nodes, &other.nodes)
            && same(&self.variables, &other.variables)
            && self.inputs == other.inputs
            && self.outputs == other.outputs
            && self.results == other.results
            && self.types == other.types
            && self.signatures == other.signatures
    }

    fn __len__(&self) -> usize {
        self.nodes.len()
    }

    // There is no `__clear__`: each cycle also leads through a node or variable, which can be
    // cleared.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        for object in self.nodes.iter().chain(&self.variables) {
            visit.call(object)?;
        }
        self.dtypes.iter().try_for_each(|dtype| visit.call(dtype))
    }
}

impl Extraction {
    fn check(&self, node: u32) -> PyResult<()> {
        if (node as usize) < self.nodes.len() {
            return Ok(());
        }
        let limit = self.nodes.len();
        Err(crate::errors::to_py(Error::OutOfRange { what: "node", id: node.into(), limit }))
    }
}
