//! The dense transitive closure of a graph that is being contracted: for every node the set of its
//! ancestors, itself included, as a row of bits.
//!
//! # Problem
//! Growth of clusters in PyTensor's order (`super::sinks`) constantly tests whether sets of
//! ancestors meet, and breaks ties by comparing whole sets as numbers. Meanwhile clusters are
//! contracted, so that a node that depends on one of their outputs depends on all.
//!
//! # Approach
//! Node ids are a topological order, so that one pass fills the rows, and a row has no bit beyond its
//! own node's until something is contracted. The outputs of a contracted cluster share one row.
//!
//! Contractions are logged (`DenseClosure::contract`), and a row is brought up to date when it is
//! requested (`DenseClosure::refresh`): clusters grow from the sinks, so that most nodes that
//! depend on a newly contracted cluster are finished, and their rows are not requested again. A row
//! lacks what a contraction adds if it has some output of the cluster and not all of them. One pass
//! over the contractions that the row has not seen, in their order, is enough: the set that one
//! contraction adds contains all that those before it would add, because it was up to date then,
//! and so does the union of two such sets.
//!
//! A row that has some output of a cluster has all that this output had, when the contraction's
//! turn comes. So the log stores with each contraction the range of words in which the sets of the
//! outputs differed from that of the cluster, and only these are added, unless the set of the
//! cluster has grown since: then the whole set is added.
//!
//! After many contractions, one pass in topological order of the quotient brings all rows up to
//! date (`DenseClosure::settle`).
//!
//! # Rejected
//! - A scan of all rows at each contraction, as in [`crate::ancestors`] and PyTensor: most of them
//!   gain nothing.
//! - An immediate walk through the nodes that depend on a contracted cluster, which ends where
//!   nothing is gained: where edges are long, each of thousands of contractions adds to thousands
//!   of rows, most of which are not requested again. It took twelve times as long on 40,000 nodes.
//! - A maintained topological order ([`crate::quotient`]): it answers questions of reachability in
//!   less memory, but does not compare whole sets.
//!
//! # Source
//! The closure by one pass in topological order: R. Sedgewick, K. Wayne, "Algorithms", 4th edition
//! (2011), section 4.2. The walk that ends where nothing is gained: G. Italiano, "Amortized efficiency of
//! a path retrieval data structure", Theoretical Computer Science 48 (1986).

pub(super) mod bits;
mod log;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::ops::Range;

use crate::budget::Budget;
use crate::error::Result;
use crate::graph::{Graph, NodeId};
use crate::plan::problem::NONE;
use crate::rows::Rows;
use crate::scc;
use bits::{is_in, or_into};
use log::Log;

/// Memory limit of dense rows in bytes: enough for 46,000 nodes.
pub const DENSE_LIMIT: usize = 256 << 20;

/// Whether the rows of `n_nodes` nodes take no more than `memory_limit` bytes.
#[must_use]
pub fn fits(n_nodes: usize, memory_limit: usize) -> bool {
    n_nodes.div_ceil(64).saturating_mul(n_nodes).saturating_mul(8) <= memory_limit
}

/// The cost of a node or an edge when all rows are brought up to date, in contractions that one row
/// examines.
const STEPS_OF_SETTLING: usize = 16;

/// The closure, see the module. Bit `i` of a row is node `i`, so that comparing rows as numbers
/// compares them by their topologically last difference.
pub(super) struct DenseClosure<'a> {
    graph: &'a Graph,
    budget: &'a Budget,
    words: usize,
    bits: Vec<u64>,
    /// The last word of each row that is not 0.
    top: Vec<u32>,
    /// A word of each row such that all words before it are 0.
    bottom: Vec<u32>,
    /// The row that holds the set of each node. The outputs of a contracted cluster share one:
    /// nodes that depend on one of them depend on all, and they depend on the same nodes.
    row_of: Vec<u32>,
    /// Whether a row has more than the node's ancestors in the original graph.
    has_grown: Vec<bool>,
    /// The number of contractions of the log that each row has seen.
    seen: Vec<u32>,
    /// The number of contractions in the log when a row last grew.
    changed: Vec<u32>,
    log: Log,
}

