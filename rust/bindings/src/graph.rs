//! The graph core for Python, on integer arrays.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use numpy::PyArray1;
use pyo3::prelude::*;
use pytensor_fuse_core as fuse_core;
use pytensor_fuse_core::{Budget, Error, NodeId, ancestors, convex, toposort};

use crate::errors::to_py;
use crate::ids::{self, integers, node_id};
use crate::interrupt::detach;

type IdArray<'py> = Bound<'py, PyArray1<u32>>;

/// A directed graph on the nodes ``0 .. n_nodes``, in compressed rows, both ways.
///
/// Parallel edges are kept. Arrays are copied before they are read, since another thread may write
/// them.
///
/// Parameters
/// ----------
/// n_nodes : int
/// sources, targets : array_like of int
///     The edges ``sources[i] -> targets[i]``.
///
/// Raises
/// ------
/// EdgeError
///     An edge is a self-loop or names a node that the graph does not have.
/// GraphError
///     The arrays differ in length, or there are more nodes or edges than 32 bits can count.
#[pyclass(frozen, module = "pytensor_fuse._core")]
pub(crate) struct Graph(fuse_core::Graph);

#[pymethods]
impl Graph {
    #[new]
    fn new(
        py: Python<'_>,
        n_nodes: i64,
        sources: &Bound<'_, PyAny>,
        targets: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let limit = fuse_core::graph::MAX_NODES;
        let n_nodes = usize::try_from(n_nodes)
            .map_err(|_| to_py(Error::OutOfRange { what: "n_nodes", id: n_nodes, limit }))?;
        let (sources, targets) = (integers("sources", sources)?, integers("targets", targets)?);
        detach(py, |budget| fuse_core::Graph::from_ids(n_nodes, &sources, &targets, budget))
            .map(Self)
    }

    /// Number of nodes.
    #[getter]
    fn n_nodes(&self) -> usize {
        self.0.n_nodes()
    }

    /// Number of edges, including each parallel edge.
    #[getter]
    fn n_edges(&self) -> usize {
        self.0.n_edges()
    }

