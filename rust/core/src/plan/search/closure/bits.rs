//! Sets of nodes as rows of bits of any length: bit `i` is node `i`.

use crate::graph::NodeId;

/// Whether `node` is in a set whose last words may be missing.
pub(in crate::plan::search) fn is_in(row: &[u64], node: NodeId) -> bool {
    row.get(node as usize / 64).is_some_and(|word| word & (1 << (node % 64)) != 0)
}

/// Whether `node` is in a set.
pub(in crate::plan::search) fn has_bit(row: &[u64], node: NodeId) -> bool {
    row[node as usize / 64] & (1 << (node % 64)) != 0
}

/// Adds `node` to a set.
pub(in crate::plan::search) fn set_bit(row: &mut [u64], node: NodeId) {
    row[node as usize / 64] |= 1 << (node % 64);
}

/// Adds all nodes of `other` to a set.
pub(in crate::plan::search) fn or_into(row: &mut [u64], other: &[u64]) {
    for (word, &more) in row.iter_mut().zip(other) {
        *word |= more;
    }
}

/// Whether two sets have a node in common.
pub(in crate::plan::search) fn intersects(row: &[u64], other: &[u64]) -> bool {
    row.iter().zip(other).any(|(a, b)| a & b != 0)
}
