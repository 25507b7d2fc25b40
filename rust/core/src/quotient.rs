//! The quotient of a graph by a partition into blocks, kept acyclic while blocks are merged.
//!
//! # Problem
//! A merge of two blocks makes a cycle exactly when a path leads from one to the other through a
//! third. With a topological order at hand, such a path can only visit blocks that stand between
//! the two, so both the question and the repair of the order stay local on local graphs.
//!
//! # Approach
//! - The question: a two-way search, forward from the earlier block and backward from the later
//!   one, confined to the blocks between them. The side that has scanned fewer edges goes on, so a
//!   hub costs nothing when the other side is small; either side running out settles it.
//! - The repair: what the exhausted side has found moves past the other block, and the merged
//!   block takes that block's place. Constant-time comparisons come from an ordered list, so that
//!   nothing else has to be renumbered.
//! - Adjacency: the blocks' rows are chained on a merge, in constant time, and rid of inner edges
//!   and of duplicates in place when they are next read. Nothing is allocated per call.
//!
//! # Rejected
//! Dense ancestor sets ([`crate::ancestors`]): they answer the question in one word, but take
//! `n^2 / 8` bytes and a pass over all rows per merge.
//!
//! # Source
//! D. Pearce, P. Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", ACM
//! Journal of Experimental Algorithmics 11 (2007), for the search bounded by the order;
//! B. Haeupler, T. Kavitha, R. Mathew, S. Sen, R. Tarjan, "Incremental cycle detection,
//! topological ordering, and strong component maintenance", ACM Transactions on Algorithms 8
//! (2012), for the two-way search and the ordered list.
//!
//! # Examples
//! ```
//! use pytensor_fuse_core::{Budget, Error, Graph, quotient::Quotient};
//!
//! let budget = Budget::unlimited();
//! // 0 -> 1 -> 2 and 0 -> 2: merging 0 with 2 would put 1 both after and before them.
//! let graph = Graph::new(3, &[0, 1, 0], &[1, 2, 2], &budget)?;
//! let mut quotient = Quotient::from_blocks(&graph, &[0, 1, 2], &budget)?;
//! assert!(!quotient.can_merge(0, 2, &budget)?);
//! let block = quotient.merge(0, 1, &budget)?;
//! assert!(quotient.can_merge(block, 2, &budget)?);
//! # Ok::<(), Error>(())
//! ```

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::graph::{Graph, NodeId};
use crate::order::OrderedList;
use crate::rows::Rows;
use crate::toposort::toposort;
use crate::union_find::find;

/// A block: a dense id given by the caller. After a merge either id names the merged block.
pub type BlockId = u32;

const NONE: u32 = u32::MAX;

/// Steps that an entry of a row takes: it is read, looked up and compared with others.
const PER_ENTRY: usize = 8;

/// The way in which edges are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Forward,
    Backward,
}

/// An acyclic quotient graph under merges of blocks, with a topological order of its blocks.
///
/// Methods that take a [`BlockId`] accept any id that ever named a block, and panic on others, as
/// indexing does.
///
/// # Memory
/// About 70 bytes per block and 8 bytes per edge between blocks.
#[derive(Debug, Clone)]
pub struct Quotient {
    n_live: usize,
    /// The block that each node was given first.
    first_block: Vec<BlockId>,
    /// Union-find forest over the blocks; a root is a live block.
    parents: Vec<BlockId>,
    /// Nodes in the block, at roots.
    sizes: Vec<u32>,
    successors: Chains,
    predecessors: Chains,
    /// The live blocks; every edge between two of them goes forward in it.
    order: OrderedList,
    scratch: Scratch,
    n_visited: u64,
    n_read: u64,
}

