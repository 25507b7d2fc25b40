//! Further merges, until none is possible: the largest saving of arrays first.
//!
//! # Problem
//! A greedy order leaves clusters behind that could still be merged: its own rules kept them
//! apart, or it never compared them. Each such merge saves a kernel and adds no array.
//!
//! # Approach
//! A heap holds pairs of clusters that could be merged if no path leads through a third, with the
//! arrays that their merge saves. The quotient graph is kept in a topological order, so that a
//! search of the blocks between the two answers this question ([`crate::quotient`]).
//!
//! A merge changes the savings of every pair in its neighborhood. They are not updated: a pair is
//! evaluated again when its turn comes, and returns to the heap if it has become worse. A refused
//! pair is tried again when one of the two has changed; a path between them cannot vanish before.
//!
//! # Rejected
//! Pushing all pairs of a cluster again after each of its merges, with exact savings: where a
//! variable has many readers, that takes most of the time, for the same plans.
//!
//! # Source
//! K. Kennedy, "Fast greedy weighted fusion", International Journal of Parallel Programming 29
//! (2001): greedy fusion along the heaviest edge first.

mod operands;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use crate::budget::Budget;
use crate::error::Result;
use crate::graph::NodeId;
use crate::plan::problem::{FusionProblem, NONE, Partition, VarId};
use crate::quotient::Quotient;
use crate::rows::Rows;
use operands::{Operands, Overlap, union};

/// Each of the clusters that share an operand is compared with this many that follow it in the
/// order of their ids; with the larger number when nothing is left to merge.
const FEW_SIBLINGS: usize = 4;
const MANY_SIBLINGS: usize = 32;

/// The number of refusals at which obsolete ones are first removed.
const TIDY_AT: usize = 1 << 12;

/// Limit on the refusals that are remembered for each cluster.
const REFUSED: usize = 64;

/// Merges clusters of `partition` while that is legal, they are connected, and effort is left. A
/// unit of effort is about a comparison of two operands or a block visited by a search. Returns the
/// partition and whether the effort sufficed: if so, no two connected clusters can be merged any
/// more, among those that were compared.
///
/// # Complexity
/// O(k log k) heap operations for k pairs of neighboring clusters, each with a search between the
/// two; near-linear on local graphs, and bounded by the effort.
///
/// # Errors
/// [`crate::Error::Cycle`] if the quotient graph of `partition` has one;
/// [`crate::Error::Interrupted`].
pub(in crate::plan) fn improve(
    problem: &FusionProblem,
    partition: Partition,
    budget: &Budget,
) -> Result<(Partition, bool)> {
    let mut merger = Merger::new(problem, &partition, budget)?;
    merger.push_producers()?;
    let mut saw_all = merger.push_siblings(0, FEW_SIBLINGS)?;
    merger.run()?;
    while !saw_all && !budget.is_spent() {
        let n_merges = merger.n_merges;
        saw_all = merger.push_siblings(FEW_SIBLINGS, MANY_SIBLINGS)?;
        merger.run()?;
        if merger.n_merges == n_merges {
            break;
        }
    }
    Ok(merger.finish(partition))
}

/// The arrays that a merge saves, and the two clusters, smaller id first. The greatest pair saves
/// most, and then has the smallest ids.
type Pair = (u32, Reverse<(u32, u32)>);

struct Merger<'a> {
    problem: &'a FusionProblem,
    quotient: Quotient,
    /// Group of each cluster, [`NONE`] for nodes that may not be fused.
    group: Vec<u32>,
    operands: Vec<Operands>,
    /// The number of merges of each cluster.
    version: Vec<u32>,
    /// Readers outside its own cluster of each variable; being a result counts as one.
    readers: Vec<u32>,
    heap: BinaryHeap<Pair>,
    /// Clusters with which each cluster could not be merged in their state at the time.
    refused: Vec<Vec<u32>>,
    /// For each refused pair the versions of the two at the time.
    refused_at: FxHashMap<(u32, u32), (u32, u32)>,
    /// The number of refusals at which obsolete ones are removed.
    tidy_at: usize,
    n_merges: usize,
    budget: &'a Budget,
}

