//! Rows of ids of different lengths, in two flat arrays: compressed sparse rows.
//!
//! # Problem
//! Neighbors of nodes, operands, clients, members of blocks: each is a list of ids per id, which
//! is read far more often than it is made.
//!
//! # Approach
//! One array holds all rows, one after the other, and another holds the start of each. Rows are
//! made in one of three ways: from arrays of a caller, which are checked ([`Rows::new`]); one after
//! the other ([`Rows::push`]); or from pairs in any order, by a counting sort (`Rows::grouped`).
//!
//! # Rejected
//! A vector per row: each row costs an allocation, and rows that are read together are scattered in
//! memory.
//!
//! # Source
//! Compressed sparse rows: Y. Saad, "Iterative methods for sparse linear systems", 2nd edition
//! (2003), section 3.4. Counting sort: D. Knuth, "The art of computer programming", volume 3,
//! section 5.2.

use std::convert::Infallible;
use std::ops::Range;

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::ids::{MAX_NODES, check_count};

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

    /// No rows yet; rows can be [pushed](Self::push).
    #[must_use]
    pub fn empty() -> Self {
        Self { offsets: vec![0], items: Vec::new() }
    }

    /// The rows of the given `(row, item)` pairs. The items of a row stand in the order of their
    /// pairs.
    ///
    /// # Arguments
    /// * `n_rows`: the number of rows. The method panics if a pair names a row that does not exist,
    ///   as indexing does.
    /// * `pairs`: fewer than dense ids can name, which the caller has checked. They are read twice.
    ///
    /// # Complexity
    /// O(rows + pairs): a stable counting sort.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub(crate) fn grouped(
        n_rows: usize,
        pairs: impl Iterator<Item = (u32, u32)> + Clone,
        budget: &Budget,
    ) -> Result<Self> {
        Self::sorted(n_rows, pairs, |steps| budget.check(steps))
    }

    /// The members of blocks, ascending: `block[id]` is the row of `id`, and is below the number of
    /// ids.
    pub(crate) fn of_blocks(block: &[u32]) -> Self {
        let pairs = block.iter().copied().zip(0u32..);
        match Self::sorted(block.len(), pairs, |_| Ok::<(), Infallible>(())) {
            Ok(rows) => rows,
        }
    }

    /// [`Rows::grouped`]; `check` counts steps, and may end the work with an error.
    fn sorted<E>(
        n_rows: usize,
        pairs: impl Iterator<Item = (u32, u32)> + Clone,
        check: impl Fn(usize) -> std::result::Result<(), E>,
    ) -> std::result::Result<Self, E> {
        let mut offsets = vec![0u32; n_rows + 1];
        let mut n_items = 0;
        for (row, _) in pairs.clone() {
            check(1)?;
            offsets[row as usize + 1] += 1;
            n_items += 1;
        }
        check(n_rows)?;
        for row in 0..n_rows {
            offsets[row + 1] += offsets[row];
        }
        let mut next = offsets.clone();
        let mut items = vec![0; n_items];
        for (row, item) in pairs {
            check(1)?;
            let slot = &mut next[row as usize];
            items[*slot as usize] = item;
            *slot += 1;
        }
        Ok(Self { offsets, items })
    }

    /// `n_rows` rows, each of which contains only its own number.
    pub(crate) fn identity(n_rows: u32) -> Self {
        Self { offsets: (0..=n_rows).collect(), items: (0..n_rows).collect() }
    }

    /// Appends a row.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if there would be more rows, or more items in all, than 32-bit offsets
    /// can count; the rows are then unchanged.
    pub fn push(&mut self, row: impl IntoIterator<Item = u32>) -> Result<()> {
        self.push_up_to(MAX_NODES, row)
    }

    /// [`Rows::push`] up to `limit` rows, and as many items.
    fn push_up_to(&mut self, limit: usize, row: impl IntoIterator<Item = u32>) -> Result<()> {
        let before = self.items.len();
        // At most one item more than fits is read, which suffices to detect a row that is too long.
        self.items.extend(row.into_iter().take(limit - before + 1));
        for (what, count) in [("a list of rows", self.len() + 1), ("rows", self.items.len())] {
            if count > limit {
                self.items.truncate(before);
                return Err(Error::TooLarge { what, count, limit });
            }
        }
        self.offsets.push(self.items.len() as u32);
        Ok(())
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

    /// The rows of a range. Panics if the range is out of bounds, as indexing does.
    #[must_use]
    pub fn part(&self, rows: Range<usize>) -> Self {
        let offsets = &self.offsets[rows.start..=rows.end];
        let (first, last) = (offsets[0], offsets[rows.len()]);
        Self {
            offsets: offsets.iter().map(|offset| offset - first).collect(),
            items: self.items[first as usize..last as usize].to_vec(),
        }
    }

    /// All rows, one after the other.
    #[must_use]
    pub fn items(&self) -> &[u32] {
        &self.items
    }

    /// The start of each row, and the end of the last one.
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
        let none = Rows::grouped(0, std::iter::empty(), &Budget::unlimited()).unwrap();
        assert!(none.is_empty());
        assert_eq!(none, Rows::empty());
        let rows = Rows::grouped(3, [(1, 7)].into_iter(), &Budget::unlimited()).unwrap();
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

    #[test]
    fn rows_that_offsets_cannot_count_are_refused() {
        let mut rows = Rows::empty();
        rows.push_up_to(4, [1, 2, 3]).unwrap();
        let before = rows.clone();
        for row in [vec![4, 5], vec![4; 1000]] {
            let refused = rows.push_up_to(4, row);
            assert_eq!(refused, Err(Error::TooLarge { what: "rows", count: 5, limit: 4 }));
            assert_eq!(rows, before);
        }
        rows.push_up_to(4, [4]).unwrap();
        rows.push_up_to(4, []).unwrap();
        rows.push_up_to(4, []).unwrap();
        let refused = rows.push_up_to(4, []);
        assert_eq!(refused, Err(Error::TooLarge { what: "a list of rows", count: 5, limit: 4 }));
        assert_eq!((rows.len(), rows.items()), (4, &[1, 2, 3, 4][..]));
    }

    proptest! {
        #[test]
        fn rows_hold_their_pairs_in_order(
            pairs in proptest::collection::vec((0u32..6, any::<u32>()), 0..30)
        ) {
            let budget = Budget::unlimited();
            let rows = Rows::grouped(6, pairs.iter().copied(), &budget).unwrap();
            let mut one_by_one = Rows::empty();
            for row in 0..6 {
                let items = pairs.iter().filter(|pair| pair.0 == row).map(|pair| pair.1);
                prop_assert!(rows.row(row).iter().copied().eq(items.clone()));
                one_by_one.push(items).unwrap();
            }
            prop_assert_eq!(&rows, &one_by_one);
            for (start, end) in (0..=6).flat_map(|start| (start..=6).map(move |end| (start, end))) {
                let part = rows.part(start..end);
                prop_assert_eq!(part.len(), end - start);
                let expected = (start as u32..end as u32).map(|row| rows.row(row));
                prop_assert!((0..part.len() as u32).map(|row| part.row(row)).eq(expected));
            }
            let diagonal = (0..6).map(|row| (row, row));
            prop_assert_eq!(Rows::identity(6), Rows::grouped(6, diagonal, &budget).unwrap());
            prop_assert_eq!(Rows::identity(6), Rows::of_blocks(&[0, 1, 2, 3, 4, 5]));
            let (offsets, items) = rows.clone().into_parts();
            prop_assert_eq!(Rows::new("rows", offsets, items), Ok(rows));
        }
    }
}