    /// Targets of the edges that leave ``node``, in the order in which they were given.
    ///
    /// Parameters
    /// ----------
    /// node : int
    ///
    /// Returns
    /// -------
    /// numpy.ndarray of uint32
    ///     One for each edge.
    ///
    /// Raises
    /// ------
    /// IdError
    ///     A node is not in the graph.
    fn successors<'py>(&self, py: Python<'py>, node: i64) -> PyResult<IdArray<'py>> {
        Ok(PyArray1::from_slice(py, self.0.successors(node_id(node, self.n_nodes())?)))
    }

    /// Sources of the edges that enter ``node``, in the order in which they were given.
    ///
    /// Parameters
    /// ----------
    /// node : int
    ///
    /// Returns
    /// -------
    /// numpy.ndarray of uint32
    ///     One for each edge.
    ///
    /// Raises
    /// ------
    /// IdError
    ///     A node is not in the graph.
    fn predecessors<'py>(&self, py: Python<'py>, node: i64) -> PyResult<IdArray<'py>> {
        Ok(PyArray1::from_slice(py, self.0.predecessors(node_id(node, self.n_nodes())?)))
    }

    /// The graph with every edge reversed.
    fn transposed(&self, py: Python<'_>) -> Self {
        Self(py.detach(|| self.0.transposed()))
    }

    /// The topological order that takes, at every step, the ready node with the smallest
    /// ``(key[node], node)``.
    ///
    /// Parameters
    /// ----------
    /// key : array_like of int, optional
    ///     One number per node; by default, ties are broken by id.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray of uint32
    ///
    /// Raises
    /// ------
    /// CycleError
    ///     The graph has a cycle. The error has the ``nodes`` of one cycle.
    #[pyo3(signature = (key=None))]
    fn toposort<'py>(
        &self,
        py: Python<'py>,
        key: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<IdArray<'py>> {
        let key = key.map(|key| integers("key", key)).transpose()?;
        let order = detach(py, |budget| toposort::toposort(&self.0, key.as_deref(), budget))?;
        Ok(PyArray1::from_vec(py, order))
    }

    /// Whether no path between two of ``nodes`` leads through another node.
    ///
    /// Parameters
    /// ----------
    /// nodes : array_like of int
    ///
    /// Returns
    /// -------
    /// bool
    ///
    /// Raises
    /// ------
    /// IdError
    ///     A node is not in the graph.
    fn is_convex(&self, py: Python<'_>, nodes: &Bound<'_, PyAny>) -> PyResult<bool> {
        let nodes = ids::nodes(nodes, self.n_nodes())?;
        detach(py, |budget| convex::is_convex(&self.0, &nodes, budget))
    }

    /// Partition the nodes into connected blocks of equally labelled nodes. The graph of all blocks
    /// is acyclic, and no block can be merged with a neighbor of its label.
    ///
    /// Parameters
    /// ----------
    /// labels : array_like of int
    ///     One per node: -1 for a node that stays alone, or a group.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray of uint32
    ///     The number of the block of each node. Every edge between two blocks goes from a smaller
    ///     to a larger number.
    ///
    /// Raises
    /// ------
    /// CycleError
    ///     The graph itself has a cycle.
    /// GraphError
    ///     There is not one label per node, or a label is below -1.
    fn convex_subgraphs<'py>(
        &self,
        py: Python<'py>,
        labels: &Bound<'py, PyAny>,
    ) -> PyResult<IdArray<'py>> {
        let labels = integers("labels", labels)?;
        let blocks = detach(py, |budget| convex::convex_subgraphs(&self.0, &labels, budget))?;
        Ok(PyArray1::from_vec(py, blocks))
    }

    /// The ancestor sets of the graph: ``AncestorSets(self, memory_limit)``.
    ///
    /// Parameters
    /// ----------
    /// memory_limit : int, optional
    ///     The maximum number of bytes of the sets; 1 GiB by default.
    ///
    /// Returns
    /// -------
    /// AncestorSets
    ///
    /// Raises
    /// ------
    /// MemoryLimitError
    ///     The sets would take more than that. Nothing has been allocated.
    /// CycleError
    ///     The graph has a cycle.
    #[pyo3(signature = (memory_limit=None))]
    fn ancestor_sets(&self, py: Python<'_>, memory_limit: Option<u64>) -> PyResult<AncestorSets> {
        AncestorSets::new(py, self, memory_limit)
    }

    fn __repr__(&self) -> String {
        format!("Graph(n_nodes={}, n_edges={})", self.0.n_nodes(), self.0.n_edges())
    }
}

/// The set of ancestors of every node: the nodes from which a path leads to it, and itself.
///
/// The sets of ``graph.transposed()`` are the sets of descendants. After :meth:`contract`, paths
/// are those of the quotient graph: nodes contracted together are ancestors of each other.
///
/// Parameters
/// ----------
/// graph : Graph
/// memory_limit : int, optional
///     The maximum number of bytes of the sets, which take one bit per pair of nodes; 1 GiB by
///     default.
///
/// Raises
/// ------
/// MemoryLimitError
///     The sets would take more than that. Nothing has been allocated.
/// CycleError
///     The graph has a cycle.
#[pyclass(frozen, module = "pytensor_fuse._core")]
pub(crate) struct AncestorSets(RwLock<ancestors::AncestorSets>);

impl AncestorSets {
    // A thread waits for the lock only while it is detached from the interpreter, so the thread
    // that holds the lock can always continue. No handler of a signal runs while the lock is held:
    // the budget is unlimited then, and the work takes as long as reading the sets twice. A
    // contraction is checked before anything changes, so no change is half done behind a poisoned
    // lock.
    fn read(&self) -> RwLockReadGuard<'_, ancestors::AncestorSets> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, ancestors::AncestorSets> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn nodes(&self, py: Python<'_>, nodes: &Bound<'_, PyAny>) -> PyResult<Vec<NodeId>> {
        ids::nodes(nodes, self.n_nodes(py))
    }

    fn node(&self, py: Python<'_>, node: i64) -> PyResult<NodeId> {
        node_id(node, self.n_nodes(py))
    }
}

#[pymethods]
impl AncestorSets {
    #[new]
    #[pyo3(signature = (graph, memory_limit=None))]
    fn new(py: Python<'_>, graph: &Graph, memory_limit: Option<u64>) -> PyResult<Self> {
        detach(py, |budget| ancestors::AncestorSets::new(&graph.0, memory_limit, budget))
            .map(|sets| Self(RwLock::new(sets)))
    }