impl<'a> Merger<'a> {
    fn new(problem: &'a FusionProblem, partition: &Partition, budget: &'a Budget) -> Result<Self> {
        let names: Vec<NodeId> = partition.names().collect();
        let mut merger = Self {
            problem,
            quotient: Quotient::from_blocks(problem.graph(), &partition.numbers(), budget)?,
            group: names.iter().map(|&name| problem.group(name).unwrap_or(NONE)).collect(),
            operands: vec![Operands::default(); names.len()],
            version: vec![0; names.len()],
            readers: vec![0; problem.n_variables()],
            heap: BinaryHeap::new(),
            refused: vec![Vec::new(); names.len()],
            refused_at: FxHashMap::default(),
            tidy_at: TIDY_AT,
            n_merges: 0,
            budget,
        };
        let mut scratch = Vec::new();
        for (&name, id) in names.iter().zip(0u32..) {
            if merger.group[id as usize] != NONE {
                merger.operands[id as usize] =
                    merger.read_operands(partition, name, &mut scratch)?;
            }
        }
        Ok(merger)
    }

    fn finish(mut self, partition: Partition) -> (Partition, bool) {
        let is_complete = !self.budget.is_spent();
        (if self.n_merges == 0 { partition } else { self.partition() }, is_complete)
    }

    /// The operands of the block named `name`. Records the readers of its results, too.
    fn read_operands(
        &mut self,
        partition: &Partition,
        name: NodeId,
        list: &mut Vec<VarId>,
    ) -> Result<Operands> {
        let problem = self.problem;
        list.clear();
        let mut outputs = Vec::with_capacity(1);
        for &node in partition.members(name) {
            let (reads, output) = (problem.reads(node), problem.output(node));
            let clients = problem.clients(output);
            // This includes sorting the operands.
            self.budget.check(8 * reads.len() + clients.len())?;
            list.extend(reads.iter().copied().filter(|&variable| {
                let owner = problem.owner(variable);
                owner == NONE || partition.block(owner) != name
            }));
            let outside = clients.iter().filter(|&&c| partition.block(c) != name).count();
            let readers = outside as u32 + u32::from(problem.is_result(output));
            self.readers[output as usize] = readers;
            if readers > 0 {
                outputs.push(output);
            }
        }
        list.sort_unstable();
        let runs = || list.chunk_by(|a, b| a == b);
        let mut inputs = Vec::with_capacity(runs().count());
        inputs.extend(runs().map(|run| (run[0], run.len() as u32)));
        Ok(Operands { inputs, outputs })
    }

    /// Pushes the pairs of clusters in which one reads the other.
    fn push_producers(&mut self) -> Result<()> {
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for block in 0..self.group.len() as u32 {
            let group = self.group[block as usize];
            self.budget.check(1 + 4 * self.operands[block as usize].inputs.len())?;
            for &(variable, _) in &self.operands[block as usize].inputs {
                let owner = self.problem.owner(variable);
                if owner != NONE && self.problem.group(owner) == Some(group) {
                    let producer = self.quotient.block_of(owner);
                    pairs.push((producer.min(block), producer.max(block)));
                }
            }
        }
        self.push_pairs(pairs)
    }

