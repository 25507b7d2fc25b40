//! Growth from the sinks compared with PyTensor's algorithm in its original form: a set of
//! ancestors for every node, all of which are scanned at each contraction.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::problems::families::families;
use super::problems::random::{Random, SHAPES, random_arrays};
use crate::budget::Budget;
use crate::plan::search::sinks::grow_from_sinks;
use crate::plan::{FusionProblem, NONE, Partition, ProblemArrays};

/// A set of nodes that compares as the number whose bits are its nodes.
type Bits = BTreeSet<Reverse<usize>>;

fn bits(nodes: impl IntoIterator<Item = usize>) -> Bits {
    nodes.into_iter().map(Reverse).collect()
}

/// The larger of two numbers has the largest bit that only one has.
fn number(set: &Bits) -> Vec<usize> {
    set.iter().map(|node| node.0).collect()
}

/// A cluster, or a node that may be merged with siblings.
#[derive(Clone)]
struct Group {
    members: Bits,
    inputs: Vec<u32>,
    outputs: Vec<usize>,
}

/// `FusionOptimizer.apply` of PyTensor 3.3 on the arrays, with the names of its variables there.
struct Stock<'a> {
    arrays: &'a ProblemArrays,
    candidates: Vec<bool>,
    owner: Vec<Option<usize>>,
    readers: Vec<BTreeSet<usize>>,
    ancestors: Vec<Bits>,
    claimed: Vec<bool>,
}

impl<'a> Stock<'a> {
    fn new(arrays: &'a ProblemArrays, keep: &[bool]) -> Self {
        let n_nodes = arrays.groups.len();
        let mut owner: Vec<Option<usize>> = vec![None; arrays.n_variables];
        let mut readers = vec![BTreeSet::new(); arrays.n_variables];
        let mut ancestors: Vec<Bits> = Vec::new();
        for node in 0..n_nodes {
            let mut own = bits([node]);
            for &variable in arrays.inputs.row(node as u32) {
                readers[variable as usize].insert(node);
                if let Some(source) = owner[variable as usize] {
                    own.extend(ancestors[source].clone());
                }
            }
            for &variable in arrays.outputs.row(node as u32) {
                owner[variable as usize] = Some(node);
            }
            ancestors.push(own);
        }
        let candidates = (0..n_nodes).map(|node| arrays.groups[node] >= 0 && keep[node]).collect();
        let claimed = vec![false; n_nodes];
        Self { arrays, candidates, owner, readers, ancestors, claimed }
    }

    fn output(&self, node: usize) -> usize {
        self.arrays.outputs.row(node as u32)[0] as usize
    }

    /// Whether a client is among the `fuseable_clients` of a node that it reads.
    fn fuseable(&self, node: usize, client: usize) -> bool {
        [node, client].iter().all(|&n| self.candidates[n] && !self.claimed[n])
            && self.arrays.groups[node] == self.arrays.groups[client]
    }

    fn contract(&mut self, members: &Bits, combined: &Bits) {
        for own in &mut self.ancestors {
            if !own.is_disjoint(members) {
                own.extend(combined.iter().copied());
            }
        }
    }

    fn grow(&mut self, start: usize) -> Option<Group> {
        // Ancestors first, the largest number first; then clients, the smallest first.
        let key = |stock: &Self, node: usize, is_ancestor: bool| {
            let set = number(&stock.ancestors[node]);
            if is_ancestor {
                (0, Some(Reverse(set)), None, node)
            } else {
                (1, None, Some(set), node)
            }
        };
        let mut queue = vec![key(self, start, true)];
        let mut nodes: Vec<usize> = Vec::new();
        let (mut unfuseable_ancestors, mut unfuseable_clients) = (Bits::new(), Bits::new());
        while let Some((position, _)) = queue.iter().enumerate().min_by_key(|&(_, key)| key) {
            let (rank, _, _, node) = queue.swap_remove(position);
            let is_ancestor = rank == 0;
            let is_turned_away = if is_ancestor {
                unfuseable_ancestors.contains(&Reverse(node))
            } else {
                !self.ancestors[node].is_disjoint(&unfuseable_clients)
            };
            if nodes.contains(&node) || is_turned_away {
                continue;
            }
            nodes.push(node);
            for &variable in self.arrays.inputs.row(node as u32) {
                let Some(source) = self.owner[variable as usize] else { continue };
                if !is_ancestor && nodes.contains(&source) {
                    continue;
                }
                if self.fuseable(source, node) {
                    queue.push(key(self, source, true));
                } else {
                    unfuseable_ancestors.extend(self.ancestors[source].clone());
                }
            }
            for &client in &self.readers[self.output(node)] {
                if is_ancestor && nodes.contains(&client) {
                    continue;
                }
                if self.fuseable(node, client) {
                    queue.push(key(self, client, false));
                } else {
                    unfuseable_clients.insert(Reverse(client));
                }
            }
        }
        if nodes.len() < 2 {
            return None;
        }
        let members = bits(nodes.iter().copied());
        let is_member = |node: usize| members.contains(&Reverse(node));
        let mut inputs: Vec<u32> = Vec::new();
        for &variable in nodes.iter().flat_map(|&node| self.arrays.inputs.row(node as u32)) {
            let is_inside = self.owner[variable as usize].is_some_and(is_member);
            if !is_inside && !inputs.contains(&variable) {
                inputs.push(variable);
            }
        }
        let leaves = |&node: &usize| {
            let (output, readers) = (self.output(node), &self.readers[self.output(node)]);
            self.arrays.results[output]
                || readers.is_empty()
                || readers.iter().any(|&reader| !is_member(reader))
        };
        let outputs: Vec<usize> = nodes.iter().copied().filter(leaves).collect();
        nodes.iter().for_each(|&node| self.claimed[node] = true);
        if outputs.len() > 1 {
            let combined = members.union(&unfuseable_ancestors).copied().collect();
            self.contract(&members, &combined);
        }
        Some(Group { members, inputs, outputs })
    }

