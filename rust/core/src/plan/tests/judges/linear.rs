//! Legality and costs of plans, in linear time and from the arrays alone: nothing here uses the
//! code under test to interpret a problem.

use std::collections::BTreeSet;

use crate::plan::{Cost, Partition, ProblemArrays};

/// Judges plans of one problem, in linear time for each.
pub(in crate::plan) struct Judge<'a> {
    arrays: &'a ProblemArrays,
    owner: Vec<Option<usize>>,
    readers: Vec<BTreeSet<usize>>,
    edges: Vec<(usize, usize)>,
}

impl<'a> Judge<'a> {
    pub(in crate::plan) fn new(arrays: &'a ProblemArrays) -> Self {
        let mut owner = vec![None; arrays.n_variables];
        let mut readers = vec![BTreeSet::new(); arrays.n_variables];
        let mut edges: Vec<(usize, usize)> = Vec::new();
        for node in 0..arrays.groups.len() {
            for &variable in arrays.outputs.row(node as u32) {
                owner[variable as usize] = Some(node);
            }
            for &variable in arrays.inputs.row(node as u32) {
                readers[variable as usize].insert(node);
                edges.extend(owner[variable as usize].map(|source| (source, node)));
            }
        }
        edges.extend(arrays.orderings.iter().map(|&(a, b)| (a as usize, b as usize)));
        Self { arrays, owner, readers, edges }
    }

    /// The cost of the partition. Panics unless it is a legal plan.
    pub(in crate::plan) fn cost(&self, partition: &Partition) -> Cost {
        let arrays = self.arrays;
        let mut cost = Cost::default();
        for name in partition.names() {
            let members: Vec<usize> =
                partition.members(name).iter().map(|&node| node as usize).collect();
            let group = arrays.groups[members[0]];
            assert!(members.iter().all(|&node| arrays.groups[node] == group), "{members:?}");
            if group < 0 {
                assert_eq!(members.len(), 1);
                continue;
            }
            let within: BTreeSet<usize> = members.iter().copied().collect();
            let mut read: BTreeSet<u32> = BTreeSet::new();
            let mut n_written = 0;
            for &node in &members {
                let operands = arrays.inputs.row(node as u32).iter().copied();
                let is_outside = |variable: &u32| {
                    self.owner[*variable as usize].is_none_or(|owner| !within.contains(&owner))
                };
                read.extend(operands.filter(is_outside));
                let output = arrays.outputs.row(node as u32)[0] as usize;
                let is_needed = arrays.results[output]
                    || self.readers[output].iter().any(|reader| !within.contains(reader));
                n_written += usize::from(is_needed);
            }
            let constants = read.iter().filter(|&&variable| arrays.constants[variable as usize]);
            cost.kernels += 1;
            cost.arrays += (read.len() - constants.count() + n_written) as u64;
            if members.len() > 1 {
                assert!(read.len() + n_written <= arrays.max_operands as usize, "{members:?}");
                self.check_connected(&members, &within);
            }
        }
        self.check_acyclic(partition);
        cost
    }

    fn check_connected(&self, members: &[usize], within: &BTreeSet<usize>) {
        let group = self.arrays.groups[members[0]];
        let mut reached = BTreeSet::from([members[0]]);
        let mut read: BTreeSet<u32> = BTreeSet::new();
        let mut stack = vec![members[0]];
        while let Some(node) = stack.pop() {
            let mut near: Vec<usize> = Vec::new();
            for &variable in self.arrays.inputs.row(node as u32) {
                near.extend(self.owner[variable as usize]);
                if self.arrays.links[variable as usize] == group && read.insert(variable) {
                    near.extend(&self.readers[variable as usize]);
                }
            }
            for &variable in self.arrays.outputs.row(node as u32) {
                near.extend(&self.readers[variable as usize]);
            }
            let fresh = near.into_iter().filter(|n| within.contains(n) && reached.insert(*n));
            stack.extend(fresh.collect::<Vec<_>>());
        }
        assert_eq!(reached.len(), members.len(), "{members:?} is not connected");
    }

    /// Removes the blocks, each when no remaining block leads to it.
    fn check_acyclic(&self, partition: &Partition) {
        let block = |node: usize| partition.block(node as u32) as usize;
        let n_nodes = self.arrays.groups.len();
        let (mut n_before, mut after) = (vec![0; n_nodes], vec![Vec::new(); n_nodes]);
        for &(a, b) in self.edges.iter().filter(|&&(a, b)| block(a) != block(b)) {
            n_before[block(b)] += 1;
            after[block(a)].push(block(b));
        }
        let mut free: Vec<usize> =
            (0..n_nodes).filter(|&node| block(node) == node && n_before[node] == 0).collect();
        let mut n_done = 0;
        while let Some(next) = free.pop() {
            n_done += 1;
            for &other in &after[next] {
                n_before[other] -= 1;
                if n_before[other] == 0 {
                    free.push(other);
                }
            }
        }
        assert_eq!(n_done, partition.names().count(), "the kernels make a cycle");
    }
}