    /// Number of nodes.
    #[getter]
    fn n_nodes(&self, py: Python<'_>) -> usize {
        py.detach(|| self.read().n_nodes())
    }

    /// Bytes that the sets take.
    #[getter]
    fn memory_used(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.read().memory_used())
    }

    /// Whether a path leads from ``ancestor`` to ``node``. Every node is its own ancestor.
    ///
    /// Parameters
    /// ----------
    /// ancestor, node : int
    ///
    /// Returns
    /// -------
    /// bool
    ///
    /// Raises
    /// ------
    /// IdError
    ///     A node is not in the graph.
    fn is_ancestor(&self, py: Python<'_>, ancestor: i64, node: i64) -> PyResult<bool> {
        let (ancestor, node) = (self.node(py, ancestor)?, self.node(py, node)?);
        py.detach(|| self.read().is_ancestor(ancestor, node)).map_err(to_py)
    }

    /// The ancestors of ``node``, itself included, by id.
    ///
    /// Parameters
    /// ----------
    /// node : int
    ///
    /// Returns
    /// -------
    /// numpy.ndarray of uint32
    ///
    /// Raises
    /// ------
    /// IdError
    ///     A node is not in the graph.
    fn ancestors<'py>(&self, py: Python<'py>, node: i64) -> PyResult<IdArray<'py>> {
        let node = self.node(py, node)?;
        let found = py.detach(|| self.read().ancestors(node)).map_err(to_py)?;
        Ok(PyArray1::from_vec(py, found))
    }

    /// The nodes of which ``node`` is an ancestor, itself included, by id.
    ///
    /// Parameters
    /// ----------
    /// node : int
    ///
    /// Returns
    /// -------
    /// numpy.ndarray of uint32
    ///
    /// Raises
    /// ------
    /// IdError
    ///     A node is not in the graph.
    fn descendants<'py>(&self, py: Python<'py>, node: i64) -> PyResult<IdArray<'py>> {
        let node = self.node(py, node)?;
        let found = py.detach(|| self.read().descendants(node)).map_err(to_py)?;
        Ok(PyArray1::from_vec(py, found))
    }

    /// The nodes that are an ancestor of at least one of ``nodes``, themselves included, by id.
    ///
    /// Parameters
    /// ----------
    /// nodes : array_like of int
    ///
    /// Returns
    /// -------
    /// numpy.ndarray of uint32
    ///
    /// Raises
    /// ------
    /// IdError
    ///     A node is not in the graph.
    fn union<'py>(&self, py: Python<'py>, nodes: &Bound<'py, PyAny>) -> PyResult<IdArray<'py>> {
        let nodes = self.nodes(py, nodes)?;
        let found = py.detach(|| self.read().union(&nodes, &Budget::unlimited())).map_err(to_py)?;
        Ok(PyArray1::from_vec(py, found))
    }

    /// Whether ``nodes`` can be contracted without making a cycle: whether no path leads from one
    /// of them to another through a node outside.
    ///
    /// Parameters
    /// ----------
    /// nodes : array_like of int
    ///
    /// Returns
    /// -------
    /// bool
    ///
    /// Raises
    /// ------
    /// IdError
    ///     A node is not in the graph.
    fn can_contract(&self, py: Python<'_>, nodes: &Bound<'_, PyAny>) -> PyResult<bool> {
        let nodes = self.nodes(py, nodes)?;
        py.detach(|| self.read().can_contract(&nodes, &Budget::unlimited())).map_err(to_py)
    }

    /// Contract ``nodes``: they, and all nodes that depend on one of them, get the ancestors of
    /// all.
    ///
    /// Parameters
    /// ----------
    /// nodes : array_like of int
    ///
    /// Raises
    /// ------
    /// ContractionError
    ///     If :meth:`can_contract` is false; nothing has changed then.
    fn contract(&self, py: Python<'_>, nodes: &Bound<'_, PyAny>) -> PyResult<()> {
        let nodes = self.nodes(py, nodes)?;
        py.detach(|| self.write().contract(&nodes, &Budget::unlimited())).map_err(to_py)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (n_nodes, bytes) = (self.n_nodes(py), self.memory_used(py));
        format!("AncestorSets(n_nodes={n_nodes}, memory_used={bytes})")
    }
}
