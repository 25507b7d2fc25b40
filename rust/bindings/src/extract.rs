//! Walks PyTensor's objects into integer arrays. Decides nothing: what the arrays mean is for
//! `pytensor_fuse._extract` to say.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple, PyType};
use pytensor_fuse_core::Error;
use pytensor_fuse_core::plan::{NONE, Rows};
use rustc_hash::FxHashMap;

/// Dimensions that fit the bits of a broadcast pattern; NumPy's own limit.
const MAX_NDIM: usize = 64;

/// Objects seen so far, by identity. Every object stays alive in `objects`, so that no address is
/// used twice.
#[derive(Default)]
struct Interned {
    ids: FxHashMap<usize, u32>,
    objects: Vec<Py<PyAny>>,
}

impl Interned {
    /// The id of `object`, and whether it is new.
    fn id(&mut self, object: &Bound<'_, PyAny>) -> PyResult<(u32, bool)> {
        let next = self.objects.len() as u32;
        if next == NONE {
            return Err(crate::errors::too_large("the graph"));
        }
        match self.ids.entry(object.as_ptr() as usize) {
            std::collections::hash_map::Entry::Occupied(entry) => Ok((*entry.get(), false)),
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(next);
                self.objects.push(object.clone().unbind());
                Ok((next, true))
            }
        }
    }
}

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
    /// Type of each operand of a typed node, `None` for variables that no typed node touches.
    pub(crate) types: Vec<Option<TypeInfo>>,
    pub(crate) dtypes: Vec<Py<PyString>>,
    pub(crate) constants: Vec<bool>,
    pub(crate) results: Vec<u32>,
    /// Signature of each typed node, [`NONE`] for others.
    pub(crate) signatures: Vec<u32>,
    /// A node that has the signature, for each.
    pub(crate) examples: Vec<u32>,
}

struct Walk<'py, 'a> {
    py: Python<'py>,
    typed_op: &'a Bound<'py, PyType>,
    kind: &'a Bound<'py, PyString>,
    constant: &'a Bound<'py, PyType>,
    variables: Interned,
    /// Owner of each variable: an index into `applies`, or [`NONE`].
    owners: Vec<u32>,
    constants: Vec<bool>,
    types: Vec<Option<TypeInfo>>,
    applies: Interned,
    /// What has been read of `applies`, in their order: op, inputs, outputs.
    read_ops: Vec<u32>,
    read_inputs: Rows,
    read_outputs: Rows,
    ops: Interned,
    /// For each op, if it is an instance of `typed_op`, the id of its kind.
    op_kinds: Vec<Option<u32>>,
    kinds: Interned,
    /// For each Python class of variables whether it is a class of constants.
    constant_classes: FxHashMap<usize, (bool, Py<PyType>)>,
    dtypes: Vec<Py<PyString>>,
    /// What typed nodes are, apart from the shapes of their operands: the kind of the op, the
    /// number of inputs, for each input its dtype and the position where it first occurs, the
    /// output dtypes.
    signature_ids: FxHashMap<Box<[u32]>, u32>,
}

impl<'py, 'a> Walk<'py, 'a> {
    fn new(
        py: Python<'py>,
        typed_op: &'a Bound<'py, PyType>,
        kind: &'a Bound<'py, PyString>,
        constant: &'a Bound<'py, PyType>,
    ) -> Self {
        Self {
            py,
            typed_op,
            kind,
            constant,
            variables: Interned::default(),
            owners: Vec::new(),
            constants: Vec::new(),
            types: Vec::new(),
            applies: Interned::default(),
            read_ops: Vec::new(),
            read_inputs: Rows::empty(),
            read_outputs: Rows::empty(),
            ops: Interned::default(),
            op_kinds: Vec::new(),
            kinds: Interned::default(),
            constant_classes: FxHashMap::default(),
            dtypes: Vec::new(),
            signature_ids: FxHashMap::default(),
        }
    }

    fn variable(&mut self, variable: &Bound<'py, PyAny>) -> PyResult<u32> {
        let (id, is_new) = self.variables.id(variable)?;
        if is_new {
            let is_constant = self.is_constant(variable)?;
            let owner = if is_constant {
                NONE
            } else {
                let owner = variable.getattr(intern!(self.py, "owner"))?;
                if owner.is_none() { NONE } else { self.applies.id(&owner)?.0 }
            };
            self.owners.push(owner);
            self.constants.push(is_constant);
            self.types.push(None);
        }
        Ok(id)
    }

    fn is_constant(&mut self, variable: &Bound<'py, PyAny>) -> PyResult<bool> {
        let class = variable.get_type();
        let key = class.as_ptr() as usize;
        if let Some(&(known, _)) = self.constant_classes.get(&key) {
            return Ok(known);
        }
        let answer = class.is_subclass(self.constant)?;
        self.constant_classes.insert(key, (answer, class.unbind()));
        Ok(answer)
    }