impl<'a> DenseClosure<'a> {
    /// The closure of `graph`, whose edges all go from smaller to larger ids.
    ///
    /// # Complexity
    /// Time O(m n / 64), and n^2 / 64 words of memory; call [`fits`] before.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`], as for all methods.
    pub(super) fn new(graph: &'a Graph, budget: &'a Budget) -> Result<Self> {
        let n_nodes = graph.n_nodes();
        let words = n_nodes.div_ceil(64);
        let mut bits = vec![0u64; words * n_nodes];
        let mut bottom: Vec<u32> = (0..n_nodes as u32).map(|node| node / 64).collect();
        for node in 0..n_nodes {
            let (before, rest) = bits.split_at_mut(node * words);
            // A row has no bit beyond its own node's yet.
            let used = node / 64 + 1;
            let sources = graph.predecessors(node as u32);
            budget.check(used * (1 + sources.len()))?;
            for &source in sources {
                let start = source as usize * words;
                bottom[node] = bottom[node].min(bottom[source as usize]);
                let first = bottom[source as usize] as usize;
                or_into(&mut rest[first..used], &before[start + first..start + used]);
            }
            rest[node / 64] |= 1 << (node % 64);
        }
        Ok(Self {
            graph,
            budget,
            words,
            bits,
            top: (0..n_nodes as u32).map(|node| node / 64).collect(),
            bottom,
            row_of: (0..n_nodes as u32).collect(),
            has_grown: vec![false; n_nodes],
            seen: vec![0; n_nodes],
            changed: vec![0; n_nodes],
            log: Log::default(),
        })
    }

    /// The number of words of a row.
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// An empty set.
    pub(super) fn empty_row(&self) -> Vec<u64> {
        vec![0; self.words]
    }

    /// The ancestors of `node` as of its last refresh; the words after the last nonzero one are
    /// omitted.
    pub(super) fn row(&self, node: NodeId) -> &[u64] {
        let row = self.row_of[node as usize] as usize;
        &self.bits[row * self.words..][..=self.top[row] as usize]
    }

    /// Compares the sets of two nodes as numbers.
    pub(super) fn compare(&self, a: NodeId, b: NodeId) -> Ordering {
        let (a, b) = (self.row(a), self.row(b));
        a.len().cmp(&b.len()).then_with(|| a.iter().rev().cmp(b.iter().rev()))
    }

    /// Contracts a cluster: the set of each of its `outputs` becomes `combined`, the members of the
    /// cluster and all their ancestors, built from rows that were up to date. Nodes that depend on
    /// one of the outputs depend on all, as soon as they are refreshed. A path leads from each
    /// member to an output.
    ///
    /// # Complexity
    /// Linear in `outputs`, and in `combined` for each row that they have.
    pub(super) fn contract(&mut self, outputs: &[NodeId], combined: &[u64]) -> Result<()> {
        let row = self.row_of[outputs[0] as usize];
        let first = combined.iter().position(|&word| word != 0).unwrap_or(0);
        let last = combined.iter().rposition(|&word| word != 0).unwrap_or(0);
        // The set contains those of the outputs.
        let used = first..last + 1;
        let mut lacked = self.words..0;
        let mut newest = NONE;
        let mut n_steps = self.words + outputs.len();
        for &output in outputs {
            let row = self.row_of[output as usize];
            // Outputs of a cluster that was contracted before are adjacent.
            if std::mem::replace(&mut newest, row) != row {
                let had = &self.bits[row as usize * self.words..][..self.words];
                let differs = |&word: &usize| had[word] != combined[word];
                if let Some(first) = used.clone().find(differs) {
                    lacked.start = lacked.start.min(first);
                    let last = (first..used.end).rfind(differs).unwrap_or(first);
                    lacked.end = lacked.end.max(last + 1);
                }
                n_steps += used.len();
            }
        }
        if lacked.is_empty() {
            lacked = 0..0;
        }
        self.bits[row as usize * self.words..][..self.words].copy_from_slice(combined);
        self.top[row as usize] = last as u32;
        self.bottom[row as usize] = first as u32;
        self.has_grown[row as usize] = true;
        for &output in outputs {
            self.row_of[output as usize] = row;
        }
        self.log.push(outputs, lacked);
        self.seen[row as usize] = self.log.len() as u32;
        self.changed[row as usize] = self.log.len() as u32;
        self.budget.check(n_steps)
    }

    /// Brings the set of `node` up to date.
    ///
    /// # Complexity
    /// O(1) if nothing was contracted since the last refresh; otherwise in proportion to the
    /// outputs of the contractions since, and to the words of a row for each cluster that the node
    /// newly depends on.
    #[inline]
    pub(super) fn refresh(&mut self, node: NodeId) -> Result<()> {
        let row = self.row_of[node as usize];
        if self.seen[row as usize] as usize != self.log.len() {
            self.catch_up(row)?;
        }
        Ok(())
    }

