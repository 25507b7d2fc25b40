//! The dense transitive closure of a graph that is being contracted: for every node the set of its
//! ancestors, itself included, as a row of bits.
//!
//! # Problem
//! Growing clusters in PyTensor's order ([`super::sinks`]) asks all the time whether sets of
//! ancestors meet, and breaks ties by comparing whole sets as numbers. All the while clusters are
//! contracted, so that what depends on one of their outputs depends on all.
//!
//! # Approach
//! Node ids are a topological order, so that one pass fills the rows, and a row has no bit beyond its
//! own node's until something is contracted. The outputs of a contracted cluster share one row.
//! What depends on them is brought up to date by a walk that ends where nothing is gained, for then
//! nothing that depends on that does: no set lacks what is in the set of one of its ancestors.
//!
//! # Rejected
//! - Looking at all rows at each contraction, as [`crate::ancestors`] and PyTensor do: most of them
//!   gain nothing.
//! - A maintained topological order ([`crate::quotient`]): it answers the questions of reachability
//!   in less memory, but does not compare whole sets.
//!
//! # Source
//! The closure by one pass in topological order: R. Sedgewick, K. Wayne, "Algorithms", 4th edition
//! (2011), section 4.2.

use std::cmp::Ordering;

use crate::graph::{Graph, NodeId};
use crate::interrupt;

/// Dense rows may take this many bytes: enough for 46,000 nodes.
pub const DENSE_LIMIT: usize = 256 << 20;

/// Whether the rows of `n_nodes` nodes take no more than `memory_limit` bytes.
#[must_use]
pub fn fits(n_nodes: usize, memory_limit: usize) -> bool {
    n_nodes.div_ceil(64).saturating_mul(n_nodes).saturating_mul(8) <= memory_limit
}

/// See the module. Bit `i` of a row is node `i`, so that comparing rows as numbers compares them by
/// their topologically last difference.
pub(super) struct DenseClosure<'a> {
    graph: &'a Graph,
    words: usize,
    bits: Vec<u64>,
    /// The last word of each row that is not 0.
    top: Vec<u32>,
    /// The row that holds the set of each node. The outputs of a contracted cluster share one:
    /// whatever depends on one of them depends on all, and they depend on the same.
    row_of: Vec<u32>,
}

impl<'a> DenseClosure<'a> {
    /// The closure of `graph`, whose edges all go from smaller to larger ids.
    ///
    /// # Complexity
    /// Time O(m n / 64), and n^2 / 64 words of memory; ask [`fits`] before.
    pub(super) fn new(graph: &'a Graph) -> Self {
        let n_nodes = graph.n_nodes();
        let words = n_nodes.div_ceil(64);
        let mut bits = vec![0u64; words * n_nodes];
        for node in 0..n_nodes {
            let (before, rest) = bits.split_at_mut(node * words);
            // A row has no bit beyond its own node's yet.
            let used = node / 64 + 1;
            let sources = graph.predecessors(node as u32);
            if interrupt::is_requested(used * (1 + sources.len())) {
                break;
            }
            for &source in sources {
                let start = source as usize * words;
                or_into(&mut rest[..used], &before[start..start + used]);
            }
            rest[node / 64] |= 1 << (node % 64);
        }
        let top = (0..n_nodes as u32).map(|node| node / 64).collect();
        Self { graph, words, bits, top, row_of: (0..n_nodes as u32).collect() }
    }

    /// Words of a row.
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// A set without any node.
    pub(super) fn empty_row(&self) -> Vec<u64> {
        vec![0; self.words]
    }

    /// The ancestors of `node`.
    pub(super) fn row(&self, node: NodeId) -> &[u64] {
        &self.bits[self.row_of[node as usize] as usize * self.words..][..self.words]
    }

    /// Compares the sets of two nodes as numbers.
    pub(super) fn compare(&self, a: NodeId, b: NodeId) -> Ordering {
        let top = |node: NodeId| self.top[self.row_of[node as usize] as usize];
        let used = top(a) as usize + 1;
        let below = |node: NodeId| self.row(node)[..used].iter().rev();
        top(a).cmp(&top(b)).then_with(|| below(a).cmp(below(b)))
    }

    /// Contracts a cluster: the set of each of its `outputs`, and of every node that depends on one
    /// of them, gains `combined`, the members of the cluster and all their ancestors.
    ///
    /// `outputs_beside` gives for an output of a cluster that was contracted before all outputs of
    /// that, and nothing for other nodes.
    ///
    /// # Complexity
    /// In proportion to the edges of nodes that gain something, times the words of `combined` that
    /// some output lacks.
    pub(super) fn contract<'b>(
        &mut self,
        outputs: &[NodeId],
        combined: &[u64],
        outputs_beside: impl Fn(NodeId) -> Option<&'b [NodeId]>,
    ) {
        let graph = self.graph;
        let bits = self.not_common(outputs, combined);
        for &output in outputs {
            self.row_of[output as usize] = self.row_of[outputs[0] as usize];
        }
        self.gain(outputs[0], &bits);
        // What depends on all outputs has the whole set, for each member leads to one of them.
        let lacks_some = |closure: &Self, node: NodeId| {
            let row = closure.row(node);
            !outputs.iter().all(|&output| has_bit(row, output))
        };
        let mut stack = outputs.to_vec();
        while let Some(node) = stack.pop() {
            for &client in graph.successors(node) {
                if interrupt::is_requested(8 + outputs.len()) {
                    return;
                }
                if !lacks_some(self, client) {
                    continue;
                }
                self.gain(client, &bits);
                interrupt::is_requested(bits.words.len());
                match outputs_beside(client) {
                    Some(outputs) => stack.extend(outputs),
                    None => stack.push(client),
                }
            }
        }
    }

    /// What is in `combined` and not in the sets of all `outputs`.
    fn not_common(&self, outputs: &[NodeId], combined: &[u64]) -> Bits {
        let mut words = combined.to_vec();
        for (position, word) in words.iter_mut().enumerate() {
            let common =
                outputs.iter().fold(*word, |all, &output| all & self.row(output)[position]);
            *word &= !common;
        }
        let first = words.iter().position(|&word| word != 0).unwrap_or(words.len());
        let end = words.iter().rposition(|&word| word != 0).map_or(first, |last| last + 1);
        Bits { first, words: words[first..end].to_vec() }
    }

    /// Adds bits to the set of `node`.
    fn gain(&mut self, node: NodeId, bits: &Bits) {
        let row = self.row_of[node as usize] as usize;
        let end = bits.first + bits.words.len();
        if bits.first < end {
            or_into(&mut self.bits[row * self.words..][bits.first..end], &bits.words);
            self.top[row] = self.top[row].max(end as u32 - 1);
        }
    }
}

