//! Legality and costs of plans in little code; and the best of all partitions of a small problem.
//!
//! Nothing here uses the code under test to interpret a problem: owners, readers, connections and
//! cycles are found from the arrays.

use std::collections::BTreeSet;

use crate::plan::{Cost, Partition, ProblemArrays};

/// A problem as a test sees it, from its arrays.
pub(in crate::plan) struct Oracle<'a> {
    arrays: &'a ProblemArrays,
    n_nodes: usize,
    edges: Vec<(usize, usize)>,
    /// Pairs of nodes that connect.
    touches: Vec<Vec<bool>>,
}

impl<'a> Oracle<'a> {
    pub(in crate::plan) fn new(arrays: &'a ProblemArrays) -> Self {
        let n_nodes = arrays.groups.len();
        let nodes = 0..n_nodes;
        let reads = |node: usize| arrays.inputs.row(node as u32);
        let makes = |node: usize| arrays.outputs.row(node as u32);
        let mut edges: Vec<(usize, usize)> =
            arrays.orderings.iter().map(|&(a, b)| (a as usize, b as usize)).collect();
        let mut touches = vec![vec![false; n_nodes]; n_nodes];
        for a in nodes.clone() {
            for b in nodes.clone() {
                let has_data = reads(b).iter().any(|v| makes(a).contains(v));
                if has_data {
                    edges.push((a, b));
                }
                let group = arrays.groups[a];
                let is_sibling = reads(a)
                    .iter()
                    .any(|v| reads(b).contains(v) && arrays.links[*v as usize] == group);
                if group >= 0 && group == arrays.groups[b] && (has_data || is_sibling) {
                    touches[a][b] = true;
                    touches[b][a] = true;
                }
            }
        }
        Self { arrays, n_nodes, edges, touches }
    }

    fn grouped(&self) -> Vec<usize> {
        (0..self.n_nodes).filter(|&node| self.arrays.groups[node] >= 0).collect()
    }

    /// Distinct operands of a kernel, and the number of arrays among them.
    fn operands(&self, members: &BTreeSet<usize>) -> (usize, u64) {
        let arrays = self.arrays;
        let made: BTreeSet<u32> =
            members.iter().flat_map(|&node| arrays.outputs.row(node as u32)).copied().collect();
        let read: BTreeSet<u32> =
            members.iter().flat_map(|&node| arrays.inputs.row(node as u32)).copied().collect();
        let inputs = || read.difference(&made);
        let outputs = made.iter().filter(|&&variable| {
            let is_read = |node| arrays.inputs.row(node as u32).contains(&variable);
            arrays.results[variable as usize]
                || (0..self.n_nodes).any(|node| !members.contains(&node) && is_read(node))
        });
        let outputs: Vec<u32> = outputs.copied().collect();
        let n_read = inputs().filter(|&&v| !arrays.constants[v as usize]).count();
        (inputs().count() + outputs.len(), (n_read + outputs.len()) as u64)
    }

    fn is_connected(&self, members: &BTreeSet<usize>) -> bool {
        let mut reached: BTreeSet<usize> = members.iter().take(1).copied().collect();
        loop {
            let next = members.iter().copied().find(|&node| {
                !reached.contains(&node) && reached.iter().any(|&other| self.touches[other][node])
            });
            match next {
                Some(node) => reached.insert(node),
                None => return reached.len() == members.len(),
            };
        }
    }

    /// Whether the quotient by kernels, all other nodes alone, has no cycle: whether all blocks can
    /// be removed, each when no remaining block leads to it.
    fn is_acyclic(&self, kernels: &[BTreeSet<usize>]) -> bool {
        let mut name: Vec<usize> = (0..self.n_nodes).collect();
        for kernel in kernels {
            for &node in kernel {
                name[node] = *kernel.first().unwrap();
            }
        }
        let mut left: BTreeSet<usize> = name.iter().copied().collect();
        loop {
            let is_free = |block: usize| {
                self.edges
                    .iter()
                    .all(|&(a, b)| name[b] != block || name[a] == block || !left.contains(&name[a]))
            };
            let free: Vec<usize> = left.iter().copied().filter(|&block| is_free(block)).collect();
            if free.is_empty() {
                return left.is_empty();
            }
            free.iter().for_each(|block| {
                left.remove(block);
            });
        }
    }

    fn is_legal(&self, kernels: &[BTreeSet<usize>]) -> bool {
        let limit = self.arrays.max_operands as usize;
        kernels.iter().filter(|kernel| kernel.len() > 1).all(|kernel| {
            let groups: BTreeSet<i32> = kernel.iter().map(|&n| self.arrays.groups[n]).collect();
            groups.len() == 1 && self.operands(kernel).0 <= limit && self.is_connected(kernel)
        }) && self.is_acyclic(kernels)
    }

    fn cost(&self, kernels: &[BTreeSet<usize>]) -> Cost {
        let arrays = kernels.iter().map(|kernel| self.operands(kernel).1).sum();
        Cost { kernels: kernels.len() as u64, arrays }
    }

    /// The kernels of a partition: its blocks of nodes with a group.
    fn kernels(&self, partition: &Partition) -> Vec<BTreeSet<usize>> {
        let names = partition.names().filter(|&name| self.arrays.groups[name as usize] >= 0);
        names
            .map(|name| partition.members(name).iter().map(|&node| node as usize).collect())
            .collect()
    }

    /// Checks that the partition is a legal plan of that cost.
    pub(in crate::plan) fn check(&self, partition: &Partition, cost: Cost) {
        let kernels = self.kernels(partition);
        assert!(self.is_legal(&kernels), "{kernels:?} is not legal");
        assert_eq!(self.cost(&kernels), cost);
        let alone = (0..self.n_nodes as u32).filter(|&n| self.arrays.groups[n as usize] < 0);
        assert!(alone.into_iter().all(|node| partition.members(partition.block(node)).len() == 1));
    }

    /// The least cost over all partitions.
    pub(in crate::plan) fn optimum(&self) -> Cost {
        let mut best = Cost { kernels: u64::MAX, arrays: 0 };
        self.extend(&self.grouped(), &mut Vec::new(), &mut best);
        best
    }

    fn extend(&self, rest: &[usize], kernels: &mut Vec<BTreeSet<usize>>, best: &mut Cost) {
        let Some((&node, rest)) = rest.split_first() else {
            let cost = self.cost(kernels);
            if cost < *best && self.is_legal(kernels) {
                *best = cost;
            }
            return;
        };
        for i in 0..kernels.len() {
            let first = *kernels[i].first().unwrap();
            if self.arrays.groups[first] == self.arrays.groups[node] {
                kernels[i].insert(node);
                self.extend(rest, kernels, best);
                kernels[i].remove(&node);
            }
        }
        kernels.push(BTreeSet::from([node]));
        self.extend(rest, kernels, best);
        kernels.pop();
    }
}
