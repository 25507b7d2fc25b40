//! Clusters grown from the sinks, the way PyTensor's own fusion grows them.
//!
//! # Problem
//! The plan has to be at least as good as PyTensor's on every graph. Greedy fusion is no better
//! than its luck: whatever order a planner contracts in, some graph exists on which another order
//! does better (weighted loop fusion is NP-hard). So the planner tries PyTensor's own order too,
//! and improves on what it finds.
//!
//! # The order
//! `FusionOptimizer` of PyTensor 3.0 to 3.3 (`pytensor.tensor.rewriting.elemwise`) walks the nodes
//! backwards through a topological order. Each node without fusible clients starts a cluster,
//! which first takes in ancestors, those with the numerically largest ancestor bitset first, then
//! clients, smallest bitset first; a node is turned away if a path through something outside the
//! cluster would join it to the cluster. Clusters and lone nodes that share an operand are merged
//! afterwards, when neither depends on the other. The tie-breaks are part of the order, and need
//! the whole bitsets: hence dense rows, and the limit on their size. What PyTensor spends on
//! rescanning every bitset after each contraction is saved by walking the cluster's dependents.
//!
//! # Rejected
//! Searches bounded by a maintained topological order answer the same reachability questions in
//! less memory, but not the comparisons of whole bitsets that decide the order.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::problem::{FusionProblem, NONE, VarId};
use crate::graph::NodeId;
use crate::interrupt;
use crate::quotient::find;

/// Dense rows may take this many bytes: enough for 46,000 nodes.
pub const DENSE_LIMIT: usize = 256 << 20;

/// Whether dense rows take no more than `memory_limit` bytes.
#[must_use]
pub fn fits(problem: &FusionProblem, memory_limit: usize) -> bool {
    let n_nodes = problem.n_nodes();
    n_nodes.div_ceil(64).saturating_mul(n_nodes).saturating_mul(8) <= memory_limit
}

/// Clusters of the nodes for which `eligible` holds, or `None` if dense rows would not fit
/// `memory_limit` bytes. Returns for each node the smallest member of its cluster, or [`NONE`].
///
/// The operand limit is not looked at.
///
/// # Complexity
/// n^2 / 64 words of memory, time O((n + m) n / 64) and what contractions add: each walks the
/// nodes whose sets grow by it.
#[must_use]
pub fn grow_from_sinks(
    problem: &FusionProblem,
    eligible: impl Fn(NodeId) -> bool,
    memory_limit: usize,
) -> Option<Vec<u32>> {
    let n_nodes = problem.n_nodes();
    if !fits(problem, memory_limit) {
        return None;
    }
    let words = n_nodes.div_ceil(64);
    let group = (0..n_nodes as u32)
        .map(|node| problem.group(node).filter(|_| eligible(node)).unwrap_or(NONE))
        .collect();
    let mut growth = Growth {
        problem,
        group,
        rows: DenseRows::new(problem, words),
        claimed: vec![false; n_nodes],
        clusters: Vec::new(),
        cluster_of: vec![NONE; n_nodes],
    };
    growth.grow();
    growth.merge_siblings();
    let mut smallest = vec![NONE; n_nodes];
    for cluster in &growth.clusters {
        let first = cluster.nodes.iter().copied().min().unwrap_or(NONE);
        for &node in &cluster.nodes {
            smallest[node as usize] = first;
        }
    }
    Some(smallest)
}

/// Inclusive ancestor sets as rows of words; bit `i` is node `i`, so that comparing rows as
/// numbers compares them by their topologically last difference.
struct DenseRows {
    words: usize,
    bits: Vec<u64>,
    /// The last word of each row that is not 0.
    top: Vec<u32>,
    /// The row that holds the set of each node. The outputs of a contracted cluster share one:
    /// whatever depends on one of them depends on all, and they depend on the same.
    row_of: Vec<u32>,
}

