//! The quotient of a graph by a partition into blocks, kept acyclic while blocks are merged.
//!
//! # Problem
//! A merge of two blocks makes a cycle exactly when a path leads from one to the other through a
//! third. With a topological order at hand, such a path can only visit blocks that stand between
//! the two, so both the question and the repair of the order stay local on local graphs.
//!
//! # Approach
//! - The question: a two-way search, forward from the earlier block and backward from the later
//!   one, confined to the blocks between them. The side that has scanned fewer edges continues, so
//!   a hub costs nothing when the other side is small. The search ends when either side runs out.
//! - The repair: the blocks that the exhausted side has found move past the other block, and the
//!   merged block takes that block's place. Constant-time comparisons come from an ordered list, so
//!   that nothing else has to be renumbered.
//! - Adjacency: the blocks' rows are chained on a merge, in constant time; inner edges and
//!   duplicates are removed in place when the rows are next read. Nothing is allocated per call.
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

mod chains;
mod search;
#[cfg(test)]
mod tests;

pub use chains::BlockId;

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::graph::{Graph, NodeId};
use crate::order::OrderedList;
use crate::toposort::toposort;
use crate::union_find::find;
use chains::{Chains, NONE};

/// Steps for an entry of a row: it is read, looked up and compared with others.
const PER_ENTRY: usize = 8;

/// The direction in which edges are followed.
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
    /// The initial block of each node.
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

/// Scratch space, reused from one call to the next.
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
    /// Blocks reached by the last search, its start first.
    ahead: Vec<BlockId>,
    behind: Vec<BlockId>,
    /// The last question and its answer, until a merge.
    last: Option<(BlockId, BlockId, Outcome)>,
}

/// How a search between two blocks ended.
#[derive(Debug, Clone, Copy)]
enum Outcome {
    /// One side ran out: no path. The set of blocks that it reached is complete.
    Free(Way),
    /// A path leads through this block.
    Blocked(BlockId),
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
    /// does not have one entry per node, or its ids are not dense;
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

    /// The work done so far: edges read, counted each time, and the segments that hold them, of
    /// which a block has at least one.
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

    /// Clears `into` and adds the distinct blocks to which edges lead from `block`.
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

    /// Clears `into` and adds the distinct blocks from which edges lead to `block`.
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

    /// Merges the two blocks and returns the id of the merged block, one of the two.
    ///
    /// A search by [`Quotient::can_merge`] for the same two blocks just before is reused.
    ///
    /// # Errors
    /// [`Error::Contraction`] if [`Quotient::can_merge`] is false, [`Error::Interrupted`]; the
    /// quotient is unchanged then.
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

    /// Makes room for the merged block at the place of one of the two, and returns which.
    ///
    /// All blocks before `late` that `early` leads to may follow `late`, since none of them leads
    /// there; likewise, all blocks after `early` that lead to `late` may come before `early`.
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
}