/// What calls leave behind for the next one to use again.
#[derive(Debug, Clone)]
struct Scratch {
    /// Blocks with `marks[b] == epoch` have been reached forward in the current search, those with
    /// `epoch + 1` backward. Epochs grow by 2.
    marks: Vec<u32>,
    epoch: u32,
    /// Blocks already in the row being read have `seen[b] == row_epoch`.
    seen: Vec<u32>,
    row_epoch: u32,
    row: Vec<BlockId>,
    /// Blocks reached by the last search, first its start.
    ahead: Vec<BlockId>,
    behind: Vec<BlockId>,
    /// The last question and its answer, until a merge.
    last: Option<(BlockId, BlockId, Outcome)>,
}

/// How a search between two blocks ended.
#[derive(Debug, Clone, Copy)]
enum Outcome {
    /// One side ran out: no path. What it reached is complete.
    Free(Way),
    /// A path leads through this block.
    Blocked(BlockId),
}

/// For every live block, the blocks at the other ends of its edges in one direction: a chain of
/// segments of one shared array, headed by the segment with the block's own id.
#[derive(Debug, Clone)]
struct Chains {
    items: Vec<BlockId>,
    starts: Vec<u32>,
    lens: Vec<u32>,
    next: Vec<u32>,
    /// Last segment of a live block's chain.
    tails: Vec<u32>,
    /// Entries in a live block's chain: its degree, or more before the next reading.
    totals: Vec<u32>,
}

impl Chains {
    /// One segment for each row.
    fn new(rows: Rows) -> Self {
        let (offsets, items) = rows.into_parts();
        let n_blocks = offsets.len() - 1;
        let lens: Vec<u32> = offsets.windows(2).map(|pair| pair[1] - pair[0]).collect();
        Self {
            items,
            starts: offsets,
            next: vec![NONE; n_blocks],
            tails: (0..n_blocks as u32).collect(),
            totals: lens.clone(),
            lens,
        }
    }

    /// Appends the chain of `absorbed` to that of `root`, unless there is nothing in it: so at most
    /// every other segment of a chain is empty, and a reading takes as long as what it reads.
    fn append(&mut self, root: BlockId, absorbed: BlockId) {
        if self.totals[absorbed as usize] == 0 {
            return;
        }
        self.next[self.tails[root as usize] as usize] = absorbed;
        self.tails[root as usize] = self.tails[absorbed as usize];
        self.totals[root as usize] += self.totals[absorbed as usize];
    }

    /// Replaces the chain of `block` by `row`, which is not longer.
    fn shrink(&mut self, block: BlockId, row: &[BlockId]) {
        self.totals[block as usize] = row.len() as u32;
        let (mut segment, mut rest) = (block, row);
        loop {
            let start = self.starts[segment as usize] as usize;
            let len = rest.len().min(self.lens[segment as usize] as usize);
            self.items[start..start + len].copy_from_slice(&rest[..len]);
            rest = &rest[len..];
            if rest.is_empty() {
                self.lens[segment as usize] = len as u32;
                self.next[segment as usize] = NONE;
                self.tails[block as usize] = segment;
                return;
            }
            segment = self.next[segment as usize];
        }
    }
}

impl Quotient {
    /// The quotient of `graph` by a partition of its nodes.
    ///
    /// # Arguments
    /// * `blocks`: the block of each node; the ids are dense, `0..n_blocks`.
    ///
    /// # Errors
    /// [`Error::Cycle`] with the blocks of one cycle if the quotient is not acyclic;
    /// [`Error::LengthMismatch`], [`Error::OutOfRange`] and [`Error::Inconsistent`] if `blocks`
    /// has another length than the graph has nodes, or its ids are not dense;
    /// [`Error::Interrupted`].
    ///
    /// # Complexity
    /// That of [`toposort`]; O(n + m) if every edge goes from a smaller to a larger block id.
    pub fn from_blocks(graph: &Graph, blocks: &[BlockId], budget: &Budget) -> Result<Self> {
        let contracted = graph.contracted(blocks, budget)?;
        let n_blocks = contracted.n_nodes();
        let mut sizes = vec![0u32; n_blocks];
        for &block in blocks {
            sizes[block as usize] += 1;
        }
        if let Some(empty) = sizes.iter().position(|&size| size == 0) {
            return Err(Error::Inconsistent(format!(
                "block {empty} of 0..{n_blocks} has no node; block ids must be dense"
            )));
        }
        let order = OrderedList::new(&toposort(&contracted, None, budget)?);
        let [successors, predecessors] = contracted.into_rows().map(Chains::new);
        Ok(Self {
            n_live: n_blocks,
            first_block: blocks.to_vec(),
            parents: (0..n_blocks as BlockId).collect(),
            sizes,
            successors,
            predecessors,
            order,
            scratch: Scratch {
                marks: vec![0; n_blocks],
                epoch: 0,
                seen: vec![0; n_blocks],
                row_epoch: 0,
                row: Vec::new(),
                ahead: Vec::new(),
                behind: Vec::new(),
                last: None,
            },
            n_visited: 0,
            n_read: 0,
        })
    }

