//! The edges of blocks as chains of rows, which are joined in constant time.

use crate::rows::Rows;

/// A block: a dense id given by the caller. After a merge either id names the merged block.
pub type BlockId = u32;

pub(super) const NONE: u32 = u32::MAX;

/// For every live block, the blocks at the other ends of its edges in one direction: a chain of
/// segments of one shared array, headed by the segment with the block's own id.
#[derive(Debug, Clone)]
pub(super) struct Chains {
    pub(super) items: Vec<BlockId>,
    pub(super) starts: Vec<u32>,
    pub(super) lens: Vec<u32>,
    pub(super) next: Vec<u32>,
    /// Last segment of a live block's chain.
    tails: Vec<u32>,
    /// Entries in a live block's chain: its degree, or more until the chain is next read.
    pub(super) totals: Vec<u32>,
}

impl Chains {
    /// One segment for each row.
    pub(super) fn new(rows: Rows) -> Self {
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

    /// Appends the chain of `absorbed` to that of `root`, unless it is empty. An empty root has at
    /// least as many nodes as the block that it absorbs, so at most log2(n) segments in a row are
    /// empty, for n nodes.
    pub(super) fn append(&mut self, root: BlockId, absorbed: BlockId) {
        if self.totals[absorbed as usize] == 0 {
            return;
        }
        self.next[self.tails[root as usize] as usize] = absorbed;
        self.tails[root as usize] = self.tails[absorbed as usize];
        self.totals[root as usize] += self.totals[absorbed as usize];
    }

    /// Replaces the chain of `block` by `row`, which is not longer.
    pub(super) fn shrink(&mut self, block: BlockId, row: &[BlockId]) {
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
