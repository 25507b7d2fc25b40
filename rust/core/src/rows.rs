//! Rows of ids of different lengths, in two flat arrays.

use crate::error::{Error, Result};
use crate::graph::check_count;

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

    /// Rows that the caller has partitioned itself.
    pub(crate) fn from_parts(offsets: Vec<u32>, items: Vec<u32>) -> Self {
        debug_assert_eq!(offsets.last().map(|&end| end as usize), Some(items.len()));
        Self { offsets, items }
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
}