impl DenseRows {
    fn new(problem: &FusionProblem, words: usize) -> Self {
        let n_nodes = problem.n_nodes();
        let mut bits = vec![0u64; words * n_nodes];
        for node in 0..n_nodes {
            let (before, rest) = bits.split_at_mut(node * words);
            // A row has no bit beyond its own node's yet.
            let used = node / 64 + 1;
            let sources = problem.graph().predecessors(node as u32);
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
        Self { words, bits, top, row_of: (0..n_nodes as u32).collect() }
    }

    fn row(&self, node: NodeId) -> &[u64] {
        &self.bits[self.row_of[node as usize] as usize * self.words..][..self.words]
    }

    /// Adds bits to the set of `node`; whether any was new.
    fn gain(&mut self, node: NodeId, bits: &[(u32, u64)]) -> bool {
        let row = self.row_of[node as usize] as usize;
        let words = &mut self.bits[row * self.words..][..self.words];
        let mut is_new = false;
        for &(word, more) in bits {
            is_new |= more & !words[word as usize] != 0;
            words[word as usize] |= more;
        }
        if let Some(&(last, _)) = bits.last() {
            self.top[row] = self.top[row].max(last);
        }
        is_new
    }

    /// Compares the sets of two nodes as numbers.
    fn compare(&self, a: NodeId, b: NodeId) -> Ordering {
        let top = |node: NodeId| self.top[self.row_of[node as usize] as usize];
        let used = top(a) as usize + 1;
        let below = |node: NodeId| self.row(node)[..used].iter().rev();
        top(a).cmp(&top(b)).then_with(|| below(a).cmp(below(b)))
    }
}

fn has_bit(row: &[u64], node: NodeId) -> bool {
    row[node as usize / 64] & (1 << (node % 64)) != 0
}

fn set_bit(row: &mut [u64], node: NodeId) {
    row[node as usize / 64] |= 1 << (node % 64);
}

fn or_into(row: &mut [u64], other: &[u64]) {
    for (word, &more) in row.iter_mut().zip(other) {
        *word |= more;
    }
}

fn intersects(row: &[u64], other: &[u64]) -> bool {
    row.iter().zip(other).any(|(a, b)| a & b != 0)
}

/// A node waiting to join the cluster that is being grown.
struct Waiting<'a> {
    node: NodeId,
    as_ancestor: bool,
    rows: &'a DenseRows,
}

impl Ord for Waiting<'_> {
    /// The greatest is taken first: ancestors before clients, ancestors by falling bitset,
    /// clients by rising bitset, then the smaller id.
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_ancestor
            .cmp(&other.as_ancestor)
            .then_with(|| {
                let by_row = self.rows.compare(self.node, other.node);
                if self.as_ancestor { by_row } else { by_row.reverse() }
            })
            .then_with(|| other.node.cmp(&self.node))
    }
}

impl PartialOrd for Waiting<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting<'_> {}

/// A cluster, or a lone node that may be merged with siblings.
#[derive(Default)]
struct Cluster {
    /// Members in the order in which they joined, which decides the order of `inputs`.
    nodes: Vec<NodeId>,
    inputs: Vec<VarId>,
    /// Nodes whose results leave the cluster.
    outputs: Vec<NodeId>,
}

/// Clusters that are about to become one. Rows are brought up to date once for all of them: a
/// cluster that depends on one of them has its bit already, and one on which they depend is among
/// their ancestors.
struct Merging {
    into: u32,
    /// The first output of each, and the same as bits.
    firsts: Vec<NodeId>,
    members: Vec<u64>,
    ancestors: Vec<u64>,
}

struct Growth<'a> {
    problem: &'a FusionProblem,
    group: Vec<u32>,
    rows: DenseRows,
    /// Nodes of finished clusters.
    claimed: Vec<bool>,
    clusters: Vec<Cluster>,
    /// For outputs of clusters the index of theirs, [`NONE`] for other nodes.
    cluster_of: Vec<u32>,
}

