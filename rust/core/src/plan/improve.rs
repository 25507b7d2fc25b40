//! Further merges, until none is left: the largest saving of arrays first.
//!
//! # Problem
//! A greedy order leaves clusters behind that could still be merged: its own rules kept them
//! apart, or it never compared them. Each such merge saves a kernel and adds no array.
//!
//! # Approach
//! A heap of pairs of clusters that could be merged if no path leads through a third, with the
//! arrays that their merging saves. The quotient graph is kept in a topological order, so that the
//! question is answered by a search of what stands between the two ([`crate::quotient`]).
//!
//! A merge changes the savings of every pair of its neighborhood. They are not kept up to date: a
//! pair is evaluated again when its turn comes, and goes back if it has become worse. A pair that is
//! refused is asked about again when one of the two has changed; a path between them cannot vanish
//! before.
//!
//! # Rejected
//! Pushing all pairs of a cluster again after each of its merges, with exact savings: where a
//! variable has many readers, that takes most of the time, for the same plans.
//!
//! # Source
//! K. Kennedy, "Fast greedy weighted fusion", International Journal of Parallel Programming 29
//! (2001): greedy fusion along the heaviest edge first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::partition::Partition;
use super::problem::{FusionProblem, NONE, VarId};
use crate::error::Result;
use crate::graph::NodeId;
use crate::interrupt;
use crate::quotient::Quotient;

/// Of the clusters that share an operand, each is compared with this many that follow it in the
/// order of their ids; when nothing is left to merge, with the larger number.
const FEW_SIBLINGS: usize = 4;
const MANY_SIBLINGS: usize = 32;

/// Merges clusters of `partition` while that is legal, they are connected, and `effort` is left:
/// units of work, each about a comparison of two operands or a block visited by a search. Returns
/// the partition and whether the effort sufficed: if so, no two connected clusters can be merged any
/// more, among those that were compared.
///
/// # Complexity
/// O(k log k) heap operations for k pairs of neighboring clusters, each with a search between the
/// two; near-linear on local graphs, and bounded by `effort`.
///
/// # Errors
/// [`crate::Error::Cycle`] if the quotient graph of `partition` has one.
pub fn improve(
    problem: &FusionProblem,
    partition: Partition,
    effort: u64,
) -> Result<(Partition, bool)> {
    let mut merger = Merger::new(problem, &partition, effort)?;
    merger.push_producers();
    let mut saw_all = merger.push_siblings(0, FEW_SIBLINGS);
    merger.run()?;
    while !saw_all && merger.effort > 0 {
        let n_merges = merger.n_merges;
        saw_all = merger.push_siblings(FEW_SIBLINGS, MANY_SIBLINGS);
        merger.run()?;
        if merger.n_merges == n_merges {
            break;
        }
    }
    Ok(merger.finish(partition))
}

/// What a cluster reads and writes.
#[derive(Debug, Clone, Default)]
struct Operands {
    /// Variables read from outside, ascending, each with the number of members that read it.
    inputs: Vec<(VarId, u32)>,
    /// Members' results that are read outside, ascending.
    outputs: Vec<VarId>,
}

/// What two clusters have less together than each by itself.
#[derive(Debug, Clone, Copy, Default)]
struct Overlap {
    arrays: u32,
    operands: usize,
}

impl Operands {
    fn count(&self) -> usize {
        self.inputs.len() + self.outputs.len()
    }

    /// How many members read the input `variable`, if it is one.
    fn readers_of(&self, variable: VarId) -> Option<u32> {
        let position = self.inputs.binary_search_by_key(&variable, |&(input, _)| input).ok()?;
        Some(self.inputs[position].1)
    }
}

/// A pair of clusters, smaller id first; the greatest saves most, then has the smallest ids.
type Pair = (u32, Reverse<(u32, u32)>);

struct Merger<'a> {
    problem: &'a FusionProblem,
    quotient: Quotient,
    /// Group of each cluster, [`NONE`] for nodes that cannot be in one.
    group: Vec<u32>,
    operands: Vec<Operands>,
    /// Counts the merges that a cluster has been through.
    version: Vec<u32>,
    /// Readers outside its own cluster of each variable; being a result counts as one.
    readers: Vec<u32>,
    heap: BinaryHeap<Pair>,
    /// Clusters with which a cluster was not allowed to merge as they were.
    refused: Vec<Vec<u32>>,
    /// For refused pairs the versions of the two then.
    refused_at: FxHashMap<(u32, u32), (u32, u32)>,
    n_merges: usize,
    effort: u64,
}

