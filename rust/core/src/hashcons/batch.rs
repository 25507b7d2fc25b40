//! Many nodes at once, from integer arrays.

use std::borrow::Cow;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::{Content, HashConsTable, TermId};
use crate::error::{Error, Result};
use crate::ids::{check_ids, check_same_length};
use crate::rows::Rows;

/// Apply nodes in topological order.
///
/// Variables are numbered: first the leaves, then the outputs of each node in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphRows {
    /// Op of each node: an index into the op terms.
    pub ops: Vec<u32>,
    /// Variables that each node reads: leaves and outputs of earlier nodes.
    pub inputs: Rows,
    /// For each node the types of its outputs: indices into the type terms.
    pub types: Rows,
}

/// What becomes of nodes that are equal in op, inputs and output types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    /// They are one node.
    Fold,
    /// They stay apart, told by how many equal ones come before each: where nodes overwrite their
    /// inputs, two that compute the same still differ in where.
    Number,
}

impl GraphRows {
    /// Number of variables if there are `n_leaves` leaves.
    #[must_use]
    pub fn n_variables(&self, n_leaves: usize) -> usize {
        n_leaves + self.types.items().len()
    }

    /// These nodes alone. What earlier ones compute are leaves of theirs, after the other leaves.
    /// Copied unless these are all.
    #[must_use]
    pub fn part(&self, nodes: Range<usize>) -> Cow<'_, Self> {
        if nodes == (0..self.ops.len()) {
            return Cow::Borrowed(self);
        }
        let ops = self.ops[nodes.clone()].to_vec();
        let mut part = Self { ops, inputs: Rows::empty(), types: Rows::empty() };
        for node in nodes {
            part.inputs.push(self.inputs.row(node as u32).iter().copied());
            part.types.push(self.types.row(node as u32).iter().copied());
        }
        Cow::Owned(part)
    }

    /// Checks every number in the rows. O(their size).
    ///
    /// # Errors
    /// [`Error::LengthMismatch`]; [`Error::OutOfRange`] names an op, a type, or a variable that
    /// does not come before the node that reads it; [`Error::Inconsistent`] a node without
    /// outputs.
    pub fn check(&self, n_leaves: usize, n_ops: usize, n_types: usize) -> Result<()> {
        check_same_length(("ops", self.ops.len()), ("inputs", self.inputs.len()))?;
        check_same_length(("ops", self.ops.len()), ("types", self.types.len()))?;
        check_ids("op", &self.ops, n_ops)?;
        check_ids("type", self.types.items(), n_types)?;
        let mut n_known = n_leaves;
        for node in 0..self.ops.len() as u32 {
            check_ids("input", self.inputs.row(node), n_known)?;
            let n_outputs = self.types.row(node).len();
            if n_outputs == 0 {
                return Err(Error::Inconsistent(format!("node {node} has no outputs")));
            }
            n_known += n_outputs;
        }
        Ok(())
    }
}

/// The terms that [`GraphRows`] refer to.
#[derive(Debug, Clone, Copy)]
pub struct TermsOf<'a> {
    /// Variables that no node computes: first the inputs of the graph, in order.
    pub leaves: &'a [TermId],
    /// Ops.
    pub ops: &'a [TermId],
    /// Types of outputs.
    pub types: &'a [TermId],
}

/// A graph in the table. See [`HashConsTable::intern_graph`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InternedGraph {
    /// The graph term, with a handle on it.
    pub root: TermId,
    /// The term of every output of every node: equal for equal ones. There are no handles on these,
    /// so that those which the graph does not need may be gone.
    pub computed: Vec<TermId>,
}

impl HashConsTable {
    /// Interns the nodes of a graph and returns the term of every output of every node, in the
    /// order of the variables, with a handle on each.
    ///
    /// O(size of the rows) expected.
    ///
    /// # Errors
    /// As [`GraphRows::check`]; [`Error::NoTerm`] names a term that is not in the table;
    /// [`Error::TooLarge`] if ids have run out. The table is then as it was.
    pub fn intern_rows(
        &mut self,
        rows: &GraphRows,
        terms: TermsOf<'_>,
        duplicates: Duplicates,
    ) -> Result<Vec<TermId>> {
        let TermsOf { leaves, ops, types } = terms;
        rows.check(leaves.len(), ops.len(), types.len())?;
        for ids in [leaves, ops, types] {
            self.check_terms(ids)?;
        }
        let n_nodes = rows.ops.len();
        // More than there is: as a rule new, and growing step by step would move each term twice.
        if n_nodes > self.live() {
            self.reserve(n_nodes);
        }
        let mut variables = Vec::with_capacity(rows.n_variables(leaves.len()));
        variables.extend_from_slice(leaves);
        let interned = self.intern_nodes(rows, terms, duplicates, &mut variables);
        let computed = variables.split_off(leaves.len());
        if let Err(error) = interned {
            self.release_all(&computed)?;
            return Err(error);
        }
        Ok(computed)
    }

