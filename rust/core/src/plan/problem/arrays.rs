//! The planner's input: a bipartite graph of apply nodes and variables as integer arrays.

use rustc_hash::FxHashSet;

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::graph::{Graph, NodeId};
use crate::ids::{check_count, check_ids, check_same_length};
use crate::rows::Rows;

/// Variables are dense ids `0..n_variables`.
pub type VarId = u32;

/// Marks "no node", "no group".
pub const NONE: u32 = u32::MAX;

/// The arrays of a fusion problem, as a caller gives them; [`FusionProblem::new`] checks them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProblemArrays {
    /// Number of variables.
    pub n_variables: usize,
    /// Operands of each node in order, with repetitions.
    pub inputs: Rows,
    /// Results of each node. A variable is the result of one node at most.
    pub outputs: Rows,
    /// Group of each node, -1 where it may not be fused. Only nodes of one group fuse.
    pub groups: Vec<i32>,
    /// For each variable the group whose nodes it may bring together as a shared operand, although
    /// no data flows between them; -1 for none.
    pub links: Vec<i32>,
    /// Marks constants, which are not counted as arrays.
    pub constants: Vec<bool>,
    /// Marks results of the whole graph.
    pub results: Vec<bool>,
    /// Orderings to keep in addition to the data flow: `(before, after)` pairs of nodes.
    pub orderings: Vec<(NodeId, NodeId)>,
    /// Limit on the distinct inputs plus outputs of a cluster of several nodes.
    pub max_operands: u32,
}

/// A checked fusion problem with the data that every planner derives from it.
#[derive(Debug, Clone)]
pub struct FusionProblem {
    arrays: ProblemArrays,
    owner: Vec<NodeId>,
    graph: Graph,
    /// Orderings whose later node does not read the earlier one.
    without_data: FxHashSet<(NodeId, NodeId)>,
    /// Distinct operands of each node.
    reads: Rows,
    clients: Rows,
    n_groups: usize,
}

