//! Interning of many nodes at once, from integer arrays.

use std::borrow::Cow;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::table::{Kind, Table};
use super::{Content, Slot, TermId};
use crate::error::{Error, Result};
use crate::ids::{check_ids, check_same_length};
use crate::rows::Rows;

/// Apply nodes in topological order.
///
/// The numbers of variables start with the leaves; the outputs of each node follow in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphRows {
    /// Op of each node: an index into the op terms.
    pub ops: Vec<u32>,
    /// The inputs of each node: leaves and outputs of earlier nodes.
    pub inputs: Rows,
    /// The types of the outputs of each node: indices into the type terms.
    pub types: Rows,
}

/// The treatment of nodes with equal ops, inputs and output types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    /// Equal nodes are merged.
    Fold,
    /// Equal nodes stay distinct, numbered in order: if nodes overwrite their inputs, equal ones
    /// still differ in the memory that they overwrite.
    Number,
}

impl GraphRows {
    /// Number of variables if there are `n_leaves` leaves.
    #[must_use]
    pub fn n_variables(&self, n_leaves: usize) -> usize {
        n_leaves + self.types.items().len()
    }

    /// The rows of the given nodes. The outputs of earlier nodes are leaves, after the other
    /// leaves. The rows are copied unless all nodes are given.
    #[must_use]
    pub fn part(&self, nodes: Range<usize>) -> Cow<'_, Self> {
        if nodes == (0..self.ops.len()) {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Self {
            ops: self.ops[nodes.clone()].to_vec(),
            inputs: self.inputs.part(nodes.clone()),
            types: self.types.part(nodes),
        })
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
    /// Variables that no node computes; in a whole graph, those after its inputs.
    pub leaves: &'a [TermId],
    /// Ops.
    pub ops: &'a [TermId],
    /// Types of outputs.
    pub types: &'a [TermId],
}

impl Table {
    /// See [`HashConsTable::symbols`](super::HashConsTable::symbols).
    pub(super) fn symbols(&mut self, contents: &[Content]) -> Result<Vec<TermId>> {
        let mut ids = Vec::with_capacity(contents.len());
        for &content in contents {
            match self.compound(content, &[]) {
                Ok(id) => ids.push(id),
                Err(error) => {
                    self.release_all(&ids)?;
                    return Err(error);
                }
            }
        }
        Ok(ids)
    }

    /// See [`HashConsTable::intern_rows`](super::HashConsTable::intern_rows).
    pub(super) fn intern_rows(
        &mut self,
        rows: &GraphRows,
        terms: TermsOf<'_>,
        duplicates: Duplicates,
    ) -> Result<Vec<TermId>> {
        let mut variables = self.slots_of(terms.leaves)?;
        self.intern_nodes(rows, terms, duplicates, &mut variables)?;
        let computed = &variables[terms.leaves.len()..];
        let ids = computed.iter().map(|&slot| self.hold(slot)).collect();
        self.step();
        Ok(ids)
    }

    /// See [`HashConsTable::intern_outputs`](super::HashConsTable::intern_outputs).
    pub(super) fn intern_outputs(
        &mut self,
        rows: &GraphRows,
        terms: TermsOf<'_>,
        outputs: &[u32],
    ) -> Result<Vec<TermId>> {
        check_ids("output", outputs, rows.n_variables(terms.leaves.len()))?;
        let mut variables = self.slots_of(terms.leaves)?;
        self.intern_nodes(rows, terms, Duplicates::Fold, &mut variables)?;
        let ids = outputs.iter().map(|&output| self.hold(variables[output as usize])).collect();
        self.free_unused(variables);
        self.step();
        Ok(ids)
    }