    /// Interns the graph with these rows: its first `n_inputs` leaves are its inputs, and
    /// `outputs` the variables that it computes.
    ///
    /// # Errors
    /// As [`intern_rows`](Self::intern_rows) and [`graph`](Self::graph).
    pub fn intern_graph(
        &mut self,
        rows: &GraphRows,
        terms: TermsOf<'_>,
        n_inputs: usize,
        outputs: &[u32],
        duplicates: Duplicates,
    ) -> Result<InternedGraph> {
        let leaves = terms.leaves;
        check_ids("output", outputs, rows.n_variables(leaves.len()))?;
        let Some(inputs) = leaves.get(..n_inputs) else {
            let limit = leaves.len() + 1;
            return Err(Error::OutOfRange { what: "n_inputs", id: n_inputs as i64, limit });
        };
        let computed = self.intern_rows(rows, terms, duplicates)?;
        let term_of = |&variable: &u32| match (variable as usize).checked_sub(leaves.len()) {
            None => leaves[variable as usize],
            Some(output) => computed[output],
        };
        let outputs: Vec<TermId> = outputs.iter().map(term_of).collect();
        let root = self.graph(inputs, &outputs);
        self.release_all(&computed)?;
        Ok(InternedGraph { root: root?, computed })
    }

    /// Gives one handle on each of `ids` back.
    ///
    /// # Errors
    /// As [`release`](Self::release); the handles before the culprit have been given back.
    pub fn release_all(&mut self, ids: &[TermId]) -> Result<()> {
        ids.iter().try_for_each(|&id| self.release(id))
    }

    /// Appends the outputs of all nodes to `variables`, with a handle on each, also on failure.
    fn intern_nodes(
        &mut self,
        rows: &GraphRows,
        terms: TermsOf<'_>,
        duplicates: Duplicates,
        variables: &mut Vec<TermId>,
    ) -> Result<()> {
        let mut n_seen: FxHashMap<TermId, u32> = FxHashMap::default();
        let mut children = Vec::new();
        for (node, &op) in (0u32..).zip(&rows.ops) {
            let types = rows.types.row(node);
            let inputs = rows.inputs.row(node);
            children.clear();
            children.push(terms.ops[op as usize]);
            children.extend(types.iter().map(|&ty| terms.types[ty as usize]));
            children.extend(inputs.iter().map(|&input| variables[input as usize]));
            let mut apply = self.held_apply(types.len(), &children)?;
            if duplicates == Duplicates::Number {
                let count = n_seen.entry(apply).or_insert(0);
                let ordinal = std::mem::replace(count, *count + 1);
                if ordinal > 0 {
                    self.release(apply)?;
                    apply = self.numbered_apply(ordinal, types.len(), &mut children)?;
                }
            }
            if types.len() == 1 {
                variables.push(apply);
                continue;
            }
            let outputs = self.held_outputs(apply, types.len() as u32, variables);
            self.release(apply)?;
            outputs?;
        }
        Ok(())
    }

    fn held_apply(&mut self, n_types: usize, children: &[TermId]) -> Result<TermId> {
        let apply = self.intern_apply(n_types, children)?;
        Ok(self.hand_out(apply))
    }

    fn numbered_apply(
        &mut self,
        ordinal: u32,
        n_types: usize,
        children: &mut [TermId],
    ) -> Result<TermId> {
        let content = Content::of(format!("duplicate {ordinal}").as_bytes());
        children[0] = self.compound(content, &children[..1])?;
        let apply = self.held_apply(n_types, children);
        self.release(children[0])?;
        apply
    }

    fn held_outputs(
        &mut self,
        apply: TermId,
        n_outputs: u32,
        variables: &mut Vec<TermId>,
    ) -> Result<()> {
        for index in 0..n_outputs {
            let output = self.intern_output(apply, index)?;
            variables.push(self.hand_out(output));
        }
        Ok(())
    }
}