impl FusionProblem {
    /// Checks the arrays and derives owners, clients and the graph of dependencies; O(n + m).
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::OutOfRange`] and [`Error::Inconsistent`] name the
    /// array and the entry. Nodes must come in a topological order: [`Error::Inconsistent`] names
    /// the first edge that runs backwards. [`Error::Interrupted`].
    pub fn new(arrays: ProblemArrays, budget: &Budget) -> Result<Self> {
        let n_nodes = arrays.inputs.len();
        let n_variables = arrays.n_variables;
        check_count("the list of variables", n_variables)?;
        for (right, right_len) in
            [("outputs", arrays.outputs.len()), ("groups", arrays.groups.len())]
        {
            check_same_length(("inputs", n_nodes), (right, right_len))?;
        }
        for (right, right_len) in [
            ("links", arrays.links.len()),
            ("constants", arrays.constants.len()),
            ("results", arrays.results.len()),
        ] {
            check_same_length(("n_variables", n_variables), (right, right_len))?;
        }
        // The checks below visit each variable and each group.
        budget.check(8 * (n_nodes + n_variables) + arrays.inputs.items().len())?;
        check_ids("input variable", arrays.inputs.items(), n_variables)?;
        check_ids("output variable", arrays.outputs.items(), n_variables)?;
        let n_groups = count_groups(&arrays)?;
        let owner = owners(&arrays, budget)?;
        let graph = dependencies(&arrays, &owner, budget)?;
        let without_data = orderings_without_data(&arrays, &owner, budget)?;
        let reads = reads(&arrays, budget)?;
        let readers = (0..).zip(reads.offsets().windows(2)).flat_map(|(node, row)| {
            reads.items()[row[0] as usize..row[1] as usize].iter().map(move |&read| (read, node))
        });
        let clients = Rows::grouped(n_variables, readers, budget)?;
        Ok(Self { arrays, owner, graph, without_data, reads, clients, n_groups })
    }

    /// The arrays that the problem was made from.
    #[must_use]
    pub fn arrays(&self) -> &ProblemArrays {
        &self.arrays
    }

    /// Number of apply nodes; their ids are a topological order.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.arrays.inputs.len()
    }

    /// Number of variables.
    #[must_use]
    pub fn n_variables(&self) -> usize {
        self.arrays.n_variables
    }

    /// One past the largest group.
    #[must_use]
    pub fn n_groups(&self) -> usize {
        self.n_groups
    }

    /// Operands of `node`.
    #[must_use]
    pub fn inputs(&self, node: NodeId) -> &[VarId] {
        self.arrays.inputs.row(node)
    }

    /// Distinct operands of `node`, in the order of first reading.
    #[must_use]
    pub fn reads(&self, node: NodeId) -> &[VarId] {
        self.reads.row(node)
    }

    /// Distinct operands of all nodes, added up.
    #[must_use]
    pub fn n_reads(&self) -> usize {
        self.reads.items().len()
    }

    /// Results of `node`.
    #[must_use]
    pub fn outputs(&self, node: NodeId) -> &[VarId] {
        self.arrays.outputs.row(node)
    }

    /// The one result of a node that may be fused.
    pub(crate) fn output(&self, node: NodeId) -> VarId {
        self.arrays.outputs.row(node)[0]
    }

    /// Group of `node`, if it may be fused.
    #[must_use]
    pub fn group(&self, node: NodeId) -> Option<u32> {
        u32::try_from(self.arrays.groups[node as usize]).ok()
    }

    /// The group that `variable` may bring together, if any.
    #[must_use]
    pub fn link(&self, variable: VarId) -> Option<u32> {
        u32::try_from(self.arrays.links[variable as usize]).ok()
    }

    /// Whether `variable` is a constant.
    #[must_use]
    pub fn is_constant(&self, variable: VarId) -> bool {
        self.arrays.constants[variable as usize]
    }

    /// Whether `variable` is a result of the whole graph.
    #[must_use]
    pub fn is_result(&self, variable: VarId) -> bool {
        self.arrays.results[variable as usize]
    }

    /// The node whose result `variable` is, or [`NONE`].
    #[must_use]
    pub fn owner(&self, variable: VarId) -> NodeId {
        self.owner[variable as usize]
    }

    /// The nodes that read `variable`, ascending, each once.
    #[must_use]
    pub fn clients(&self, variable: VarId) -> &[NodeId] {
        self.clients.row(variable)
    }

    /// Dependencies between nodes: data flow and orderings, each once.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Whether data flows along the edge from `before` to `after`, and it is not only an ordering.
    #[must_use]
    pub fn has_data(&self, before: NodeId, after: NodeId) -> bool {
        !self.without_data.contains(&(before, after))
    }

    /// Limit on the operands of a cluster of several nodes.
    #[must_use]
    pub fn max_operands(&self) -> usize {
        self.arrays.max_operands as usize
    }

    /// Whether there are orderings in addition to the data flow.
    #[must_use]
    pub fn has_orderings(&self) -> bool {
        !self.arrays.orderings.is_empty()
    }
}

/// Groups index per-group tables, so they must be dense: below the number of nodes.
fn count_groups(arrays: &ProblemArrays) -> Result<usize> {
    let n_nodes = arrays.groups.len();
    let mut n_groups = 0;
    for (node, &group) in arrays.groups.iter().enumerate() {
        let Ok(group) = usize::try_from(group) else { continue };
        if group >= n_nodes {
            return Err(Error::OutOfRange { what: "group", id: group as i64, limit: n_nodes });
        }
        if arrays.outputs.row(node as u32).len() != 1 {
            return Err(Error::Inconsistent(format!(
                "node {node} has {} outputs; only a node with one output may have a group",
                arrays.outputs.row(node as u32).len()
            )));
        }
        n_groups = n_groups.max(group + 1);
    }
    Ok(n_groups)
}

fn owners(arrays: &ProblemArrays, budget: &Budget) -> Result<Vec<NodeId>> {
    let mut owner = vec![NONE; arrays.n_variables];
    for node in 0..arrays.outputs.len() as u32 {
        budget.check(1 + arrays.outputs.row(node).len())?;
        for &variable in arrays.outputs.row(node) {
            let slot = &mut owner[variable as usize];
            if *slot != NONE {
                return Err(Error::Inconsistent(format!(
                    "variable {variable} is an output of node {slot} and of node {node}"
                )));
            }
            *slot = node;
        }
    }
    Ok(owner)
}

fn dependencies(arrays: &ProblemArrays, owner: &[NodeId], budget: &Budget) -> Result<Graph> {
    let n_nodes = arrays.inputs.len();
    let n_edges = arrays.inputs.items().len() + arrays.orderings.len();
    let (mut sources, mut targets) = (Vec::with_capacity(n_edges), Vec::with_capacity(n_edges));
    // `last[p]`: the latest target of an edge from p, so that parallel edges are skipped.
    let mut last = vec![NONE; n_nodes];
    for node in 0..n_nodes as u32 {
        budget.check(1 + arrays.inputs.row(node).len())?;
        for &variable in arrays.inputs.row(node) {
            let source = owner[variable as usize];
            if source == NONE || last[source as usize] == node {
                continue;
            }
            if source >= node {
                return Err(Error::Inconsistent(format!(
                    "node {node} reads variable {variable} of node {source}, which comes later; \
                     nodes must be in topological order"
                )));
            }
            last[source as usize] = node;
            sources.push(source);
            targets.push(node);
        }
    }
    for &(before, after) in &arrays.orderings {
        budget.check(1)?;
        check_ids("node of an ordering", &[before, after], n_nodes)?;
        if before >= after {
            return Err(Error::Inconsistent(format!(
                "the ordering of node {before} before node {after} contradicts the order of the \
                 nodes"
            )));
        }
        sources.push(before);
        targets.push(after);
    }
    Graph::new(n_nodes, &sources, &targets, budget)
}

fn orderings_without_data(
    arrays: &ProblemArrays,
    owner: &[NodeId],
    budget: &Budget,
) -> Result<FxHashSet<(NodeId, NodeId)>> {
    budget.check(8 * arrays.orderings.len())?;
    let mut left: FxHashSet<_> = arrays.orderings.iter().copied().collect();
    if !left.is_empty() {
        for node in 0..arrays.inputs.len() as u32 {
            budget.check(8 * arrays.inputs.row(node).len())?;
            for &variable in arrays.inputs.row(node) {
                left.remove(&(owner[variable as usize], node));
            }
        }
    }
    Ok(left)
}

/// The distinct operands of each node, in the order of first reading.
fn reads(arrays: &ProblemArrays, budget: &Budget) -> Result<Rows> {
    let mut newest_reader = vec![NONE; arrays.n_variables];
    let mut reads = Rows::empty();
    for node in 0..arrays.inputs.len() as u32 {
        let operands = arrays.inputs.row(node);
        budget.check(1 + operands.len())?;
        reads.push(operands.iter().copied().filter(|&variable| {
            std::mem::replace(&mut newest_reader[variable as usize], node) != node
        }))?;
    }
    Ok(reads)
}
