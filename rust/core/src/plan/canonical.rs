//! A canonical form of a cluster, the same for equal kernels wherever they occur in any graph.
//!
//! # Problem
//! Two kernels that compute the same thing must compare equal, although nodes and variables have
//! other numbers in every graph.
//!
//! # Approach
//! Nodes are listed depth first from the outputs, each after the nodes that it reads; inputs in
//! the order in which that list first reads them. Both follow from the kernel's own structure and
//! the order of its outputs, not from the numbers that a graph gave its nodes. Interned in a
//! hash-cons table, kernels are equal exactly when their terms are.
//!
//! # Rejected
//! A form that is independent of the order of the outputs as well: that is graph isomorphism.

use rustc_hash::{FxHashMap, FxHashSet};

use super::problem::{Cluster, FusionProblem, NONE, VarId};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::graph::NodeId;
use crate::hashcons::GraphRows;
use crate::ids::check_ids;
use crate::rows::Rows;

/// The canonical form of a cluster; see the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanonicalForm {
    /// Members in canonical order.
    pub nodes: Vec<NodeId>,
    /// Inputs in canonical order.
    pub inputs: Vec<VarId>,
    /// For each input its dtype.
    pub dtypes: Vec<u32>,
    /// The members as apply nodes, of which the inputs are the leaves.
    pub rows: GraphRows,
    /// The variables of the rows that leave the kernel.
    pub outputs: Vec<u32>,
}

/// The canonical form of `cluster`. `op` gives the op that a node applies, and `dtype` the element
/// type of a variable.
///
/// # Complexity
/// Linear in the operands of the cluster.
///
/// # Errors
/// [`Error::Inconsistent`] names a node without an op, a variable without a dtype, a member that
/// does not have one result, or an output outside the cluster; [`Error::OutOfRange`] names a member
/// that is no node.
/// [`Error::Interrupted`].
pub fn canonical_form(
    problem: &FusionProblem,
    cluster: &Cluster,
    op: impl Fn(NodeId) -> Option<u32>,
    dtype: impl Fn(VarId) -> Option<u32>,
    budget: &Budget,
) -> Result<CanonicalForm> {
    let members: FxHashSet<NodeId> = cluster.nodes.iter().copied().collect();
    check(problem, cluster, &members)?;
    let producer = |variable: VarId| {
        let owner = problem.owner(variable);
        (owner != NONE && members.contains(&owner)).then_some(owner)
    };
    let (nodes, inputs) = canonical_order(problem, cluster, producer, budget)?;
    let dtype_of = |&variable: &VarId| {
        let missing = || Error::Inconsistent(format!("variable {variable} has no dtype"));
        dtype(variable).ok_or_else(missing)
    };
    let dtypes = inputs.iter().map(dtype_of).collect::<Result<Vec<_>>>()?;

    let results = nodes.iter().map(|&node| problem.output(node));
    let number: FxHashMap<VarId, u32> = inputs.iter().copied().chain(results).zip(0u32..).collect();
    let mut rows = GraphRows { ops: Vec::new(), inputs: Rows::empty(), types: Rows::empty() };
    for &node in &nodes {
        budget.check(8 + 8 * problem.inputs(node).len())?;
        let Some(op) = op(node) else {
            return Err(Error::Inconsistent(format!("node {node} has no op")));
        };
        rows.ops.push(op);
        rows.inputs.push(problem.inputs(node).iter().map(|variable| number[variable]))?;
        rows.types.push([dtype_of(&problem.output(node))?])?;
    }
    let outputs = cluster.interface.outputs.iter();
    let outputs = outputs.map(|&node| number[&problem.output(node)]).collect();
    Ok(CanonicalForm { nodes, inputs, dtypes, rows, outputs })
}

fn check(problem: &FusionProblem, cluster: &Cluster, members: &FxHashSet<NodeId>) -> Result<()> {
    check_ids("node of a cluster", &cluster.nodes, problem.n_nodes())?;
    if let Some(node) = cluster.nodes.iter().find(|&&node| problem.outputs(node).len() != 1) {
        return Err(Error::Inconsistent(format!("node {node} of a cluster has not one result")));
    }
    if let Some(node) = cluster.interface.outputs.iter().find(|node| !members.contains(node)) {
        return Err(Error::Inconsistent(format!("output {node} of a cluster is not in it")));
    }
    Ok(())
}

fn canonical_order(
    problem: &FusionProblem,
    cluster: &Cluster,
    producer: impl Fn(VarId) -> Option<NodeId>,
    budget: &Budget,
) -> Result<(Vec<NodeId>, Vec<VarId>)> {
    let (mut nodes, mut inputs) = (Vec::new(), Vec::new());
    let mut listed = FxHashSet::default();
    let mut read = FxHashSet::default();
    for &output in &cluster.interface.outputs {
        // Each entry is a node and the number of its operands that have been examined.
        let mut path = vec![(output, 0)];
        while let Some((node, position)) = path.pop() {
            if listed.contains(&node) {
                continue;
            }
            let operands = problem.inputs(node);
            let unlisted = (position..operands.len()).find_map(|i| {
                let source = producer(operands[i])?;
                (!listed.contains(&source)).then_some((i, source))
            });
            if let Some((i, source)) = unlisted {
                path.push((node, i + 1));
                path.push((source, 0));
                continue;
            }
            // All operands were looked up on the way here, and are looked up again now.
            budget.check(16 + 16 * operands.len())?;
            for &variable in operands {
                if producer(variable).is_none() && read.insert(variable) {
                    inputs.push(variable);
                }
            }
            listed.insert(node);
            nodes.push(node);
        }
    }
    Ok((nodes, inputs))
}
