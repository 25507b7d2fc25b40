//! The fusion planner for Python.

use std::sync::OnceLock;

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pytensor_fuse_core::hashcons::{Duplicates, TermsOf};
use pytensor_fuse_core::plan::{
    self, Cluster, Cost, Explainer, FusionProblem, GLANCE, NONE, Plan, ProblemArrays, Proof,
    Strategy, Verdict,
    canonical::canonical_form,
    lone_cost,
    problem::patterns::{GroupsAndLinks, Pattern, PatternArrays, groups_and_links},
};
use pytensor_fuse_core::{Budget, Rows};

use crate::errors::to_py;
use crate::extract::Extraction;
use crate::hashcons::{HashConsTable, Term};
use crate::ids::{elements, flags};
use crate::interrupt;

/// Clusters of a graph, in an order in which they can be applied.
#[pyclass(frozen, module = "pytensor_fuse._core")]
pub(crate) struct FusedClusters {
    problem: FusionProblem,
    plan: Plan,
    lone: Cost,
    /// The lower bound on the cost of every plan, once it was requested.
    bound: OnceLock<Cost>,
}

type ClusterIds = (Vec<u32>, Vec<u32>, Vec<u32>);
type KernelIds = (Term, Vec<u32>, Vec<u32>, Vec<u32>);
type CostPair = (u64, u64);
type Explanation = (&'static str, Vec<u32>, usize);

#[pymethods]
impl FusedClusters {
    /// The nodes, the input variables and the output variables of each cluster.
    fn clusters(&self) -> Vec<ClusterIds> {
        let ids = |cluster: &Cluster| {
            let Cluster { nodes, interface } = cluster;
            let outputs = interface.outputs.iter().flat_map(|&node| self.problem.outputs(node));
            (nodes.clone(), interface.inputs.clone(), outputs.copied().collect())
        };
        self.plan.clusters.iter().map(ids).collect()
    }

    /// The nodes of all clusters, ascending.
    fn fused_nodes(&self) -> Vec<u32> {
        let clusters = self.plan.clusters.iter();
        let mut nodes: Vec<u32> = clusters.flat_map(|cluster| &cluster.nodes).copied().collect();
        nodes.sort_unstable();
        nodes
    }

    /// The planned problem as keyword arguments of `plan_arrays`, which takes arrays in place of
    /// the lists.
    fn problem<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let arrays = self.problem.arrays();
        let problem = PyDict::new(py);
        problem.set_item("n_variables", arrays.n_variables)?;
        for (name, offsets, rows) in [
            ("inputs", "input_offsets", &arrays.inputs),
            ("outputs", "output_offsets", &arrays.outputs),
        ] {
            problem.set_item(offsets, rows.offsets().to_vec())?;
            problem.set_item(name, rows.items().to_vec())?;
        }
        problem.set_item("groups", &arrays.groups)?;
        problem.set_item("links", &arrays.links)?;
        problem.set_item("constants", &arrays.constants)?;
        problem.set_item("results", &arrays.results)?;
        problem.set_item("max_operands", arrays.max_operands)?;
        problem.set_item("orderings", &arrays.orderings)?;
        Ok(problem)
    }

    /// The numbers of kernels and arrays if nothing is fused.
    #[getter]
    fn before(&self) -> CostPair {
        self.with_lone(self.plan.before)
    }

    /// The numbers of kernels and arrays of the plan.
    #[getter]
    fn after(&self) -> CostPair {
        self.with_lone(self.plan.after)
    }

    /// A lower bound on the cost of every plan, as numbers of kernels and arrays: no plan has fewer
    /// kernels, and none with that many kernels has fewer arrays. If the plan was made without
    /// effort, the first access computes the bound, in near-linear time plus some milliseconds.
    #[getter]
    fn bound(&self, py: Python<'_>) -> PyResult<CostPair> {
        let bound = match self.bound.get() {
            Some(&bound) => bound,
            None => {
                let known = &self.plan.partition;
                let bound = interrupt::detach(py, |budget| {
                    let budget = budget.with_effort(GLANCE);
                    Ok(plan::prove(&self.problem, known, &budget)?.bound)
                })?;
                // Another thread may have been faster; it found the same bound.
                *self.bound.get_or_init(|| bound)
            }
        };
        Ok(self.with_lone(bound))
    }

    /// The reason why the two nodes of each pair do not share a cluster: a verdict, the nodes that
    /// show it, and a count.
    ///
    /// The verdict is one of "together", "alone" (the two are one node, which is in no cluster), "no
    /// group" (of the node given), "other group", "not connected", "cycle" (with the path), "operand
    /// limit" (with the operands that the two clusters would have together) and "possible".
    fn explain_pairs(&self, py: Python<'_>, pairs: Vec<(u32, u32)>) -> PyResult<Vec<Explanation>> {
        interrupt::detach(py, |budget| {
            let mut explainer = Explainer::new(&self.problem, &self.plan.partition, budget)?;
            pairs.iter().map(|&(a, b)| Ok(explanation(explainer.explain(a, b)?))).collect()
        })
    }

    /// The name of the planner's strategy that found the plan; None if no strategy found a plan
    /// cheaper than fusing nothing.
    #[getter]
    fn strategy(&self) -> Option<&'static str> {
        self.plan.strategy.map(Strategy::name)
    }

    /// The names of the strategies whose search for further merges exhausted its effort; with more
    /// effort, the plan might be cheaper.
    #[getter]
    fn exhausted<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.plan.exhausted.iter().map(|strategy| strategy.name()))
    }

    /// Number of nodes that may be fused.
    #[getter]
    fn n_fusable(&self) -> u64 {
        self.plan.before.kernels
    }

    /// The term of the kernel of each cluster, the nodes and the input variables of the cluster in
    /// the canonical orders of the kernel, and its output variables.
    ///
    /// `ops` holds, for each signature, the term of the op that its nodes apply, or None if these
    /// nodes are in no cluster. `types` holds, for each dtype of the extraction, the term of the
    /// type. The kernel's term is that of the graph that applies these ops.
    fn kernels(
        &self,
        py: Python<'_>,
        extraction: &Extraction,
        table: &HashConsTable,
        ops: Vec<Option<PyRef<'_, Term>>>,
        types: Vec<PyRef<'_, Term>>,
    ) -> PyResult<Vec<KernelIds>> {
        let ids =
            |terms: &[Option<PyRef<'_, Term>>]| table.ids(terms.iter().flatten().map(|t| &**t));
        let op_terms = ids(&ops)?;
        let mut n_terms = 0u32..;
        // The position of each signature's op in `op_terms`, if the signature has an op.
        let op_of: Vec<Option<u32>> =
            ops.iter().map(|op| op.as_ref().and_then(|_| n_terms.next())).collect();
        let held = types;
        let types = table.ids_of(&held)?;
        let op = |node: u32| {
            let signature = *extraction.signatures.get(node as usize)?;
            *op_of.get(signature as usize)?
        };
        let dtype = |variable: u32| {
            let info = extraction.types.get(variable as usize)?.as_ref()?;
            Some(info.dtype)
        };
        let kernel = |cluster: &Cluster, budget: &Budget| {
            let form = canonical_form(&self.problem, cluster, op, dtype, budget)?;
            let terms = TermsOf { leaves: &[], ops: &op_terms, types: &types };
            let (term, _) = table.intern_graph(
                &form.dtypes,
                &form.rows,
                &form.outputs,
                terms,
                Duplicates::Fold,
            )?;
            let outputs = &cluster.interface.outputs;
            let outputs = outputs.iter().flat_map(|&node| self.problem.outputs(node));
            Ok((term, form.nodes, form.inputs, outputs.copied().collect()))
        };
        interrupt::attached(py, |budget| {
            self.plan.clusters.iter().map(|cluster| kernel(cluster, budget)).collect()
        })
    }
}

