//! The log of a closure's contractions, and the look-up of those that may concern a row.

use std::ops::{Range, RangeInclusive};

use crate::graph::NodeId;

/// The number of contractions that are skipped at once where none of them concerns a row.
const CHUNK: usize = 32;

/// Contracted clusters, by their outputs.
#[derive(Default)]
pub(super) struct Log {
    outputs: Vec<NodeId>,
    /// The end of each cluster's outputs, and the smallest and the largest of them.
    entries: Vec<(u32, NodeId, NodeId)>,
    /// The range of words in which the sets of the outputs lacked nodes of the cluster's set.
    pub(super) lacked: Vec<(u32, u32)>,
    /// The smallest and the largest output of each whole chunk of entries.
    chunks: Vec<(NodeId, NodeId)>,
}

impl Log {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn push(&mut self, outputs: &[NodeId], lacked: Range<usize>) {
        self.lacked.push((lacked.start as u32, lacked.end as u32));
        self.outputs.extend(outputs);
        let smallest = outputs.iter().copied().min().unwrap_or(NodeId::MAX);
        let largest = outputs.iter().copied().max().unwrap_or(0);
        self.entries.push((self.outputs.len() as u32, smallest, largest));
        if self.len().is_multiple_of(CHUNK) {
            let chunk = &self.entries[self.len() - CHUNK..];
            let smallest = chunk.iter().map(|entry| entry.1).min().unwrap_or(NodeId::MAX);
            self.chunks.push((smallest, chunk.iter().map(|entry| entry.2).max().unwrap_or(0)));
        }
    }

    pub(super) fn clear(&mut self) {
        self.outputs.clear();
        self.entries.clear();
        self.lacked.clear();
        self.chunks.clear();
    }

    /// Outputs of a cluster.
    pub(super) fn outputs(&self, position: usize) -> &[NodeId] {
        let start = position.checked_sub(1).map_or(0, |previous| self.entries[previous].0);
        &self.outputs[start as usize..self.entries[position].0 as usize]
    }

    /// The first position, at `position` or later, at which the range from the smallest to the
    /// largest output meets `nodes`.
    pub(super) fn next(&self, mut position: usize, nodes: RangeInclusive<NodeId>) -> Option<usize> {
        let is_off = |smallest, largest| smallest > *nodes.end() || largest < *nodes.start();
        while position < self.len() {
            let (_, smallest, largest) = self.entries[position];
            if position.is_multiple_of(CHUNK)
                && self.chunks.get(position / CHUNK).is_some_and(|&(a, b)| is_off(a, b))
            {
                position += CHUNK;
            } else if is_off(smallest, largest) {
                position += 1;
            } else {
                return Some(position);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_skips_what_is_too_late_and_nothing_else() {
        let mut log = Log::default();
        let mut smallest = Vec::new();
        for entry in 0..(5 * CHUNK + 7) as NodeId {
            // Late entries first, as growth from the sinks has them, and occasionally an early one.
            let first = if entry % 45 == 44 { 3 } else { 1000 - entry };
            log.push(&[first + 5, first], 0..0);
            smallest.push(first);
            assert_eq!(log.outputs(entry as usize), [first + 5, first]);
        }
        for last in (0..1010).step_by(3).chain([3, 1000]) {
            for position in 0..=smallest.len() {
                let expected = (position..smallest.len()).find(|&at| smallest[at] <= last);
                assert_eq!(log.next(position, 0..=last), expected);
                let from = last / 2;
                let is_near = |&at: &usize| smallest[at] <= last && smallest[at] + 5 >= from;
                let expected = (position..smallest.len()).find(is_near);
                assert_eq!(log.next(position, from..=last), expected);
            }
        }
        log.clear();
        assert_eq!((log.len(), log.next(0, 0..=NodeId::MAX)), (0, None));
        log.push(&[7, 8], 0..0);
        assert_eq!((log.outputs(0), log.next(0, 0..=7)), (&[7, 8][..], Some(0)));
    }

    #[test]
    fn a_log_finds_the_early_entry_wherever_it_is() {
        for n_entries in [CHUNK as NodeId, 3 * CHUNK as NodeId] {
            for early in 0..n_entries {
                let mut log = Log::default();
                (0..n_entries).for_each(|i| log.push(&[if i == early { 3 } else { 1000 }], 0..0));
                assert_eq!(log.next(0, 0..=3), Some(early as usize));
            }
        }
        // More entries than a chunk of chunks has.
        let mut log = Log::default();
        let early = CHUNK + 8;
        (0..(CHUNK + 1) * CHUNK * CHUNK)
            .for_each(|i| log.push(&[if i == early { 3 } else { 9 }], 0..0));
        assert_eq!(log.next(0, 0..=3), Some(early));
    }
}