    /// Pushes pairs of clusters that share an operand: for each operand that more than `few` others
    /// read, each cluster with the next `many` others. Returns whether these were all.
    fn push_siblings(&mut self, few: usize, many: usize) -> Result<bool> {
        let Self { problem, budget, operands, group, .. } = &*self;
        let readers =
            (0u32..).zip(operands.iter().zip(group)).flat_map(|(block, (own, &group))| {
                let links = own.inputs.iter().map(|&(variable, _)| variable);
                let links = links.filter(move |&variable| problem.link(variable) == Some(group));
                links.map(move |variable| (variable, block))
            });
        let readers = Rows::grouped(problem.n_variables(), readers, budget)?;
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        let mut saw_all = true;
        for variable in 0..problem.n_variables() as VarId {
            let run = readers.row(variable);
            if run.len() <= few + 1 {
                continue;
            }
            saw_all &= run.len() <= many + 1;
            // This includes sorting the pairs.
            budget.check(8 * run.len() * many.min(run.len()))?;
            for (i, &first) in run.iter().enumerate() {
                let others = &run[i + 1..run.len().min(i + 1 + many)];
                pairs.extend(others.iter().map(|&second| (first, second)));
            }
        }
        self.push_pairs(pairs)?;
        Ok(saw_all)
    }

    fn push_pairs(&mut self, mut pairs: Vec<(u32, u32)>) -> Result<()> {
        pairs.sort_unstable();
        pairs.dedup();
        for (a, b) in pairs {
            if self.budget.is_spent() {
                break;
            }
            self.push(a, b)?;
        }
        Ok(())
    }

    fn push(&mut self, a: u32, b: u32) -> Result<()> {
        let (a, b) = (a.min(b), a.max(b));
        let saved = self.overlap(a, b)?.arrays;
        self.heap.push((saved, Reverse((a, b))));
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        while !self.budget.is_spent()
            && let Some((saved, Reverse(pair))) = self.heap.pop()
        {
            let (a, b) = (self.quotient.find(pair.0), self.quotient.find(pair.1));
            let (a, b) = (a.min(b), a.max(b));
            self.budget.check(16)?;
            let versions = (self.version[a as usize], self.version[b as usize]);
            if a == b || self.refused_at.get(&(a, b)) == Some(&versions) {
                continue;
            }
            if versions != (0, 0) {
                let now = self.overlap(a, b)?.arrays;
                if now < saved {
                    self.heap.push((now, Reverse((a, b))));
                    continue;
                }
            }
            if self.fits(a, b)? && self.can_merge(a, b)? {
                self.merge(a, b)?;
            } else {
                self.refuse(a, b)?;
            }
        }
        Ok(())
    }

