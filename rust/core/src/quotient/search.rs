//! The two-way search for a path between two blocks.

use super::{BlockId, Outcome, Quotient, Scratch, Way};
use crate::budget::Budget;
use crate::error::Result;

impl Quotient {
    /// Searches for a path `early -> .. -> late` of at least two edges, from both ends.
    pub(super) fn search(
        &mut self,
        early: BlockId,
        late: BlockId,
        budget: &Budget,
    ) -> Result<Outcome> {
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

    /// Starts a search with all marks void; returns the mark of blocks that it reaches forward.
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