    /// Reads apply nodes up to `apply`, which were met as owners.
    fn read(&mut self, apply: u32) -> PyResult<()> {
        let mut row = Vec::new();
        while self.read_ops.len() <= apply as usize {
            let next = self.read_ops.len();
            let node = self.applies.objects[next].clone_ref(self.py).into_bound(self.py);
            let op = self.op(&node.getattr(intern!(self.py, "op"))?)?;
            self.read_ops.push(op);
            self.variables_of(&node.getattr(intern!(self.py, "inputs"))?, &mut row)?;
            self.read_inputs.push(row.drain(..));
            self.variables_of(&node.getattr(intern!(self.py, "outputs"))?, &mut row)?;
            self.read_outputs.push(row.drain(..));
        }
        Ok(())
    }

    fn op(&mut self, op: &Bound<'py, PyAny>) -> PyResult<u32> {
        let (id, is_new) = self.ops.id(op)?;
        if is_new {
            let kind = if op.is_instance(self.typed_op)? {
                Some(self.kinds.id(&op.getattr(self.kind)?)?.0)
            } else {
                None
            };
            self.op_kinds.push(kind);
        }
        Ok(id)
    }

    fn variables_of(&mut self, row: &Bound<'py, PyAny>, ids: &mut Vec<u32>) -> PyResult<()> {
        if let Ok(list) = row.cast::<PyList>() {
            for variable in list.iter() {
                ids.push(self.variable(&variable)?);
            }
        } else {
            for variable in row.try_iter()? {
                ids.push(self.variable(&variable?)?);
            }
        }
        Ok(())
    }

    /// The nodes needed for `results`, each after those that it reads, in the order in which
    /// `pytensor.graph.traversal.toposort` yields them: depth first from the last result, the last
    /// missing input first.
    fn toposort(&mut self, results: &[u32]) -> PyResult<Vec<u32>> {
        let mut order = Vec::new();
        let mut computed = vec![false; self.owners.len()];
        // An apply node waits for its inputs once: waiting again, it waits for itself.
        let mut has_waited = vec![false; self.read_ops.len()];
        let mut todo = results.to_vec();
        while let Some(variable) = todo.pop() {
            let owner = self.owners[variable as usize];
            if owner == NONE || computed[variable as usize] {
                continue;
            }
            self.read(owner)?;
            computed.resize(self.owners.len(), false);
            let (inputs, outputs) = (self.read_inputs.row(owner), self.read_outputs.row(owner));
            let before = todo.len();
            todo.push(variable);
            todo.extend(inputs.iter().filter(|&&input| {
                !computed[input as usize] && self.owners[input as usize] != NONE
            }));
            if todo.len() > before + 1 {
                has_waited.resize(self.read_ops.len(), false);
                if std::mem::replace(&mut has_waited[owner as usize], true) {
                    return Err(crate::errors::cyclic());
                }
                continue;
            }
            todo.pop();
            for &output in outputs {
                computed[output as usize] = true;
            }
            order.push(owner);
        }
        Ok(order)
    }

    fn type_info(&mut self, variable: u32) -> PyResult<TypeInfo> {
        if let Some(known) = self.types[variable as usize] {
            return Ok(known);
        }
        let py = self.py;
        let object = self.variables.objects[variable as usize].bind(py);
        let kind = object.getattr(intern!(py, "type"))?;
        let dtype = kind.getattr(intern!(py, "dtype"))?.cast_into::<PyString>()?;
        let shape = kind.getattr(intern!(py, "shape"))?.cast_into::<PyTuple>()?;
        if shape.len() > MAX_NDIM {
            return Err(crate::errors::too_many_dimensions(shape.len(), MAX_NDIM));
        }
        let mut mask = 0;
        for (axis, length) in shape.iter().enumerate() {
            if !length.is_none() && length.extract::<u64>()? == 1 {
                mask |= 1 << axis;
            }
        }
        let info = TypeInfo { dtype: self.dtype(dtype)?, ndim: shape.len() as u32, mask };
        self.types[variable as usize] = Some(info);
        Ok(info)
    }

    /// Id of a dtype, by value: there are few, and most are the same object.
    fn dtype(&mut self, dtype: Bound<'py, PyString>) -> PyResult<u32> {
        for (id, known) in (0u32..).zip(&self.dtypes) {
            if known.is(&dtype) || known.bind(self.py).as_any().eq(&dtype)? {
                return Ok(id);
            }
        }
        self.dtypes.push(dtype.unbind());
        Ok(self.dtypes.len() as u32 - 1)
    }

