//! Rows of ids of different lengths, in two flat arrays: compressed sparse rows.
//!
//! # Problem
//! Neighbors of nodes, operands, clients, members of blocks: each is a list of ids per id, which
//! is read far more often than it is made.
//!
//! # Approach
//! One array holds all rows, one after the other, and another says where each starts. Rows come
//! into being in one of three ways: from arrays of a caller, which are checked ([`Rows::new`]); one
//! after the other ([`Rows::push`]); or from pairs in any order, by a counting sort
//! (`Rows::grouped`).
//!
//! # Rejected
//! A vector per row: an allocation each, and what is read together lies apart.
//!
//! # Source
//! Compressed sparse rows: Y. Saad, "Iterative methods for sparse linear systems", 2nd edition
//! (2003), section 3.4. Counting sort: D. Knuth, "The art of computer programming", volume 3,
//! section 5.2.

use crate::error::{Error, Result};
use crate::ids::check_count;

/// Compressed rows of ids: row `i` is `items[offsets[i]..offsets[i + 1]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    offsets: Vec<u32>,
    items: Vec<u32>,
}

impl Rows {
    /// Checks that `offsets` is a non-decreasing partition of `items` into rows.
    ///
    /// # Errors
    /// [`Error::Inconsistent`] names the array, [`Error::TooLarge`] its length.
    pub fn new(what: &'static str, offsets: Vec<u32>, items: Vec<u32>) -> Result<Self> {
        check_count(what, offsets.len().max(items.len()))?;
        let partition = offsets.first() == Some(&0)
            && offsets.last().map(|&end| end as usize) == Some(items.len())
            && offsets.windows(2).all(|pair| pair[0] <= pair[1]);
        if !partition {
            return Err(Error::Inconsistent(format!(
                "the offsets of {what} must start at 0, never fall, and end at {}",
                items.len()
            )));
        }
        Ok(Self { offsets, items })
    }

    /// One empty row after another can be pushed onto this.
    #[must_use]
    pub fn empty() -> Self {
        Self { offsets: vec![0], items: Vec::new() }
    }

    /// The rows that `(row, item)` pairs make up. Items stand in a row in the order of their pairs.
    ///
    /// # Arguments
    /// * `n_rows`: how many rows there are; every pair names one of them, or the method panics, as
    ///   indexing does.
    /// * `pairs`: fewer than dense ids can name, which the caller has checked. They are read twice.
    ///
    /// # Complexity
    /// O(rows + pairs): a stable counting sort.
    pub(crate) fn grouped(n_rows: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut offsets = vec![0u32; n_rows + 1];
        let mut n_items = 0;
        for (row, _) in pairs.clone() {
            offsets[row as usize + 1] += 1;
            n_items += 1;
        }
        for row in 0..n_rows {
            offsets[row + 1] += offsets[row];
        }
        let mut next = offsets.clone();
        let mut items = vec![0; n_items];
        for (row, item) in pairs {
            let slot = &mut next[row as usize];
            items[*slot as usize] = item;
            *slot += 1;
        }
        Self { offsets, items }
    }

    /// Of `n_rows` rows each with its own number alone.
    pub(crate) fn identity(n_rows: u32) -> Self {
        Self { offsets: (0..=n_rows).collect(), items: (0..n_rows).collect() }
    }

    /// Appends a row.
    pub fn push(&mut self, row: impl IntoIterator<Item = u32>) {
        self.items.extend(row);
        // Callers hold no more items than dense ids can name: each is a checked id of a checked array.
        self.offsets.push(self.items.len() as u32);
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Row `i`. Panics if there is none, as indexing does.
    #[must_use]
    pub fn row(&self, i: u32) -> &[u32] {
        let i = i as usize;
        &self.items[self.offsets[i] as usize..self.offsets[i + 1] as usize]
    }

    /// All rows, one after the other.
    #[must_use]
    pub fn items(&self) -> &[u32] {
        &self.items
    }

    /// Where each row starts, and where the last one ends.
    #[must_use]
    pub fn offsets(&self) -> &[u32] {
        &self.offsets
    }

    /// Offsets and items.
    pub(crate) fn into_parts(self) -> (Vec<u32>, Vec<u32>) {
        (self.offsets, self.items)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_rows_and_empty_rows() {
        let none = Rows::grouped(0, std::iter::empty());
        assert!(none.is_empty());
        assert_eq!(none, Rows::empty());
        let rows = Rows::grouped(3, [(1, 7)].into_iter());
        assert_eq!((rows.row(0), rows.row(1), rows.row(2)), (&[][..], &[7][..], &[][..]));
    }

    #[test]
    fn arrays_that_are_no_rows_are_refused() {
        assert!(Rows::new("rows", vec![0, 1, 1], vec![5]).is_ok());
        for offsets in [vec![], vec![0], vec![1, 1], vec![0, 2, 1], vec![0, 2]] {
            let refused = Rows::new("rows", offsets, vec![5]);
            assert!(matches!(refused, Err(Error::Inconsistent(_))));
        }
    }

    proptest! {
        #[test]
        fn rows_hold_their_pairs_in_order(
            pairs in proptest::collection::vec((0u32..6, any::<u32>()), 0..30)
        ) {
            let rows = Rows::grouped(6, pairs.iter().copied());
            let mut one_by_one = Rows::empty();
            for row in 0..6 {
                let items = pairs.iter().filter(|pair| pair.0 == row).map(|pair| pair.1);
                prop_assert!(rows.row(row).iter().copied().eq(items.clone()));
                one_by_one.push(items);
            }
            prop_assert_eq!(&rows, &one_by_one);
            let diagonal = (0..6).map(|row| (row, row));
            prop_assert_eq!(Rows::identity(6), Rows::grouped(6, diagonal));
            let (offsets, items) = rows.clone().into_parts();
            prop_assert_eq!(Rows::new("rows", offsets, items), Ok(rows));
        }
    }
}