    /// See [`HashConsTable::intern_graph`](super::HashConsTable::intern_graph): the term of the
    /// graph, with a handle on it, and those of its variables.
    pub(super) fn intern_graph(
        &mut self,
        inputs: &[u32],
        rows: &GraphRows,
        terms: TermsOf<'_>,
        outputs: &[u32],
        duplicates: Duplicates,
    ) -> Result<(TermId, Vec<TermId>)> {
        let n_leaves = inputs.len() + terms.leaves.len();
        check_ids("type", inputs, terms.types.len())?;
        check_ids("output", outputs, rows.n_variables(n_leaves))?;
        let leaves = self.slots_of(terms.leaves)?;
        let types = self.slots_of(terms.types)?;
        let mut variables = Vec::with_capacity(rows.n_variables(n_leaves));
        let interned = (|| {
            for (position, &ty) in (0u32..).zip(inputs) {
                variables.push(self.intern(Kind::Input, position, &[types[ty as usize]])?);
            }
            variables.extend(leaves);
            self.intern_nodes(rows, terms, duplicates, &mut variables)?;
            let mut children = variables[..inputs.len()].to_vec();
            children.extend(outputs.iter().map(|&output| variables[output as usize]));
            self.intern(Kind::Graph, inputs.len() as u32, &children)
        })();
        let interned = interned.map(|root| {
            (self.hold(root), variables.iter().map(|&slot| self.id_of(slot)).collect())
        });
        self.free_unused(variables);
        self.step();
        interned
    }

    /// Appends the outputs of all nodes to `variables`, which contains the leaves.
    ///
    /// New terms have no handles yet: the caller takes the handles that it needs, and frees the
    /// unused terms. On failure, the new terms except the leaves have been freed.
    fn intern_nodes(
        &mut self,
        rows: &GraphRows,
        terms: TermsOf<'_>,
        duplicates: Duplicates,
        variables: &mut Vec<Slot>,
    ) -> Result<()> {
        let n_leaves = variables.len();
        rows.check(n_leaves, terms.ops.len(), terms.types.len())?;
        let (ops, types) = (self.slots_of(terms.ops)?, self.slots_of(terms.types)?);
        let n_nodes = rows.ops.len();
        // Most nodes of so large a graph are new, and growth in steps would move each term twice.
        if n_nodes > self.live() {
            self.reserve(n_nodes);
        }
        variables.reserve(rows.types.items().len());
        let mut n_seen: FxHashMap<Slot, u32> = FxHashMap::default();
        let mut children = Vec::new();
        for (node, &op) in (0u32..).zip(&rows.ops) {
            let n_types = rows.types.row(node).len();
            children.clear();
            children.push(ops[op as usize]);
            children.extend(rows.types.row(node).iter().map(|&ty| types[ty as usize]));
            children.extend(rows.inputs.row(node).iter().map(|&input| variables[input as usize]));
            let interned = self.intern_apply(n_types, &children).and_then(|apply| {
                let ordinal = match duplicates {
                    Duplicates::Fold => 0,
                    Duplicates::Number => {
                        let count = n_seen.entry(apply).or_insert(0);
                        std::mem::replace(count, *count + 1)
                    }
                };
                if ordinal == 0 {
                    return Ok(apply);
                }
                self.numbered_apply(ordinal, n_types, &mut children)
            });
            let interned = interned.and_then(|apply| self.push_outputs(apply, variables));
            if let Err(error) = interned {
                self.free_unused(variables.split_off(n_leaves));
                return Err(error);
            }
        }
        Ok(())
    }

    fn numbered_apply(
        &mut self,
        ordinal: u32,
        n_types: usize,
        children: &mut [Slot],
    ) -> Result<Slot> {
        let content = Content::of(format!("duplicate {ordinal}").as_bytes());
        children[0] = self.intern_compound(content, &children[..1])?;
        let apply = self.intern_apply(n_types, children);
        if apply.is_err() {
            self.free_unused([children[0]]);
        }
        apply
    }

    fn push_outputs(&mut self, apply: Slot, variables: &mut Vec<Slot>) -> Result<()> {
        for index in 0..self.term(apply).number {
            match self.intern_output(apply, index) {
                Ok(output) => variables.push(output),
                Err(error) => {
                    self.free_unused([apply]);
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}