fn explanation(verdict: Verdict) -> Explanation {
    match verdict {
        Verdict::Together => ("together", Vec::new(), 0),
        Verdict::Alone => ("alone", Vec::new(), 0),
        Verdict::NoGroup(node) => ("no group", vec![node], 0),
        Verdict::OtherGroup => ("other group", Vec::new(), 0),
        Verdict::NotConnected => ("not connected", Vec::new(), 0),
        Verdict::Cycle(path) => ("cycle", path, 0),
        Verdict::OperandLimit(operands) => ("operand limit", Vec::new(), operands),
        Verdict::Possible => ("possible", Vec::new(), 0),
    }
}

impl FusedClusters {
    fn with_lone(&self, cost: Cost) -> CostPair {
        (cost.kernels + self.lone.kernels, cost.arrays + self.lone.arrays)
    }
}

/// Plans the fusion of an extracted graph.
///
/// `fusable` and `strict` tell whether the nodes of each signature may be fused, and whether
/// PyTensor would fuse them. `uniform` lists the constants whose elements are all equal. With an
/// `effort`, which limits the sets and states that it may visit, a search looks for the optimal
/// plan.
#[pyfunction]
#[pyo3(signature = (extraction, fusable, strict, uniform, orderings, max_operands, effort=None))]
#[expect(clippy::too_many_arguments, reason = "one argument per part of the question")]
pub(crate) fn plan_extraction(
    py: Python<'_>,
    extraction: &Extraction,
    fusable: Vec<bool>,
    strict: Vec<bool>,
    uniform: Vec<u32>,
    orderings: Vec<(u32, u32)>,
    max_operands: u32,
    effort: Option<u64>,
) -> PyResult<FusedClusters> {
    interrupt::detach(py, |budget| {
        let may_fuse = extraction.by_node(&fusable);
        let patterns: Vec<Option<Pattern>> = extraction
            .types
            .iter()
            .map(|info| info.map(|info| Pattern { ndim: info.ndim, ones: info.mask }))
            .collect();
        let elementwise: Vec<bool> = extraction.signatures.iter().map(|&id| id != NONE).collect();
        let patterns = PatternArrays {
            inputs: &extraction.inputs,
            outputs: &extraction.outputs,
            patterns: &patterns,
            elementwise: &elementwise,
            may_fuse: &may_fuse,
            constants: &extraction.constants,
            uniform: &uniform,
        };
        let GroupsAndLinks { groups, links } = groups_and_links(&patterns, budget)?;
        let mut results = vec![false; extraction.variables.len()];
        for &variable in &extraction.results {
            results[variable as usize] = true;
        }
        let arrays = ProblemArrays {
            n_variables: extraction.variables.len(),
            inputs: extraction.inputs.clone(),
            outputs: extraction.outputs.clone(),
            groups,
            links,
            constants: extraction.constants.clone(),
            results,
            orderings,
            max_operands,
        };
        let problem = FusionProblem::new(arrays, budget)?;
        let strict = (fusable != strict).then(|| extraction.by_node(&strict));
        let (plan, proof) = planned(&problem, strict.as_deref(), effort, budget)?;
        let unfused = (0u32..)
            .zip(&extraction.signatures)
            .filter(|&(node, &signature)| signature != NONE && problem.group(node).is_none());
        let lone = lone_cost(&problem, unfused.map(|(node, _)| node), budget)?;
        let bound = proof.map_or_else(OnceLock::new, |proof| OnceLock::from(proof.bound));
        Ok(FusedClusters { problem, plan, lone, bound })
    })
}