impl Growth<'_> {
    fn grow(&mut self) {
        let n_nodes = self.problem.n_nodes() as u32;
        let mut member = vec![0u64; self.rows.words];
        let mut ancestors = vec![0u64; self.rows.words];
        let mut clients = vec![0u64; self.rows.words];
        for start in (0..n_nodes).rev() {
            if interrupt::is_requested(1) {
                return;
            }
            if self.group[start as usize] == NONE
                || self.claimed[start as usize]
                || self.has_fusible_client(start)
            {
                continue;
            }
            let nodes = self.expand(start, &mut member, &mut ancestors, &mut clients);
            if nodes.len() > 1 {
                self.claim(nodes, &member, &ancestors);
            }
            for set in [&mut member, &mut ancestors, &mut clients] {
                set.fill(0);
            }
        }
    }

    fn fusible(&self, producer: NodeId, client: NodeId) -> bool {
        let (p, c) = (producer as usize, client as usize);
        self.group[p] != NONE
            && self.group[p] == self.group[c]
            && !self.claimed[p]
            && !self.claimed[c]
    }

    fn has_fusible_client(&self, node: NodeId) -> bool {
        let clients = self.problem.clients(self.problem.output(node));
        clients.iter().any(|&client| self.fusible(node, client))
    }

    /// Members of the cluster that starts at `start`, in the order in which they join. Leaves the
    /// members in `member`, and what must not be joined in `ancestors` and `clients`.
    fn expand(
        &self,
        start: NodeId,
        member: &mut [u64],
        ancestors: &mut [u64],
        clients: &mut [u64],
    ) -> Vec<NodeId> {
        let waiting = |node, as_ancestor| Waiting { node, as_ancestor, rows: &self.rows };
        let mut nodes = Vec::new();
        let mut queue = BinaryHeap::from([waiting(start, true)]);
        while let Some(Waiting { node, as_ancestor, .. }) = queue.pop() {
            let outside_path = if as_ancestor {
                has_bit(ancestors, node)
            } else {
                intersects(self.rows.row(node), clients)
            };
            if has_bit(member, node) || outside_path {
                continue;
            }
            if interrupt::is_requested(self.rows.words) {
                break;
            }
            nodes.push(node);
            set_bit(member, node);
            for &source in self.problem.graph().predecessors(node) {
                if !as_ancestor && has_bit(member, source) {
                    continue;
                }
                if self.fusible(source, node) && self.reads(node, source) {
                    queue.push(waiting(source, true));
                } else {
                    or_into(ancestors, self.rows.row(source));
                }
            }
            for &client in self.problem.graph().successors(node) {
                if as_ancestor && has_bit(member, client) {
                    continue;
                }
                if self.fusible(node, client) && self.reads(client, node) {
                    queue.push(waiting(client, false));
                } else {
                    set_bit(clients, client);
                }
            }
        }
        nodes
    }

    /// Whether data flows from `source` to `node`, not only an ordering.
    fn reads(&self, node: NodeId, source: NodeId) -> bool {
        !self.problem.has_orderings()
            || self.problem.inputs(node).contains(&self.problem.output(source))
    }

    fn claim(&mut self, nodes: Vec<NodeId>, member: &[u64], ancestors: &[u64]) {
        let problem = self.problem;
        let is_member = |node: NodeId| has_bit(member, node);
        let outside = |variable: VarId| {
            let owner = problem.owner(variable);
            owner == NONE || !is_member(owner)
        };
        let mut seen = rustc_hash::FxHashSet::default();
        let inputs = nodes
            .iter()
            .flat_map(|&node| problem.inputs(node))
            .copied()
            .filter(|&variable| outside(variable) && seen.insert(variable))
            .collect();
        let leaves = |&node: &NodeId| {
            let output = problem.output(node);
            problem.is_result(output) || !problem.clients(output).iter().all(|&c| is_member(c))
        };
        let outputs: Vec<_> = nodes.iter().copied().filter(leaves).collect();
        for &node in &nodes {
            self.claimed[node as usize] = true;
        }
        for &node in &outputs {
            self.cluster_of[node as usize] = self.clusters.len() as u32;
        }
        self.clusters.push(Cluster { nodes, inputs, outputs: outputs.clone() });
        if outputs.len() > 1 {
            let mut combined = member.to_vec();
            or_into(&mut combined, ancestors);
            self.contract(&outputs, &combined);
        }
    }

    /// Merges clusters and lone nodes that share an operand, in the order of those operands.
    fn merge_siblings(&mut self) {
        let n_clusters = self.clusters.len();
        self.add_lone_nodes();
        let mut merged_into: Vec<u32> = (0..self.clusters.len() as u32).collect();
        let mut is_target = vec![false; self.clusters.len()];
        let mut tried = vec![NONE; self.clusters.len()];
        let mut done = vec![NONE; self.clusters.len()];
        for (list, siblings) in (0u32..).zip(self.siblings()) {
            for (position, &sibling) in siblings[..siblings.len() - 1].iter().enumerate() {
                let into = find(&mut merged_into, sibling);
                if std::mem::replace(&mut done[into as usize], list) == list {
                    continue;
                }
                tried[into as usize] = into;
                if interrupt::is_requested(self.rows.words + siblings.len() - position) {
                    return;
                }
                let mut merging = self.start_merging(into);
                for &other in &siblings[position + 1..] {
                    let other = find(&mut merged_into, other);
                    if std::mem::replace(&mut tried[other as usize], into) == into
                        || !self.independent(&merging, other)
                    {
                        continue;
                    }
                    merged_into[other as usize] = into;
                    is_target[into as usize] = true;
                    self.absorb(&mut merging, other);
                }
                self.finish_merging(merging);
                // A later operand may bring the same pair together again, after other merges.
                for &other in &siblings[position..] {
                    let other = find(&mut merged_into, other);
                    tried[other as usize] = NONE;
                }
            }
        }
        let mut index = 0;
        self.clusters.retain(|_| {
            let keep =
                merged_into[index] == index as u32 && (index < n_clusters || is_target[index]);
            index += 1;
            keep
        });
    }

    fn add_lone_nodes(&mut self) {
        for node in 0..self.problem.n_nodes() as u32 {
            if self.group[node as usize] == NONE || self.claimed[node as usize] {
                continue;
            }
            let mut inputs: Vec<VarId> = Vec::new();
            for &variable in self.problem.inputs(node) {
                if !inputs.contains(&variable) {
                    inputs.push(variable);
                }
            }
            self.clusters.push(Cluster { nodes: vec![node], inputs, outputs: vec![node] });
        }
    }

    /// Clusters that read the same operand, for each operand that brings siblings together, in
    /// the order in which the operands are first met.
    fn siblings(&self) -> Vec<Vec<u32>> {
        let mut slot = vec![NONE; self.problem.n_variables()];
        let mut siblings: Vec<Vec<u32>> = Vec::new();
        for (index, cluster) in self.clusters.iter().enumerate() {
            let group = self.group[cluster.nodes[0] as usize];
            for &variable in &cluster.inputs {
                if self.problem.link(variable) != Some(group) {
                    continue;
                }
                let slot = &mut slot[variable as usize];
                if *slot == NONE {
                    *slot = siblings.len() as u32;
                    siblings.push(Vec::new());
                }
                siblings[*slot as usize].push(index as u32);
            }
        }
        siblings.retain(|indices| indices.len() > 1);
        siblings
    }

    fn start_merging(&self, into: u32) -> Merging {
        let first = self.clusters[into as usize].outputs[0];
        let mut members = vec![0; self.rows.words];
        set_bit(&mut members, first);
        Merging { into, firsts: vec![first], members, ancestors: self.rows.row(first).to_vec() }
    }

    /// Whether neither the clusters that are being merged nor `other` depend on each other. One
    /// output stands for all of a cluster: rows were brought up to date when it was contracted.
    fn independent(&self, merging: &Merging, other: u32) -> bool {
        let first = self.clusters[other as usize].outputs[0];
        if has_bit(&merging.ancestors, first) {
            return false;
        }
        // Most often few are being merged: where an operand has thousands of readers that depend
        // on one another, whole rows would make this cubic.
        let row = self.rows.row(first);
        if merging.firsts.len() < self.rows.words {
            !merging.firsts.iter().any(|&member| has_bit(row, member))
        } else {
            !intersects(row, &merging.members)
        }
    }

    fn absorb(&mut self, merging: &mut Merging, other: u32) {
        let Cluster { nodes, outputs, .. } = std::mem::take(&mut self.clusters[other as usize]);
        merging.firsts.push(outputs[0]);
        set_bit(&mut merging.members, outputs[0]);
        or_into(&mut merging.ancestors, self.rows.row(outputs[0]));
        let target = &mut self.clusters[merging.into as usize];
        target.nodes.extend(nodes);
        target.outputs.extend(outputs);
    }

    fn finish_merging(&mut self, merging: Merging) {
        if merging.firsts.len() > 1 {
            let outputs = self.clusters[merging.into as usize].outputs.clone();
            for &node in &outputs {
                self.cluster_of[node as usize] = merging.into;
            }
            self.contract(&outputs, &merging.ancestors);
        }
    }

    /// The set of every node that depends on one of `outputs`, or is it, gains `combined`: the
    /// contraction of a cluster, whose outputs these are.
    ///
    /// What depends on one output of an earlier cluster depends on all, since those were
    /// contracted. The walk ends at nodes that gain nothing, for then nothing that depends on them
    /// does: no set lacks what is in the set of one of its ancestors.
    fn contract(&mut self, outputs: &[NodeId], combined: &[u64]) {
        let bits = self.not_common(outputs, combined);
        for &output in outputs {
            self.rows.row_of[output as usize] = self.rows.row_of[outputs[0] as usize];
        }
        self.rows.gain(outputs[0], &bits);
        let mut stack = outputs.to_vec();
        while let Some(node) = stack.pop() {
            for &client in self.problem.graph().successors(node) {
                if interrupt::is_requested(1 + bits.len()) {
                    return;
                }
                if !self.rows.gain(client, &bits) {
                    continue;
                }
                match self.clusters.get(self.cluster_of[client as usize] as usize) {
                    Some(cluster) => stack.extend(&cluster.outputs),
                    None => stack.push(client),
                }
            }
        }
    }

    /// The words of `combined` without what the sets of all `outputs` have.
    fn not_common(&self, outputs: &[NodeId], combined: &[u64]) -> Vec<(u32, u64)> {
        let word = |(word, &all): (u32, &u64)| {
            let common = |all, &output: &NodeId| all & self.rows.row(output)[word as usize];
            (word, all & !outputs.iter().fold(all, common))
        };
        (0u32..).zip(combined).map(word).filter(|&(_, bits)| bits != 0).collect()
    }
}
