//! Clusters grown from the sinks, as PyTensor's own fusion grows them.
//!
//! # Problem
//! The plan has to be at least as good as PyTensor's on every graph. Greedy fusion depends on luck:
//! for every order of contractions, some graph exists on which another order does better (weighted
//! loop fusion is NP-hard). So the planner tries PyTensor's own order too, and improves its result.
//!
//! # Approach
//! PyTensor walks the nodes backwards through a topological order. Each node without fusible
//! clients starts a cluster, which first takes ancestors, those with the numerically largest
//! ancestor bitset first, then clients, smallest bitset first; a node is rejected if a path through
//! nodes outside the cluster would join it to the cluster. Clusters and lone nodes that share an
//! operand are merged afterwards, when neither depends on the other. The tie-breaks are part of the
//! order, and need the whole bitsets: hence a dense closure ([`super::closure`]), and a limit on
//! its size.
//!
//! # Rejected
//! An order that needs no bitsets: it would be one more greedy order, but not the one that the plan
//! must not be worse than.
//!
//! # Source
//! `FusionOptimizer` of PyTensor 3.0 to 3.3 (`pytensor.tensor.rewriting.elemwise`). It rescans
//! every bitset after each contraction; here only the bitsets that are requested are brought up to
//! date.

use std::cmp::Ordering;

use super::closure::DenseClosure;
use super::closure::bits::{has_bit, intersects, is_in, or_into, set_bit};
use crate::budget::Budget;
use crate::error::Result;
use crate::graph::NodeId;
use crate::plan::problem::{FusionProblem, NONE, Partition, VarId};
use crate::union_find::find;

/// Clusters of the nodes for which `eligible` holds; all others are alone.
///
/// The operand limit is ignored.
///
/// # Complexity
/// n^2 / 64 words of memory, which [`super::closure::fits`] compares with a limit; time
/// O((n + m) n/64), and for each node that is queried, the clusters that were contracted since its last
/// query. Siblings query all pairs that share an operand and depend on one another: O(n^2), for
/// instance for n readers of one operand each of which has to come before the next. Each of these
/// queries may meet a contraction that adds up to n / 64 words, as in PyTensor's own order.
///
/// # Errors
/// [`crate::Error::Interrupted`].
pub(in crate::plan) fn grow_from_sinks(
    problem: &FusionProblem,
    eligible: impl Fn(NodeId) -> bool,
    budget: &Budget,
) -> Result<Partition> {
    let n_nodes = problem.n_nodes();
    let group = (0..n_nodes as u32)
        .map(|node| problem.group(node).filter(|_| eligible(node)).unwrap_or(NONE))
        .collect();
    let mut growth = Growth {
        problem,
        group,
        closure: DenseClosure::new(problem.graph(), budget)?,
        claimed: vec![false; n_nodes],
        clusters: Vec::new(),
        firsts: Vec::new(),
        budget,
    };
    growth.grow()?;
    growth.merge_siblings()?;
    let mut smallest = vec![NONE; n_nodes];
    for cluster in &growth.clusters {
        let first = cluster.nodes.iter().copied().min().unwrap_or(NONE);
        for &node in &cluster.nodes {
            smallest[node as usize] = first;
        }
    }
    Ok(Partition::from_names(smallest))
}

/// A node waiting to join the cluster that is being grown.
#[derive(Clone, Copy)]
struct Waiting {
    node: NodeId,
    as_ancestor: bool,
}

/// A priority queue of waiting nodes, as a binary heap. The standard heap compares items by their
/// contents, but these are compared by rows of a closure that changes between two growths.
#[derive(Default)]
struct Queue {
    heap: Vec<Waiting>,
}

impl Queue {
    fn push(&mut self, item: Waiting, closure: &DenseClosure<'_>) {
        let mut position = self.heap.len();
        self.heap.push(item);
        while position > 0 && item.is_before(&self.heap[(position - 1) / 2], closure) {
            self.heap.swap(position, (position - 1) / 2);
            position = (position - 1) / 2;
        }
    }