impl<'a> Merger<'a> {
    fn new(problem: &'a FusionProblem, partition: &Partition, effort: u64) -> Result<Self> {
        let names: Vec<NodeId> = partition.names().collect();
        let mut dense = vec![NONE; problem.n_nodes()];
        for (&name, id) in names.iter().zip(0u32..) {
            dense[name as usize] = id;
        }
        let blocks: Vec<u32> =
            partition.blocks().iter().map(|&name| dense[name as usize]).collect();
        let mut merger = Self {
            problem,
            quotient: Quotient::from_blocks(problem.graph(), &blocks)?,
            group: names.iter().map(|&name| problem.group(name).unwrap_or(NONE)).collect(),
            operands: vec![Operands::default(); names.len()],
            version: vec![0; names.len()],
            readers: vec![0; problem.n_variables()],
            heap: BinaryHeap::new(),
            refused: vec![Vec::new(); names.len()],
            refused_at: FxHashMap::default(),
            n_merges: 0,
            effort,
        };
        let mut reads = Vec::new();
        for (&name, id) in names.iter().zip(0u32..) {
            if merger.group[id as usize] != NONE {
                merger.operands[id as usize] = merger.read_operands(partition, name, &mut reads);
            }
        }
        Ok(merger)
    }

    fn finish(mut self, partition: Partition) -> (Partition, bool) {
        let is_complete = self.effort > 0;
        (if self.n_merges == 0 { partition } else { self.partition() }, is_complete)
    }

    /// What the block named `name` reads and writes; `reads` is scratch space.
    fn read_operands(
        &mut self,
        partition: &Partition,
        name: NodeId,
        reads: &mut Vec<VarId>,
    ) -> Operands {
        let problem = self.problem;
        reads.clear();
        let mut outputs = Vec::with_capacity(1);
        for &node in partition.members(name) {
            let operands = problem.inputs(node);
            for (position, &variable) in operands.iter().enumerate() {
                let owner = problem.owner(variable);
                let inside = owner != NONE && partition.block(owner) == name;
                if !inside && !operands[..position].contains(&variable) {
                    reads.push(variable);
                }
            }
            let output = problem.output(node);
            let outside =
                problem.clients(output).iter().filter(|&&c| partition.block(c) != name).count();
            let readers = outside as u32 + u32::from(problem.is_result(output));
            self.readers[output as usize] = readers;
            if readers > 0 {
                outputs.push(output);
            }
        }
        reads.sort_unstable();
        outputs.sort_unstable();
        let runs = || reads.chunk_by(|a, b| a == b);
        let mut inputs = Vec::with_capacity(runs().count());
        inputs.extend(runs().map(|run| (run[0], run.len() as u32)));
        Operands { inputs, outputs }
    }

    /// Pushes the pairs of clusters of which one reads the other.
    fn push_producers(&mut self) {
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for block in 0..self.group.len() as u32 {
            let group = self.group[block as usize];
            for &(variable, _) in &self.operands[block as usize].inputs {
                let owner = self.problem.owner(variable);
                if owner != NONE && self.problem.group(owner) == Some(group) {
                    let producer = self.quotient.block_of(owner);
                    pairs.push((producer.min(block), producer.max(block)));
                }
            }
        }
        self.push_pairs(pairs);
    }

    /// Pushes pairs of clusters that share an operand: for each operand that more than `few` others
    /// read, of each cluster with `many` others. Returns whether those were all.
    fn push_siblings(&mut self, few: usize, many: usize) -> bool {
        let mut readers: Vec<(VarId, u32)> = Vec::new();
        for block in 0..self.group.len() as u32 {
            for &(variable, _) in &self.operands[block as usize].inputs {
                if self.problem.link(variable) == Some(self.group[block as usize]) {
                    readers.push((variable, block));
                }
            }
        }
        readers.sort_unstable();
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        let mut saw_all = true;
        for run in readers.chunk_by(|a, b| a.0 == b.0).filter(|run| run.len() > few + 1) {
            saw_all &= run.len() <= many + 1;
            for (i, &(_, first)) in run.iter().enumerate() {
                let others = &run[i + 1..run.len().min(i + 1 + many)];
                pairs.extend(others.iter().map(|&(_, second)| (first, second)));
            }
        }
        self.push_pairs(pairs);
        saw_all
    }

    fn push_pairs(&mut self, mut pairs: Vec<(u32, u32)>) {
        pairs.sort_unstable();
        pairs.dedup();
        for (a, b) in pairs {
            if self.effort == 0 || interrupt::is_requested(16) {
                return;
            }
            self.push(a, b);
        }
    }

    fn push(&mut self, a: u32, b: u32) {
        let (a, b) = (a.min(b), a.max(b));
        let saved = self.overlap(a, b).arrays;
        self.heap.push((saved, Reverse((a, b))));
    }

    fn run(&mut self) -> Result<()> {
        while self.effort > 0
            && let Some((saved, Reverse(pair))) = self.heap.pop()
        {
            let (a, b) = (self.quotient.find(pair.0), self.quotient.find(pair.1));
            let (a, b) = (a.min(b), a.max(b));
            interrupt::check(16)?;
            let versions = (self.version[a as usize], self.version[b as usize]);
            if a == b || self.refused_at.get(&(a, b)) == Some(&versions) {
                continue;
            }
            if versions != (0, 0) {
                let now = self.overlap(a, b).arrays;
                if now < saved {
                    self.heap.push((now, Reverse((a, b))));
                    continue;
                }
            }
            if self.fits(a, b) && self.can_merge(a, b) {
                self.merge(a, b)?;
            } else {
                self.refused_at.insert((a, b), versions);
                self.refused[a as usize].push(b);
                self.refused[b as usize].push(a);
            }
        }
        Ok(())
    }