    /// Number of live blocks.
    #[must_use]
    pub fn n_blocks(&self) -> usize {
        self.n_live
    }

    /// Number of blocks whose edges have been read so far.
    #[must_use]
    pub fn n_visited(&self) -> u64 {
        self.n_visited
    }

    /// The work done so far: edges that were read, each as often as it was, and the segments that
    /// they are kept in, of which a block has one at least.
    #[must_use]
    pub fn n_read(&self) -> u64 {
        self.n_read
    }

    /// The live block that `block` is now part of.
    pub fn find(&mut self, block: BlockId) -> BlockId {
        find(&mut self.parents, block)
    }

    /// The live block of a node.
    pub fn block_of(&mut self, node: NodeId) -> BlockId {
        find(&mut self.parents, self.first_block[node as usize])
    }

    /// Position of the block in the maintained topological order: a number that only compares
    /// with others, and only until the next merge.
    pub fn position(&mut self, block: BlockId) -> u64 {
        let root = self.find(block);
        self.order.label(root)
    }

    /// The live blocks in the maintained topological order.
    pub fn blocks(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.order.iter()
    }

    /// For each node the number of its block, counted along the maintained topological order:
    /// every edge between two blocks goes from a smaller to a larger number. O(n).
    pub fn partition(&mut self) -> Vec<u32> {
        let mut numbers = vec![0; self.parents.len()];
        for (number, block) in self.order.iter().enumerate() {
            numbers[block as usize] = number as u32;
        }
        (0..self.first_block.len() as NodeId)
            .map(|node| numbers[self.block_of(node) as usize])
            .collect()
    }