    fn pop(&mut self, closure: &DenseClosure<'_>) -> Option<Waiting> {
        let last = self.heap.len().checked_sub(1)?;
        let first = self.heap.swap_remove(0);
        let mut position = 0;
        while let Some(&left) = self.heap.get(2 * position + 1) {
            let right = self.heap.get(2 * position + 2);
            let is_right = right.is_some_and(|right| right.is_before(&left, closure));
            let child = 2 * position + 1 + usize::from(is_right);
            if !self.heap[child].is_before(&self.heap[position], closure) {
                break;
            }
            self.heap.swap(position, child);
            position = child;
        }
        debug_assert_eq!(self.heap.len(), last);
        Some(first)
    }
}

impl Waiting {
    /// Ancestors come before clients, ancestors by falling bitset, clients by rising bitset, then the
    /// smaller id.
    fn is_before(&self, other: &Self, closure: &DenseClosure<'_>) -> bool {
        let order = other.as_ancestor.cmp(&self.as_ancestor).then_with(|| {
            let by_row = closure.compare(self.node, other.node);
            if self.as_ancestor { by_row.reverse() } else { by_row }
        });
        order.then_with(|| self.node.cmp(&other.node)) == Ordering::Less
    }
}

/// A cluster, or a lone node that may be merged with siblings.
#[derive(Default)]
struct Cluster {
    /// Members in the order in which they joined, which decides the order of `inputs`.
    nodes: Vec<NodeId>,
    inputs: Vec<VarId>,
    /// Nodes whose results leave the cluster or are unread. There is at least one.
    outputs: Vec<NodeId>,
}

/// Clusters that are being merged into one. The closure is brought up to date once for all of them:
/// a cluster that depends on one of them has its bit already, and one on which they depend is among
/// their ancestors.
struct Merging {
    into: u32,
    /// The first output of each cluster; `members` has these as bits.
    firsts: Vec<NodeId>,
    members: Vec<u64>,
    ancestors: Vec<u64>,
}

struct Growth<'a> {
    problem: &'a FusionProblem,
    group: Vec<u32>,
    closure: DenseClosure<'a>,
    /// Marks nodes of finished clusters.
    claimed: Vec<bool>,
    clusters: Vec<Cluster>,
    /// The first output of each cluster that may be merged with siblings, which stays the first.
    firsts: Vec<NodeId>,
    budget: &'a Budget,
}