    /// The id of the signature of `apply`, and whether it is new; `parts` is scratch space.
    fn signature(&mut self, apply: u32, kind: u32, parts: &mut Vec<u32>) -> PyResult<(u32, bool)> {
        let n_inputs = self.read_inputs.row(apply).len();
        parts.clear();
        parts.extend([kind, n_inputs as u32]);
        for position in 0..n_inputs {
            let inputs = self.read_inputs.row(apply);
            let input = inputs[position];
            let first = inputs.iter().position(|&other| other == input).unwrap_or(position);
            parts.extend([self.type_info(input)?.dtype, first as u32]);
        }
        for position in 0..self.read_outputs.row(apply).len() {
            let output = self.read_outputs.row(apply)[position];
            parts.push(self.type_info(output)?.dtype);
        }
        if let Some(&id) = self.signature_ids.get(&parts[..]) {
            return Ok((id, false));
        }
        let id = self.signature_ids.len() as u32;
        self.signature_ids.insert(parts.as_slice().into(), id);
        Ok((id, true))
    }

    fn finish(mut self, order: &[u32], results: Vec<u32>) -> PyResult<Extraction> {
        let (mut inputs, mut outputs) = (Rows::empty(), Rows::empty());
        let (mut signatures, mut examples) = (Vec::with_capacity(order.len()), Vec::new());
        let mut nodes = Vec::with_capacity(order.len());
        let mut parts = Vec::new();
        for (node, &apply) in (0u32..).zip(order) {
            let mut id = NONE;
            if let Some(kind) = self.op_kinds[self.read_ops[apply as usize] as usize] {
                let is_new;
                (id, is_new) = self.signature(apply, kind, &mut parts)?;
                if is_new {
                    examples.push(node);
                }
            }
            signatures.push(id);
            inputs.push(self.read_inputs.row(apply).iter().copied());
            outputs.push(self.read_outputs.row(apply).iter().copied());
            nodes.push(self.applies.objects[apply as usize].clone_ref(self.py));
        }
        Ok(Extraction {
            nodes,
            variables: self.variables.objects,
            inputs,
            outputs,
            types: self.types,
            dtypes: self.dtypes,
            constants: self.constants,
            results,
            signatures,
            examples,
        })
    }
}

/// The graph between `outputs` and its roots as integer arrays.
///
/// `order` gives the apply nodes in a topological order where there is more to keep than the data
/// flow; without it they come in the order of `pytensor.graph.traversal.toposort`. Dtypes and
/// shapes are read for the operands of nodes whose op is an instance of `typed_op` only. Of such
/// ops, those whose attribute `kind` is the same object are taken to be the same.
#[pyfunction]
#[pyo3(signature = (outputs, typed_op, kind, constant, order=None))]
pub(crate) fn extract(
    py: Python<'_>,
    outputs: &Bound<'_, PyAny>,
    typed_op: &Bound<'_, PyType>,
    kind: &Bound<'_, PyString>,
    constant: &Bound<'_, PyType>,
    order: Option<&Bound<'_, PyAny>>,
) -> PyResult<Extraction> {
    let mut walk = Walk::new(py, typed_op, kind, constant);
    let mut results = Vec::new();
    walk.variables_of(outputs, &mut results)?;
    let order = match order {
        None => walk.toposort(&results)?,
        Some(order) => {
            let mut ids = Vec::new();
            for apply in order.try_iter()? {
                let (id, _) = walk.applies.id(&apply?)?;
                walk.read(id)?;
                ids.push(id);
            }
            ids
        }
    };
    walk.finish(&order, results)
}

#[pymethods]
impl Extraction {
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

    /// Variables that a node reads, repeated ones repeated.
    fn inputs(&self, node: u32) -> PyResult<Vec<u32>> {
        self.check(node)?;
        Ok(self.inputs.row(node).to_vec())
    }

    /// Results of a node.
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

    /// For each signature, a node that has it.
    fn examples(&self, py: Python<'_>) -> Vec<Py<PyAny>> {
        self.examples.iter().map(|&node| self.nodes[node as usize].clone_ref(py)).collect()
    }

    /// Constants that typed nodes read and that may have more than one element: pairs of
    /// variable id and object.
    fn array_constants(&self, py: Python<'_>) -> Vec<(u32, Py<PyAny>)> {
        let larger = |info: &TypeInfo| info.mask.count_ones() < info.ndim;
        (0u32..)
            .zip(&self.types)
            .filter(|&(id, info)| self.constants[id as usize] && info.as_ref().is_some_and(larger))
            .map(|(id, _)| (id, self.variables[id as usize].clone_ref(py)))
            .collect()
    }

    /// Whether `other` was extracted from the very same objects, unchanged.
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