/// The plan and, if it was made with effort, a proof of the lower bound.
fn planned(
    problem: &FusionProblem,
    strict: Option<&[bool]>,
    effort: Option<u64>,
    budget: &Budget,
) -> pytensor_fuse_core::Result<(Plan, Option<Proof>)> {
    match effort {
        None => Ok((plan::plan(problem, strict, budget)?, None)),
        Some(effort) => {
            let budget = budget.with_effort(effort);
            let (plan, proof) = plan::plan_optimally(problem, strict, &budget)?;
            Ok((plan, Some(proof)))
        }
    }
}

impl Extraction {
    /// Converts a flag per signature to a flag per node.
    fn by_node(&self, flags: &[bool]) -> Vec<bool> {
        let flag = |&signature: &u32| flags.get(signature as usize).copied().unwrap_or(false);
        self.signatures.iter().map(flag).collect()
    }
}

/// Plans the fusion of a graph given as integer arrays.
///
/// Returns the offsets of the clusters, their nodes, the costs before and after fusion as numbers
/// of kernels and arrays, and a lower bound on the cost of every plan, which is None if no `effort`
/// was given.
#[pyfunction]
#[pyo3(signature = (*, n_variables, input_offsets, inputs, output_offsets, outputs, groups, links,
                    constants, results, max_operands, orderings=Vec::new(), strict=None,
                    effort=None))]
#[expect(clippy::too_many_arguments, reason = "one argument per array of the problem")]
pub(crate) fn plan_arrays<'py>(
    py: Python<'py>,
    n_variables: usize,
    input_offsets: Bound<'py, PyArray1<u32>>,
    inputs: Bound<'py, PyArray1<u32>>,
    output_offsets: Bound<'py, PyArray1<u32>>,
    outputs: Bound<'py, PyArray1<u32>>,
    groups: Bound<'py, PyArray1<i32>>,
    links: Bound<'py, PyArray1<i32>>,
    constants: Bound<'py, PyArray1<bool>>,
    results: Bound<'py, PyArray1<bool>>,
    max_operands: u32,
    orderings: Vec<(u32, u32)>,
    strict: Option<Bound<'py, PyArray1<bool>>>,
    effort: Option<u64>,
) -> PyResult<PlannedArrays<'py>> {
    let arrays = ProblemArrays {
        n_variables,
        inputs: Rows::new("inputs", elements(&input_offsets)?, elements(&inputs)?)
            .map_err(to_py)?,
        outputs: Rows::new("outputs", elements(&output_offsets)?, elements(&outputs)?)
            .map_err(to_py)?,
        groups: elements(&groups)?,
        links: elements(&links)?,
        constants: flags(&constants)?,
        results: flags(&results)?,
        orderings,
        max_operands,
    };
    let strict = strict.as_ref().map(flags).transpose()?;
    let (plan, proof) = interrupt::detach(py, |budget| {
        let problem = FusionProblem::new(arrays, budget)?;
        planned(&problem, strict.as_deref(), effort, budget)
    })?;
    let mut clusters = Rows::empty();
    for cluster in &plan.clusters {
        clusters.push(cluster.nodes.iter().copied()).map_err(to_py)?;
    }
    Ok((
        PyArray1::from_slice(py, clusters.offsets()),
        PyArray1::from_slice(py, clusters.items()),
        pair(plan.before),
        pair(plan.after),
        proof.map(|proof| pair(proof.bound)),
    ))
}

fn pair(cost: Cost) -> CostPair {
    (cost.kernels, cost.arrays)
}

type PlannedArrays<'py> =
    (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u32>>, CostPair, CostPair, Option<CostPair>);