impl Growth<'_> {
    fn grow(&mut self) -> Result<()> {
        let n_nodes = self.problem.n_nodes() as u32;
        let mut member = self.closure.empty_row();
        let mut ancestors = self.closure.empty_row();
        let mut clients = self.closure.empty_row();
        for start in (0..n_nodes).rev() {
            let is_eligible = self.group[start as usize] != NONE;
            let readers = is_eligible.then(|| self.problem.clients(self.problem.output(start)));
            self.budget.check(1 + readers.map_or(0, <[NodeId]>::len))?;
            if !is_eligible || self.claimed[start as usize] || self.has_fusible_client(start) {
                continue;
            }
            let nodes = self.expand(start, &mut member, &mut ancestors, &mut clients)?;
            if nodes.len() > 1 {
                self.claim(nodes, &member, &ancestors)?;
            }
            for set in [&mut member, &mut ancestors, &mut clients] {
                set.fill(0);
            }
        }
        Ok(())
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
    /// members in `member`, and the sets that exclude further nodes in `ancestors` and `clients`.
    fn expand(
        &mut self,
        start: NodeId,
        member: &mut [u64],
        ancestors: &mut [u64],
        clients: &mut [u64],
    ) -> Result<Vec<NodeId>> {
        let (problem, graph) = (self.problem, self.problem.graph());
        let mut nodes = Vec::new();
        let mut queue = Queue::default();
        self.closure.refresh(start)?;
        queue.push(Waiting { node: start, as_ancestor: true }, &self.closure);
        while let Some(Waiting { node, as_ancestor }) = queue.pop(&self.closure) {
            let outside_path = if as_ancestor {
                has_bit(ancestors, node)
            } else {
                intersects(self.closure.row(node), clients)
            };
            if has_bit(member, node) || outside_path {
                continue;
            }
            let (before, after) = (graph.predecessors(node), graph.successors(node));
            // The number of rows that are compared with others, or added.
            let mut n_rows = 1;
            nodes.push(node);
            set_bit(member, node);
            for &source in before {
                if !as_ancestor && has_bit(member, source) {
                    continue;
                }
                self.closure.refresh(source)?;
                if self.fusible(source, node) && problem.has_data(source, node) {
                    queue.push(Waiting { node: source, as_ancestor: true }, &self.closure);
                } else {
                    n_rows += 1;
                    or_into(ancestors, self.closure.row(source));
                }
            }
            for &client in after {
                if as_ancestor && has_bit(member, client) {
                    continue;
                }
                if self.fusible(node, client) && problem.has_data(node, client) {
                    self.closure.refresh(client)?;
                    queue.push(Waiting { node: client, as_ancestor: false }, &self.closure);
                } else {
                    set_bit(clients, client);
                }
            }
            self.budget.check(self.closure.words() * n_rows + before.len() + after.len())?;
        }
        Ok(nodes)
    }

    fn claim(&mut self, nodes: Vec<NodeId>, member: &[u64], ancestors: &[u64]) -> Result<()> {
        let problem = self.problem;
        let is_member = |node: NodeId| has_bit(member, node);
        let outside = |variable: VarId| {
            let owner = problem.owner(variable);
            owner == NONE || !is_member(owner)
        };
        for &node in &nodes {
            let readers = problem.clients(problem.output(node));
            self.budget.check(8 * problem.reads(node).len() + readers.len())?;
        }
        let mut seen = rustc_hash::FxHashSet::default();
        let inputs = nodes
            .iter()
            .flat_map(|&node| problem.reads(node))
            .copied()
            .filter(|&variable| outside(variable) && seen.insert(variable))
            .collect();
        // An unread result counts as well: no other output depends on all that it depends on.
        let leaves = |&node: &NodeId| {
            let output = problem.output(node);
            let clients = problem.clients(output);
            problem.is_result(output)
                || clients.is_empty()
                || !clients.iter().all(|&client| is_member(client))
        };
        let outputs: Vec<_> = nodes.iter().copied().filter(leaves).collect();
        for &node in &nodes {
            self.claimed[node as usize] = true;
        }
        self.clusters.push(Cluster { nodes, inputs, outputs: outputs.clone() });
        if outputs.len() > 1 {
            let mut combined = member.to_vec();
            or_into(&mut combined, ancestors);
            self.closure.contract(&outputs, &combined)?;
        }
        Ok(())
    }

    /// Merges clusters and lone nodes that share an operand, in the order of those operands.
    fn merge_siblings(&mut self) -> Result<()> {
        let n_clusters = self.clusters.len();
        self.add_lone_nodes()?;
        self.closure.settle(self.clusters.len())?;
        let mut merged_into: Vec<u32> = (0..self.clusters.len() as u32).collect();
        let mut is_target = vec![false; self.clusters.len()];
        // For each cluster the number of the last merging for which it was tried.
        let mut tried = vec![0; self.clusters.len()];
        let mut n_mergings = 0u32;
        self.firsts = self.clusters.iter().map(|cluster| cluster.outputs[0]).collect();
        let mut done = vec![NONE; self.clusters.len()];
        for (list, siblings) in (0u32..).zip(self.siblings()?) {
            for (position, &sibling) in siblings[..siblings.len() - 1].iter().enumerate() {
                let into = find(&mut merged_into, sibling);
                if std::mem::replace(&mut done[into as usize], list) == list {
                    continue;
                }
                n_mergings += 1;
                tried[into as usize] = n_mergings;
                self.budget.check(self.closure.words() + siblings.len() - position)?;
                let mut merging = self.start_merging(into)?;
                for &other in &siblings[position + 1..] {
                    let other = find(&mut merged_into, other);
                    if std::mem::replace(&mut tried[other as usize], n_mergings) == n_mergings
                        || !self.independent(&merging, other)?
                    {
                        continue;
                    }
                    merged_into[other as usize] = into;
                    is_target[into as usize] = true;
                    self.absorb(&mut merging, other)?;
                }
                self.finish_merging(&merging)?;
            }
        }
        let mut index = 0;
        self.clusters.retain(|_| {
            let keep =
                merged_into[index] == index as u32 && (index < n_clusters || is_target[index]);
            index += 1;
            keep
        });
        Ok(())
    }

    fn add_lone_nodes(&mut self) -> Result<()> {
        for node in 0..self.problem.n_nodes() as u32 {
            if self.group[node as usize] == NONE || self.claimed[node as usize] {
                continue;
            }
            let inputs = self.problem.reads(node).to_vec();
            self.budget.check(8 + inputs.len())?;
            self.clusters.push(Cluster { nodes: vec![node], inputs, outputs: vec![node] });
        }
        Ok(())
    }

    /// Clusters that read the same operand, for each operand that brings siblings together, in
    /// the order in which the operands are first met.
    fn siblings(&self) -> Result<Vec<Vec<u32>>> {
        let mut slot = vec![NONE; self.problem.n_variables()];
        let mut siblings: Vec<Vec<u32>> = Vec::new();
        for (index, cluster) in self.clusters.iter().enumerate() {
            let group = self.group[cluster.nodes[0] as usize];
            self.budget.check(8 * (1 + cluster.inputs.len()))?;
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
        Ok(siblings)
    }

    fn start_merging(&mut self, into: u32) -> Result<Merging> {
        let first = self.clusters[into as usize].outputs[0];
        let (mut members, mut ancestors) = (self.closure.empty_row(), self.closure.empty_row());
        set_bit(&mut members, first);
        self.closure.refresh(first)?;
        or_into(&mut ancestors, self.closure.row(first));
        Ok(Merging { into, firsts: vec![first], members, ancestors })
    }

    /// Whether `other` and the clusters that are being merged are independent of each other. One
    /// output represents a whole cluster: rows were brought up to date when it was contracted.
    fn independent(&mut self, merging: &Merging, other: u32) -> Result<bool> {
        let first = self.firsts[other as usize];
        if has_bit(&merging.ancestors, first) {
            return Ok(false);
        }
        self.closure.refresh(first)?;
        // Usually few clusters are being merged. Where an operand has thousands of readers that
        // depend on one another, whole rows would make this cubic.
        let row = self.closure.row(first);
        // One bit or word for each; the pair itself has been counted.
        self.budget.check(merging.firsts.len().min(self.closure.words()) / 4)?;
        Ok(if merging.firsts.len() < self.closure.words() {
            !merging.firsts.iter().any(|&member| is_in(row, member))
        } else {
            !intersects(row, &merging.members)
        })
    }

    fn absorb(&mut self, merging: &mut Merging, other: u32) -> Result<()> {
        let Cluster { nodes, outputs, .. } = std::mem::take(&mut self.clusters[other as usize]);
        self.budget.check(self.closure.words() + nodes.len() + outputs.len())?;
        merging.firsts.push(outputs[0]);
        set_bit(&mut merging.members, outputs[0]);
        or_into(&mut merging.ancestors, self.closure.row(outputs[0]));
        let target = &mut self.clusters[merging.into as usize];
        target.nodes.extend(nodes);
        target.outputs.extend(outputs);
        Ok(())
    }

    fn finish_merging(&mut self, merging: &Merging) -> Result<()> {
        if merging.firsts.len() > 1 {
            let outputs = &self.clusters[merging.into as usize].outputs;
            self.closure.contract(outputs, &merging.ancestors)?;
        }
        Ok(())
    }
}
