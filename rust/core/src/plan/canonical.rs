//! A form of a cluster that equal kernels share, wherever in whatever graph they stand.
//!
//! Nodes are listed depth first from the outputs, each after the nodes that it reads; inputs in
//! the order in which that list first reads them. Both follow from the kernel's own structure and
//! the order of its outputs, not from the numbers that a graph gave its nodes.

use super::Cluster;
use super::problem::{FusionProblem, NONE, VarId};
use crate::error::{Error, Result};
use crate::graph::NodeId;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanonicalForm {
    /// Equal for two clusters exactly when they are equal as kernels: the dtypes of the inputs,
    /// for each node its kind and operands, and the outputs.
    pub key: Vec<u64>,
    /// Members in canonical order.
    pub nodes: Vec<NodeId>,
    /// Inputs in canonical order.
    pub inputs: Vec<VarId>,
}

/// The canonical form of `cluster`. `kind` identifies what a node computes, with its number of
/// operands; `dtype` the element type of an input.
///
/// # Complexity
/// Linear in the operands of the cluster.
///
/// # Errors
/// [`Error::Inconsistent`] names a node without a kind or an input without a dtype.
pub fn canonical_form(
    problem: &FusionProblem,
    cluster: &Cluster,
    kind: impl Fn(NodeId) -> Option<u64>,
    dtype: impl Fn(VarId) -> Option<u64>,
) -> Result<CanonicalForm> {
    let mut place = Places::default();
    let members: rustc_hash::FxHashSet<NodeId> = cluster.nodes.iter().copied().collect();
    let mut form = CanonicalForm { key: Vec::new(), nodes: Vec::new(), inputs: Vec::new() };
    let producer = |variable: VarId| {
        let owner = problem.owner(variable);
        (owner != NONE && members.contains(&owner)).then_some(owner)
    };
    for &output in &cluster.interface.outputs {
        // Each entry is a node and how many of its operands have been looked at.
        let mut path = vec![(output, 0)];
        while let Some((node, position)) = path.pop() {
            if place.nodes.contains_key(&node) {
                continue;
            }
            let operands = problem.inputs(node);
            let unlisted = (position..operands.len())
                .find(|&i| producer(operands[i]).is_some_and(|p| !place.nodes.contains_key(&p)));
            if let Some(i) = unlisted
                && let Some(source) = producer(operands[i])
            {
                path.push((node, i + 1));
                path.push((source, 0));
                continue;
            }
            let Some(kind) = kind(node) else {
                return Err(Error::Inconsistent(format!("node {node} has no kind")));
            };
            form.key.push(kind);
            for &variable in operands {
                let reference = match producer(variable) {
                    Some(source) => u64::from(place.nodes[&source]) << 1 | 1,
                    None => {
                        let next = form.inputs.len() as u32;
                        let input = *place.inputs.entry(variable).or_insert(next);
                        if input == next {
                            form.inputs.push(variable);
                        }
                        u64::from(input) << 1
                    }
                };
                form.key.push(reference);
            }
            place.nodes.insert(node, form.nodes.len() as u32);
            form.nodes.push(node);
        }
    }
    // No kind or reference follows: what comes after the nodes cannot be taken for one of them,
    // since the last word counts the inputs.
    form.key.extend(cluster.interface.outputs.iter().map(|node| u64::from(place.nodes[node])));
    for &variable in &form.inputs {
        let Some(code) = dtype(variable) else {
            return Err(Error::Inconsistent(format!("variable {variable} has no dtype")));
        };
        form.key.push(code);
    }
    form.key.push(cluster.interface.outputs.len() as u64);
    form.key.push(form.inputs.len() as u64);
    Ok(form)
}

#[derive(Default)]
struct Places {
    nodes: rustc_hash::FxHashMap<NodeId, u32>,
    inputs: rustc_hash::FxHashMap<VarId, u32>,
}