    /// The arrays and operands that merging the two saves; linear in the smaller one.
    fn overlap(&mut self, a: u32, b: u32) -> Result<Overlap> {
        let count = |block: u32| self.operands[block as usize].count();
        let (small, large) = if count(a) <= count(b) { (a, b) } else { (b, a) };
        let (from, into) = (&self.operands[small as usize], &self.operands[large as usize]);
        self.budget.spend(1 + from.count() as u64);
        // Each operand of the smaller one is looked up in the larger one.
        self.budget.check(8 * (2 + from.count()))?;
        let mut overlap = Overlap::default();
        let mut read_inside = |variable: VarId, readers: u32| {
            // The result is no longer read, nor written if all its readers are inside.
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
        Ok(overlap)
    }

    /// Whether the merged cluster keeps the operand limit.
    fn fits(&mut self, a: u32, b: u32) -> Result<bool> {
        let limit = self.problem.max_operands();
        let separate = self.operands[a as usize].count() + self.operands[b as usize].count();
        Ok(separate <= limit || separate - self.overlap(a, b)?.operands <= limit)
    }

    /// Whether no path leads from one to the other through a third; the search counts as effort.
    fn can_merge(&mut self, a: u32, b: u32) -> Result<bool> {
        let before = self.quotient.n_read();
        let answer = self.quotient.can_merge(a, b, self.budget)?;
        self.budget.spend(self.quotient.n_read() - before);
        Ok(answer)
    }

    /// Records that the two cannot be merged in their current state.
    ///
    /// A block that grows is refused by the same blocks again and again. Obsolete refusals are
    /// removed whenever there are twice as many refusals as after the last removal, so that their
    /// memory is in proportion to the current refusals, and not to all that ever were. If there are
    /// too many, the effort ends.
    fn refuse(&mut self, a: u32, b: u32) -> Result<()> {
        let versions = (self.version[a as usize], self.version[b as usize]);
        self.refused_at.insert((a, b), versions);
        for (block, other) in [(a, b), (b, a)] {
            let Self { quotient, refused, .. } = self;
            let list = &mut refused[block as usize];
            if list.len() == list.capacity() {
                self.budget.check(8 * list.len())?;
                dedup_blocks(quotient, list);
                list.reserve(1 + list.len());
            }
            list.push(other);
        }
        if self.refused_at.len() >= self.tidy_at {
            let Self { quotient, version, refused_at, budget, .. } = self;
            budget.check(16 * refused_at.len())?;
            refused_at.retain(|&(a, b), versions| {
                let is_live = quotient.find(a) == a && quotient.find(b) == b;
                is_live && *versions == (version[a as usize], version[b as usize])
            });
            let most = REFUSED * (1 + self.group.len());
            self.tidy_at = (2 * refused_at.len()).clamp(TIDY_AT, most);
            if refused_at.len() >= most {
                budget.spend(u64::MAX);
            }
        }
        Ok(())
    }

    fn merge(&mut self, a: u32, b: u32) -> Result<()> {
        let merged = self.merged(a, b)?;
        let block = self.quotient.merge(a, b, self.budget)?;
        let dead = if block == a { b } else { a };
        self.operands[dead as usize] = Operands::default();
        self.operands[block as usize] = merged;
        self.version[block as usize] += 1;
        self.n_merges += 1;
        let mut again = std::mem::take(&mut self.refused[a as usize]);
        again.append(&mut self.refused[b as usize]);
        self.budget.check(8 * again.len())?;
        dedup_blocks(&mut self.quotient, &mut again);
        for other in again {
            if other != block {
                self.push(block, other)?;
            }
        }
        Ok(())
    }

    /// Operands of the merged cluster; subtracts the readers that are now inside.
    fn merged(&mut self, a: u32, b: u32) -> Result<Operands> {
        let [first, second] =
            [a, b].map(|block| std::mem::take(&mut self.operands[block as usize]));
        let mut inputs = Vec::with_capacity(first.inputs.len() + second.inputs.len());
        let mut all_are_read = true;
        for (variable, count) in union(&first.inputs, &second.inputs) {
            let owner = self.problem.owner(variable);
            let owner = if owner == NONE { NONE } else { self.quotient.block_of(owner) };
            if owner == a || owner == b {
                let readers = &mut self.readers[variable as usize];
                *readers -= count;
                all_are_read &= *readers > 0;
            } else {
                inputs.push((variable, count));
            }
        }
        let is_larger = first.outputs.len() >= second.outputs.len();
        let (mut outputs, fewer) = if is_larger {
            (first.outputs, second.outputs)
        } else {
            (second.outputs, first.outputs)
        };
        let mut n_read = first.inputs.len() + second.inputs.len() + fewer.len();
        outputs.extend(fewer);
        if !all_are_read {
            n_read += outputs.len();
            outputs.retain(|&variable| self.readers[variable as usize] > 0);
        }
        self.budget.work(n_read)?;
        Ok(Operands { inputs, outputs })
    }

    fn partition(&mut self) -> Partition {
        let n_nodes = self.problem.n_nodes() as u32;
        Partition::from_names((0..n_nodes).map(|node| self.quotient.block_of(node)).collect())
    }
}

/// Replaces blocks by the live blocks that they are part of, each once.
fn dedup_blocks(quotient: &mut Quotient, blocks: &mut Vec<u32>) {
    blocks.iter_mut().for_each(|block| *block = quotient.find(*block));
    blocks.sort_unstable();
    blocks.dedup();
}