/// A set, but for the words before its first and after its last node.
struct Bits {
    first: usize,
    words: Vec<u64>,
}

/// Whether `node` is in a set.
pub(super) fn has_bit(row: &[u64], node: NodeId) -> bool {
    row[node as usize / 64] & (1 << (node % 64)) != 0
}

/// Puts `node` into a set.
pub(super) fn set_bit(row: &mut [u64], node: NodeId) {
    row[node as usize / 64] |= 1 << (node % 64);
}

/// Puts all that is in `other` into a set.
pub(super) fn or_into(row: &mut [u64], other: &[u64]) {
    for (word, &more) in row.iter_mut().zip(other) {
        *word |= more;
    }
}

/// Whether two sets have a node in common.
pub(super) fn intersects(row: &[u64], other: &[u64]) -> bool {
    row.iter().zip(other).any(|(a, b)| a & b != 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::testing::{digraphs, is_acyclic, reachability};
    use proptest::prelude::*;

    fn members(row: &[u64], n_nodes: usize) -> Vec<NodeId> {
        (0..n_nodes as NodeId).filter(|&node| has_bit(row, node)).collect()
    }

    /// The ancestors of each node in the quotient by `blocks`, by searches.
    fn expected(graph: &Graph, blocks: &[u32]) -> Vec<Vec<NodeId>> {
        let reach = reachability(&graph.contracted(blocks).unwrap());
        let ancestors = |&block: &u32| {
            let is_before = |other: u32| other == block || reach[other as usize][block as usize];
            (0u32..).zip(blocks).filter(|&(_, &b)| is_before(b)).map(|(node, _)| node).collect()
        };
        blocks.iter().map(ancestors).collect()
    }

    #[test]
    fn limits_are_in_bytes() {
        assert!(fits(0, 0));
        assert!(fits(64, 512));
        assert!(!fits(65, 65 * 16 - 1));
        assert!(!fits(usize::MAX, usize::MAX - 1));
    }

    proptest! {
        #[test]
        fn rows_are_the_closure_of_the_quotient(
            (n_nodes, edges) in digraphs(100),
            picks in proptest::collection::vec(proptest::collection::vec(any::<u16>(), 2..4), 0..8)
        ) {
            let (sources, targets): (Vec<_>, Vec<_>) =
                edges.iter().map(|&(a, b)| (a.min(b), a.max(b))).unzip();
            let graph = Graph::new(n_nodes, &sources, &targets).unwrap();
            let mut closure = DenseClosure::new(&graph);
            let mut blocks: Vec<u32> = (0..n_nodes as u32).collect();
            let mut clusters: Vec<Vec<NodeId>> = Vec::new();
            for pick in picks.iter().filter(|_| n_nodes > 0) {
                let mut nodes: Vec<NodeId> =
                    pick.iter().map(|&node| NodeId::from(node) % n_nodes as u32).collect();
                nodes.sort_unstable();
                nodes.dedup();
                let mut merged = blocks.clone();
                nodes.iter().for_each(|&node| merged[node as usize] = nodes[0]);
                let is_new = nodes.iter().all(|node| !clusters.concat().contains(node));
                if !is_new || !is_acyclic(&graph.contracted(&merged).unwrap()) {
                    continue;
                }
                let mut combined = closure.empty_row();
                nodes.iter().for_each(|&node| or_into(&mut combined, closure.row(node)));
                closure.contract(&nodes, &combined, |node| {
                    clusters.iter().find(|cluster| cluster.contains(&node)).map(Vec::as_slice)
                });
                clusters.push(nodes);
                blocks = merged;
            }
            let expected = expected(&graph, &blocks);
            for node in 0..n_nodes as NodeId {
                prop_assert_eq!(members(closure.row(node), n_nodes), &expected[node as usize][..]);
            }
            for (a, b) in edges {
                let backwards = |node: NodeId| closure.row(node).iter().rev();
                prop_assert_eq!(closure.compare(a, b), backwards(a).cmp(backwards(b)));
                let mut shared = members(closure.row(a), n_nodes);
                shared.retain(|&node| has_bit(closure.row(b), node));
                prop_assert_eq!(intersects(closure.row(a), closure.row(b)), !shared.is_empty());
            }
        }
    }
}