    fn catch_up(&mut self, row: u32) -> Result<()> {
        let mut position = self.seen[row as usize] as usize;
        self.seen[row as usize] = self.log.len() as u32;
        let mut n_steps = (self.log.len() - position) / 8;
        let nodes = |closure: &Self| {
            64 * closure.bottom[row as usize]..=64 * closure.top[row as usize] + 63
        };
        while let Some(next) = self.log.next(position, nodes(self)) {
            position = next + 1;
            let outputs = self.log.outputs(next);
            n_steps += outputs.len();
            let words = &self.bits[row as usize * self.words..][..=self.top[row as usize] as usize];
            let n_inside = outputs.iter().filter(|&&output| is_in(words, output)).count();
            if n_inside > 0 && n_inside < outputs.len() {
                let from = self.row_of[outputs[0] as usize];
                let (first, end) = self.log.lacked[next];
                // The words that the outputs lacked, or all if the cluster's set has changed since.
                let is_same = self.changed[from as usize] as usize == next + 1;
                let used = self.used(from);
                let words = if is_same { first as usize..end as usize } else { used };
                n_steps += self.gain(row, from, words);
            }
        }
        self.budget.check(n_steps)
    }

    /// Brings all sets up to date, if so much was contracted that this takes less time than
    /// refreshing `n_asked` of them one by one.
    ///
    /// # Complexity
    /// O(n + m), and the words of a row for each edge from a node whose set has grown.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`].
    pub(super) fn settle(&mut self, n_asked: usize) -> Result<()> {
        let n_steps = STEPS_OF_SETTLING * (self.graph.n_nodes() + self.graph.n_edges());
        if n_asked * self.log.len() <= n_steps {
            return Ok(());
        }
        // Where orderings lead both ways between clusters, the nodes on these paths depend on one
        // another.
        let components =
            scc::components(&self.graph.contracted(&self.row_of, self.budget)?, self.budget)?;
        let n_components = components.iter().max().map_or(0, |&last| last as usize + 1);
        let component_of = |node: NodeId| components[self.row_of[node as usize] as usize];
        let nodes = 0..self.graph.n_nodes() as NodeId;
        let members = nodes.map(|node| (component_of(node), node));
        let members = Rows::grouped(n_components, members, self.budget)?;
        for component in 0..n_components as u32 {
            // Blocks without nodes are components as well.
            let Some(&first) = members.row(component).first() else { continue };
            let row = self.row_of[first as usize];
            let mut n_steps = 1;
            for &node in members.row(component) {
                let other = std::mem::replace(&mut self.row_of[node as usize], row);
                if other != row {
                    n_steps += self.gain_all(row, other);
                }
            }
            for &node in members.row(component) {
                for &source in self.graph.predecessors(node) {
                    let source = self.row_of[source as usize];
                    if source != row && self.has_grown[source as usize] {
                        n_steps += self.gain_all(row, source);
                    }
                }
            }
            self.budget.check(n_steps)?;
        }
        self.log.clear();
        self.seen.fill(0);
        self.changed.fill(0);
        Ok(())
    }

    /// Adds one row to another; returns the number of words examined.
    fn gain_all(&mut self, row: u32, from: u32) -> usize {
        self.gain(row, from, self.used(from))
    }

    /// A range that contains all nonzero words of a row.
    fn used(&self, row: u32) -> Range<usize> {
        self.bottom[row as usize] as usize..self.top[row as usize] as usize + 1
    }

    /// Adds the given words of one row to another, which has all nodes of the other words already;
    /// returns the number of words examined.
    fn gain(&mut self, row: u32, from: u32, words: Range<usize>) -> usize {
        let n_words = words.len();
        let (row, from) = (row as usize, from as usize);
        let (first, second) = self.bits.split_at_mut(row.max(from) * self.words);
        let low = &mut first[row.min(from) * self.words..][words.clone()];
        let high = &mut second[words];
        if row > from {
            or_into(high, low)
        } else {
            or_into(low, high)
        }
        self.top[row] = self.top[row].max(self.top[from]);
        self.bottom[row] = self.bottom[row].min(self.bottom[from]);
        self.has_grown[row] = true;
        self.changed[row] = self.log.len() as u32;
        n_words
    }
}