    /// What the two have less together than each by itself; linear in the smaller one.
    fn overlap(&mut self, a: u32, b: u32) -> Overlap {
        let count = |block: u32| self.operands[block as usize].count();
        let (small, large) = if count(a) <= count(b) { (a, b) } else { (b, a) };
        let (from, into) = (&self.operands[small as usize], &self.operands[large as usize]);
        self.effort = self.effort.saturating_sub(1 + from.count() as u64);
        // The loops that compare clusters ask.
        interrupt::is_requested(from.count());
        let mut overlap = Overlap::default();
        let mut read_inside = |variable: VarId, readers: u32| {
            // The result is read no more, and not written either once all its readers are inside.
            let gone = 1 + u32::from(self.readers[variable as usize] == readers);
            overlap.arrays += gone;
            overlap.operands += gone as usize;
        };
        for &(variable, readers) in &from.inputs {
            let owner = self.problem.owner(variable);
            if owner != NONE && self.quotient.block_of(owner) == large {
                read_inside(variable, readers);
            }
        }
        for &variable in &from.outputs {
            if let Some(readers) = into.readers_of(variable) {
                read_inside(variable, readers);
            }
        }
        for &(variable, _) in &from.inputs {
            if into.readers_of(variable).is_some() {
                overlap.arrays += u32::from(!self.problem.is_constant(variable));
                overlap.operands += 1;
            }
        }
        overlap
    }

    /// Whether the two together keep the operand limit.
    fn fits(&mut self, a: u32, b: u32) -> bool {
        let limit = self.problem.max_operands();
        let separate = self.operands[a as usize].count() + self.operands[b as usize].count();
        separate <= limit || separate - self.overlap(a, b).operands <= limit
    }

    /// Whether no path leads from one to the other through a third; the search counts as effort.
    fn can_merge(&mut self, a: u32, b: u32) -> bool {
        let before = self.quotient.n_visited();
        let answer = self.quotient.can_merge(a, b);
        let n_visited = self.quotient.n_visited() - before;
        self.effort = self.effort.saturating_sub(n_visited);
        interrupt::is_requested(16 * n_visited as usize);
        answer
    }

    fn merge(&mut self, a: u32, b: u32) -> Result<()> {
        let merged = self.merged(a, b);
        let block = self.quotient.merge(a, b)?;
        let dead = if block == a { b } else { a };
        self.operands[dead as usize] = Operands::default();
        self.operands[block as usize] = merged;
        self.version[block as usize] += 1;
        self.n_merges += 1;
        let mut again = std::mem::take(&mut self.refused[a as usize]);
        again.append(&mut self.refused[b as usize]);
        again.iter_mut().for_each(|other| *other = self.quotient.find(*other));
        again.sort_unstable();
        again.dedup();
        for other in again {
            if other != block {
                self.push(block, other);
            }
        }
        Ok(())
    }

    /// Operands of the two as one; takes note of the readers that are now inside.
    fn merged(&mut self, a: u32, b: u32) -> Operands {
        let first = std::mem::take(&mut self.operands[a as usize]);
        let second = std::mem::take(&mut self.operands[b as usize]);
        let mut inputs = Vec::with_capacity(first.inputs.len() + second.inputs.len());
        for (variable, count) in union(&first.inputs, &second.inputs) {
            let owner = self.problem.owner(variable);
            let owner = if owner == NONE { NONE } else { self.quotient.block_of(owner) };
            if owner == a || owner == b {
                self.readers[variable as usize] -= count;
            } else {
                inputs.push((variable, count));
            }
        }
        let mut outputs = first.outputs;
        outputs.extend(second.outputs);
        outputs.retain(|&variable| self.readers[variable as usize] > 0);
        outputs.sort_unstable();
        Operands { inputs, outputs }
    }

    fn partition(&mut self) -> Partition {
        let n_nodes = self.problem.n_nodes() as u32;
        Partition::from_names((0..n_nodes).map(|node| self.quotient.block_of(node)).collect())
    }
}

/// The union of two ascending lists, counts of equal entries added.
fn union<'a>(
    first: &'a [(VarId, u32)],
    second: &'a [(VarId, u32)],
) -> impl Iterator<Item = (VarId, u32)> + 'a {
    let (mut i, mut j) = (0, 0);
    std::iter::from_fn(move || match (first.get(i), second.get(j)) {
        (Some(&a), Some(&b)) if a.0 == b.0 => {
            (i, j) = (i + 1, j + 1);
            Some((a.0, a.1 + b.1))
        }
        (Some(&a), b) if b.is_none_or(|b| a.0 < b.0) => {
            i += 1;
            Some(a)
        }
        (_, Some(&b)) => {
            j += 1;
            Some(b)
        }
        _ => None,
    })
}