    /// Clears `into` and puts the distinct blocks there to which edges lead from `block`.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn successors(
        &mut self,
        block: BlockId,
        into: &mut Vec<BlockId>,
        budget: &Budget,
    ) -> Result<()> {
        self.neighbors(block, Way::Forward, into, budget)
    }

    /// Clears `into` and puts the distinct blocks there from which edges lead to `block`.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn predecessors(
        &mut self,
        block: BlockId,
        into: &mut Vec<BlockId>,
        budget: &Budget,
    ) -> Result<()> {
        self.neighbors(block, Way::Backward, into, budget)
    }

    fn neighbors(
        &mut self,
        block: BlockId,
        way: Way,
        into: &mut Vec<BlockId>,
        budget: &Budget,
    ) -> Result<()> {
        let root = self.find(block);
        self.read_row(root, way, budget)?;
        into.clear();
        into.extend_from_slice(&self.scratch.row);
        Ok(())
    }

    /// Whether the quotient stays acyclic when the two blocks become one: whether no path leads
    /// from one to the other through a third. Edges between the two do not matter, nor does the
    /// order of the arguments.
    ///
    /// # Complexity
    /// Reads the rows of blocks that stand between the two in the order and are reachable from
    /// one of them, about twice as many edges as the side with fewer has; O(m) at worst.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn can_merge(&mut self, first: BlockId, second: BlockId, budget: &Budget) -> Result<bool> {
        let (first, second) = (self.find(first), self.find(second));
        Ok(first == second || matches!(self.outcome(first, second, budget)?.2, Outcome::Free(_)))
    }

    /// Makes the two blocks one and returns its id, one of the two.
    ///
    /// The search of a [`Quotient::can_merge`] about the same two blocks just before is not
    /// repeated.
    ///
    /// # Errors
    /// [`Error::Contraction`] if [`Quotient::can_merge`] is false, [`Error::Interrupted`]; nothing has
    /// changed then.
    ///
    /// # Complexity
    /// That of the search, and O(k log k) for the k blocks that it has to move in the order.
    pub fn merge(&mut self, first: BlockId, second: BlockId, budget: &Budget) -> Result<BlockId> {
        let (first, second) = (self.find(first), self.find(second));
        if first == second {
            return Ok(first);
        }
        let (early, late, outcome) = self.outcome(first, second, budget)?;
        let way = match outcome {
            Outcome::Blocked(through) => return Err(Error::Contraction { through }),
            Outcome::Free(way) => way,
        };
        let place = self.move_out_of_the_way(early, late, way);
        let (root, absorbed) = if self.sizes[early as usize] < self.sizes[late as usize] {
            (late, early)
        } else {
            (early, late)
        };
        self.order.remove(if place == early { late } else { early });
        if place != root {
            self.order.replace(place, root);
        }
        self.parents[absorbed as usize] = root;
        self.sizes[root as usize] += self.sizes[absorbed as usize];
        self.successors.append(root, absorbed);
        self.predecessors.append(root, absorbed);
        self.n_live -= 1;
        self.scratch.last = None;
        Ok(root)
    }

    fn in_order(&self, first: BlockId, second: BlockId) -> (BlockId, BlockId) {
        if self.order.label(first) < self.order.label(second) {
            (first, second)
        } else {
            (second, first)
        }
    }

    /// The two live blocks in order, and how the search between them ends.
    fn outcome(
        &mut self,
        first: BlockId,
        second: BlockId,
        budget: &Budget,
    ) -> Result<(BlockId, BlockId, Outcome)> {
        let (early, late) = self.in_order(first, second);
        match self.scratch.last {
            Some(last) if (last.0, last.1) == (early, late) => Ok(last),
            _ => {
                let answer = (early, late, self.search(early, late, budget)?);
                self.scratch.last = Some(answer);
                Ok(answer)
            }
        }
    }

    /// Searches for a path `early -> .. -> late` of at least two edges, from both ends.
    fn search(&mut self, early: BlockId, late: BlockId, budget: &Budget) -> Result<Outcome> {
        self.next_epoch();
        self.scratch.ahead.clear();
        self.scratch.ahead.push(early);
        self.scratch.behind.clear();
        self.scratch.behind.push(late);
        let (mut ahead_cursor, mut behind_cursor) = (0, 0);
        let (mut ahead_cost, mut behind_cost) = (0u64, 0u64);
        loop {
            let Some(&ahead) = self.scratch.ahead.get(ahead_cursor) else {
                return Ok(Outcome::Free(Way::Forward));
            };
            let Some(&behind) = self.scratch.behind.get(behind_cursor) else {
                return Ok(Outcome::Free(Way::Backward));
            };
            let next_ahead = ahead_cost + u64::from(self.successors.totals[ahead as usize]);
            let next_behind = behind_cost + u64::from(self.predecessors.totals[behind as usize]);
            let met = if next_ahead <= next_behind {
                ahead_cost = next_ahead;
                ahead_cursor += 1;
                self.expand(ahead, early, late, Way::Forward, budget)?
            } else {
                behind_cost = next_behind;
                behind_cursor += 1;
                self.expand(behind, early, late, Way::Backward, budget)?
            };
            if let Some(through) = met {
                return Ok(Outcome::Blocked(through));
            }
        }
    }

    /// Reaches the neighbors of `block` that stand between `early` and `late`; returns a block on a
    /// path through `block` if one shows up.
    fn expand(
        &mut self,
        block: BlockId,
        early: BlockId,
        late: BlockId,
        way: Way,
        budget: &Budget,
    ) -> Result<Option<BlockId>> {
        self.read_row(block, way, budget)?;
        let Self { order, scratch, .. } = self;
        let Scratch { marks, epoch, row, ahead, behind, .. } = scratch;
        let (start, goal, own, other, reached) = match way {
            Way::Forward => (early, late, *epoch, *epoch + 1, ahead),
            Way::Backward => (late, early, *epoch + 1, *epoch, behind),
        };
        let between = order.label(early) + 1..order.label(late);
        for &next in row.iter() {
            if next == goal {
                if block != start {
                    return Ok(Some(block));
                }
                continue;
            }
            if marks[next as usize] == other {
                return Ok(Some(next));
            }
            if marks[next as usize] != own && between.contains(&order.label(next)) {
                marks[next as usize] = own;
                reached.push(next);
            }
        }
        Ok(None)
    }

    /// Makes room for the merged block where one of the two stands, and returns which.
    ///
    /// All that `early` leads to before `late` may follow `late`, since nothing of it leads there;
    /// likewise, all that leads to `late` after `early` may come before `early`.
    fn move_out_of_the_way(&mut self, early: BlockId, late: BlockId, way: Way) -> BlockId {
        let Self { scratch, order, .. } = self;
        match way {
            Way::Forward => {
                let reached = &mut scratch.ahead[1..];
                reached.sort_unstable_by_key(|&block| order.label(block));
                order.move_after(reached, late);
                late
            }
            Way::Backward => {
                let reached = &mut scratch.behind[1..];
                reached.sort_unstable_by_key(|&block| order.label(block));
                order.move_before(reached, early);
                early
            }
        }
    }

    /// Puts the distinct live neighbors of the live block `block` into the scratch row, and
    /// shortens its chain to them if it held more.
    fn read_row(&mut self, block: BlockId, way: Way, budget: &Budget) -> Result<()> {
        self.n_visited += 1;
        let chains = match way {
            Way::Forward => &mut self.successors,
            Way::Backward => &mut self.predecessors,
        };
        budget.check(PER_ENTRY * (1 + chains.totals[block as usize] as usize))?;
        let Scratch { seen, row_epoch, row, .. } = &mut self.scratch;
        if *row_epoch == u32::MAX {
            seen.fill(0);
            *row_epoch = 0;
        }
        *row_epoch += 1;
        row.clear();
        seen[block as usize] = *row_epoch;
        let mut segment = block;
        self.n_read += u64::from(chains.totals[block as usize]);
        while segment != NONE {
            self.n_read += 1;
            let start = chains.starts[segment as usize] as usize;
            let end = start + chains.lens[segment as usize] as usize;
            for &item in &chains.items[start..end] {
                let item = find(&mut self.parents, item);
                if seen[item as usize] != *row_epoch {
                    seen[item as usize] = *row_epoch;
                    row.push(item);
                }
            }
            segment = chains.next[segment as usize];
        }
        if row.len() < chains.totals[block as usize] as usize {
            chains.shrink(block, row);
        }
        Ok(())
    }

    /// Starts a search with all marks void; returns the mark for what it reaches forward.
    fn next_epoch(&mut self) -> u32 {
        let scratch = &mut self.scratch;
        if scratch.epoch >= u32::MAX - 3 {
            scratch.marks.fill(0);
            scratch.epoch = 0;
        }
        scratch.epoch += 2;
        scratch.last = None;
        scratch.epoch
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::testing::{dags, is_acyclic, reachability};
    use proptest::prelude::*;

    fn singletons(graph: &Graph) -> Vec<BlockId> {
        (0..graph.n_nodes() as BlockId).collect()
    }

    /// Whether merging two blocks of a partition leaves the quotient acyclic, from scratch.
    fn naive_can_merge(graph: &Graph, blocks: &[BlockId], a: BlockId, b: BlockId) -> bool {
        let merged: Vec<_> = blocks.iter().map(|&c| if c == b { a } else { c }).collect();
        is_acyclic(&graph.contracted(&merged, &Budget::unlimited()).unwrap())
    }

    /// The invariants that hold between calls.
    fn check(quotient: &mut Quotient, graph: &Graph) {
        let live: Vec<_> = quotient.blocks().collect();
        assert_eq!(live.len(), quotient.n_blocks());
        let blocks: Vec<_> =
            (0..graph.n_nodes() as NodeId).map(|node| quotient.block_of(node)).collect();
        for &block in &live {
            assert_eq!(quotient.find(block), block);
            let mut after: Vec<_> = graph
                .edges()
                .map(|(a, b)| (blocks[a as usize], blocks[b as usize]))
                .filter(|&(a, b)| a == block && b != block)
                .map(|edge| edge.1)
                .collect();
            after.sort_unstable();
            after.dedup();
            let mut row = Vec::new();
            quotient.successors(block, &mut row, &Budget::unlimited()).unwrap();
            row.sort_unstable();
            assert_eq!(row, after);
            quotient.predecessors(block, &mut row, &Budget::unlimited()).unwrap();
            for &other in &row {
                let mut back = Vec::new();
                quotient.successors(other, &mut back, &Budget::unlimited()).unwrap();
                assert!(back.contains(&block));
            }
            for other in after {
                quotient.predecessors(other, &mut row, &Budget::unlimited()).unwrap();
                assert!(row.contains(&block));
            }
        }
        for (a, b) in graph.edges() {
            let (a, b) = (blocks[a as usize], blocks[b as usize]);
            assert!(a == b || quotient.position(a) < quotient.position(b));
        }
        let partition = quotient.partition();
        assert!(graph.edges().all(|(a, b)| partition[a as usize] <= partition[b as usize]));
    }

    #[test]
    fn a_joint_cycle_is_refused() {
        // a1 -> b1, b2 -> a2: {a1, a2} and {b1, b2} are legal alone, but not together.
        let graph = Graph::new(4, &[0, 3], &[1, 2], &Budget::unlimited()).unwrap();
        let mut quotient =
            Quotient::from_blocks(&graph, &singletons(&graph), &Budget::unlimited()).unwrap();
        assert!(quotient.can_merge(1, 3, &Budget::unlimited()).unwrap());
        assert!(quotient.can_merge(0, 2, &Budget::unlimited()).unwrap());
        let block = quotient.merge(0, 2, &Budget::unlimited()).unwrap();
        assert!(!quotient.can_merge(1, 3, &Budget::unlimited()).unwrap());
        assert_eq!(
            quotient.merge(1, 3, &Budget::unlimited()),
            Err(Error::Contraction { through: block })
        );
        check(&mut quotient, &graph);
    }

    #[test]
    fn a_partition_with_a_cycle_is_refused() {
        let graph = Graph::new(4, &[0, 3], &[1, 2], &Budget::unlimited()).unwrap();
        let error = Quotient::from_blocks(&graph, &[0, 1, 0, 1], &Budget::unlimited()).unwrap_err();
        assert_eq!(error, Error::Cycle { nodes: vec![0, 1] });
    }

    #[test]
    fn block_ids_must_be_dense() {
        let graph = Graph::new(3, &[], &[], &Budget::unlimited()).unwrap();
        assert!(matches!(
            Quotient::from_blocks(&graph, &[0, 2, 2], &Budget::unlimited()),
            Err(Error::Inconsistent(_))
        ));
        assert!(matches!(
            Quotient::from_blocks(&graph, &[0, 3, 1], &Budget::unlimited()),
            Err(Error::OutOfRange { .. })
        ));
        assert!(matches!(
            Quotient::from_blocks(&graph, &[0], &Budget::unlimited()),
            Err(Error::LengthMismatch { .. })
        ));
    }

    #[test]
    fn the_empty_graph_has_no_blocks() {
        let graph = Graph::new(0, &[], &[], &Budget::unlimited()).unwrap();
        let mut quotient = Quotient::from_blocks(&graph, &[], &Budget::unlimited()).unwrap();
        assert_eq!(quotient.n_blocks(), 0);
        assert!(quotient.partition().is_empty());
    }

    #[test]
    fn a_hub_is_not_read_when_the_other_side_is_small() {
        // Node 0 feeds all others; each of them alone has no other predecessor.
        let n = 10_000;
        let graph = Graph::new(
            n as usize,
            &vec![0; n as usize - 1],
            &(1..n).collect::<Vec<_>>(),
            &Budget::unlimited(),
        );
        let graph = graph.unwrap();
        let mut quotient =
            Quotient::from_blocks(&graph, &singletons(&graph), &Budget::unlimited()).unwrap();
        for other in (1..n).rev() {
            assert!(quotient.can_merge(0, other, &Budget::unlimited()).unwrap());
        }
        assert_eq!(quotient.n_visited(), u64::from(n) - 1);
        for other in (1..n).rev() {
            quotient.merge(0, other, &Budget::unlimited()).unwrap();
        }
        assert_eq!(quotient.n_blocks(), 1);
        assert!(quotient.n_visited() < 3 * u64::from(n));
    }

    #[test]
    fn a_hub_is_not_read_from_behind_either() {
        // All others feed the last node; each of them alone has no other successor.
        let n = 2000;
        let graph = Graph::new(
            n as usize,
            &(0..n - 1).collect::<Vec<_>>(),
            &vec![n - 1; n as usize - 1],
            &Budget::unlimited(),
        );
        let graph = graph.unwrap();
        let mut quotient =
            Quotient::from_blocks(&graph, &singletons(&graph), &Budget::unlimited()).unwrap();
        for other in 0..n - 1 {
            assert!(quotient.can_merge(other, n - 1, &Budget::unlimited()).unwrap());
        }
        assert_eq!(quotient.n_visited(), u64::from(n) - 1);
    }

    #[test]
    fn a_search_is_not_repeated_and_the_larger_block_stays() {
        let graph = Graph::new(4, &[0, 1, 2], &[1, 2, 3], &Budget::unlimited()).unwrap();
        let mut quotient =
            Quotient::from_blocks(&graph, &singletons(&graph), &Budget::unlimited()).unwrap();
        assert!(quotient.can_merge(1, 2, &Budget::unlimited()).unwrap());
        let n_visited = quotient.n_visited();
        let block = quotient.merge(1, 2, &Budget::unlimited()).unwrap();
        assert_eq!(quotient.n_visited(), n_visited);
        assert_eq!(quotient.merge(0, 1, &Budget::unlimited()).unwrap(), block);
        assert_eq!(quotient.merge(3, 0, &Budget::unlimited()).unwrap(), block);
    }

    #[test]
    fn what_is_read_counts_with_its_length() {
        // Node 0 feeds all others, and these the last: each block between is one edge long.
        let n: u32 = 1000;
        let middle = || 1..n - 1;
        let sources: Vec<_> = middle().map(|_| 0).chain(middle()).collect();
        let targets: Vec<_> = middle().chain(middle().map(|_| n - 1)).collect();
        let graph = Graph::new(n as usize, &sources, &targets, &Budget::unlimited()).unwrap();
        let mut quotient =
            Quotient::from_blocks(&graph, &singletons(&graph), &Budget::unlimited()).unwrap();
        let mut row = Vec::new();
        quotient.successors(1, &mut row, &Budget::unlimited()).unwrap();
        assert_eq!((quotient.n_visited(), quotient.n_read()), (1, 2));
        quotient.successors(0, &mut row, &Budget::unlimited()).unwrap();
        assert_eq!((quotient.n_visited(), quotient.n_read()), (2, 2 + u64::from(n) - 1));
        quotient.merge(1, 2, &Budget::unlimited()).unwrap();
        let before = quotient.n_read();
        quotient.successors(1, &mut row, &Budget::unlimited()).unwrap();
        // Two segments of an edge each, that are one from now on.
        assert_eq!(quotient.n_read(), before + 4);
        quotient.successors(1, &mut row, &Budget::unlimited()).unwrap();
        assert_eq!(quotient.n_read(), before + 6);
    }

    #[test]
    fn a_chain_does_not_grow_by_what_is_empty() {
        // Node 0 feeds all others, which feed nothing but the last.
        let n: u32 = 1000;
        let sources: Vec<_> = vec![0; n as usize - 1].into_iter().chain([1]).collect();
        let targets: Vec<_> = (1..n).chain([n - 1]).collect();
        let graph = Graph::new(n as usize, &sources, &targets, &Budget::unlimited()).unwrap();
        let mut quotient =
            Quotient::from_blocks(&graph, &singletons(&graph), &Budget::unlimited()).unwrap();
        for other in 2..n - 1 {
            quotient.merge(1, other, &Budget::unlimited()).unwrap();
        }
        let mut segments = 0;
        let mut segment = quotient.find(1);
        while segment != NONE {
            segments += 1;
            segment = quotient.successors.next[segment as usize];
        }
        assert!(segments <= 2);
        check(&mut quotient, &graph);
    }

    #[test]
    fn epochs_wrap() {
        let graph = Graph::new(3, &[0, 1], &[1, 2], &Budget::unlimited()).unwrap();
        let mut quotient =
            Quotient::from_blocks(&graph, &singletons(&graph), &Budget::unlimited()).unwrap();
        quotient.scratch.epoch = u32::MAX - 7;
        quotient.scratch.row_epoch = u32::MAX - 3;
        for _ in 0..10 {
            assert!(!quotient.can_merge(0, 2, &Budget::unlimited()).unwrap());
            assert!(quotient.can_merge(0, 1, &Budget::unlimited()).unwrap());
        }
        assert!(quotient.scratch.epoch < 100 && quotient.scratch.row_epoch < 100);
    }

    proptest! {
        #[test]
        fn merges_agree_with_recomputation(
            graph in dags(12),
            picks in proptest::collection::vec((any::<u32>(), any::<u32>(), any::<bool>()), 0..40)
        ) {
            let mut quotient = Quotient::from_blocks(&graph, &singletons(&graph), &Budget::unlimited()).unwrap();
            let n_nodes = graph.n_nodes() as u32;
            for (a, b, merge) in picks {
                if n_nodes == 0 {
                    break;
                }
                let (a, b) = (a % n_nodes, b % n_nodes);
                let blocks: Vec<_> = (0..n_nodes).map(|node| quotient.block_of(node)).collect();
                let (block_a, block_b) = (quotient.block_of(a), quotient.block_of(b));
                let legal = naive_can_merge(&graph, &blocks, block_a, block_b);
                if merge {
                    let merged = quotient.merge(a, b, &Budget::unlimited());
                    prop_assert_eq!(merged.is_ok(), legal);
                    prop_assert!(!legal || quotient.block_of(a) == quotient.block_of(b));
                } else {
                    prop_assert_eq!(quotient.can_merge(a, b, &Budget::unlimited()).unwrap(), legal);
                    prop_assert_eq!(quotient.can_merge(b, a, &Budget::unlimited()).unwrap(), legal);
                }
                check(&mut quotient, &graph);
            }
        }

        #[test]
        fn any_start_is_accepted_exactly_when_acyclic(
            (graph, picks) in dags(10).prop_flat_map(|graph| {
                let picks = proptest::collection::vec(0u32..4, graph.n_nodes());
                (Just(graph), picks)
            })
        ) {
            let mut ids: Vec<u32> = picks.clone();
            ids.sort_unstable();
            ids.dedup();
            let blocks: Vec<u32> =
                picks.iter().map(|pick| ids.binary_search(pick).unwrap() as u32).collect();
            let contracted = graph.contracted(&blocks, &Budget::unlimited()).unwrap();
            match Quotient::from_blocks(&graph, &blocks, &Budget::unlimited()) {
                Ok(mut quotient) => check(&mut quotient, &graph),
                Err(error) => {
                    let is_cycle = matches!(error, Error::Cycle { .. });
                    prop_assert!(is_cycle);
                    let reach = reachability(&contracted);
                    prop_assert!((0..reach.len()).any(|block| reach[block][block]));
                }
            }
        }
    }
}