    fn plan(mut self) -> Partition {
        let n_nodes = self.candidates.len();
        let mut groups = Vec::new();
        for start in (0..n_nodes).rev() {
            let has_client = |stock: &Self| {
                let mut readers = stock.readers[stock.output(start)].iter();
                readers.any(|&client| stock.fuseable(start, client))
            };
            if self.candidates[start] && !self.claimed[start] && !has_client(&self) {
                groups.extend(self.grow(start));
            }
        }
        for node in (0..n_nodes).filter(|&node| self.candidates[node] && !self.claimed[node]) {
            let mut inputs: Vec<u32> = Vec::new();
            for &variable in self.arrays.inputs.row(node as u32) {
                if !inputs.contains(&variable) {
                    inputs.push(variable);
                }
            }
            groups.push(Group { members: bits([node]), inputs, outputs: vec![node] });
        }
        self.merge(&mut groups);
        let mut names = vec![NONE; n_nodes];
        for (group, name) in groups.iter().zip(0u32..) {
            group.members.iter().for_each(|node| names[node.0] = name);
        }
        Partition::from_names(names)
    }

    /// Merges siblings; groups that were merged into others are empty afterwards.
    fn merge(&mut self, groups: &mut [Group]) {
        let mut lists: Vec<(u32, Vec<usize>)> = Vec::new();
        for (index, group) in groups.iter().enumerate() {
            let own = self.arrays.groups[group.outputs[0]];
            let links = |variable: &&u32| self.arrays.links[**variable as usize] == own;
            for &variable in group.inputs.iter().filter(links) {
                match lists.iter_mut().find(|list| list.0 == variable) {
                    Some((_, list)) => list.push(index),
                    None => lists.push((variable, vec![index])),
                }
            }
        }
        let mut merged_into: Vec<usize> = (0..groups.len()).collect();
        let canonical = |merged_into: &[usize], mut index: usize| {
            while merged_into[index] != index {
                index = merged_into[index];
            }
            index
        };
        for (_, list) in lists {
            for (position, &first) in list.iter().enumerate() {
                let into = canonical(&merged_into, first);
                for &other in &list[position + 1..] {
                    let other = canonical(&merged_into, other);
                    let depends = |a: &Group, b: &Group| {
                        !self.ancestors[b.outputs[0]].is_disjoint(&a.members)
                    };
                    if other == into
                        || depends(&groups[into], &groups[other])
                        || depends(&groups[other], &groups[into])
                    {
                        continue;
                    }
                    let Group { members, outputs, .. } = groups[other].clone();
                    groups[other].members.clear();
                    merged_into[other] = into;
                    groups[into].members.extend(members);
                    groups[into].outputs.extend(outputs);
                    let outputs = groups[into].outputs.iter();
                    let combined = outputs.flat_map(|&node| self.ancestors[node].clone()).collect();
                    self.contract(&groups[into].members.clone(), &combined);
                }
            }
        }
    }
}

fn compare(arrays: &ProblemArrays, keep: &[bool]) {
    let problem = FusionProblem::new(arrays.clone(), &Budget::unlimited()).unwrap();
    let grown =
        grow_from_sinks(&problem, |node| keep[node as usize], &Budget::unlimited()).unwrap();
    assert_eq!(grown, Stock::new(arrays, keep).plan(), "{arrays:?} {keep:?}");
}

fn compare_random(seed: u64, n_problems: usize, sizes: std::ops::Range<usize>) {
    let mut random = Random(seed);
    for number in 0..n_problems {
        let n_nodes = sizes.start + random.below(sizes.len());
        let mut arrays = random_arrays(&mut random, n_nodes, SHAPES[number % SHAPES.len()]);
        // PyTensor's tests ignore orderings.
        arrays.orderings.clear();
        let percent = [100, 80, 50][number % 3];
        let keep: Vec<bool> = (0..n_nodes).map(|_| random.percent(percent)).collect();
        compare(&arrays, &keep);
    }
}

#[test]
fn growth_is_that_of_pytensor_on_small_problems() {
    compare_random(11, 4000, 2..40);
}

#[test]
fn growth_is_that_of_pytensor_beyond_a_word() {
    compare_random(12, 40, 60..220);
}

#[test]
fn growth_is_that_of_pytensor_on_adversarial_families() {
    for (_, mut arrays) in families(70, 1024) {
        arrays.orderings.clear();
        let keep = vec![true; arrays.groups.len()];
        compare(&arrays, &keep);
    }
}
