//! Sets of a few hundred small numbers as bits of machine words.
//!
//! # Problem
//! The exact planner compares and combines millions of sets of nodes.
//!
//! # Approach
//! A fixed number of words, known at compile time: such sets are copied, hashed and compared
//! without a loop over memory elsewhere. A caller whose size is known at run time takes the
//! smallest number of words that is enough ([`for_width`]).
//!
//! # Rejected
//! Bit sets of any length: each takes an allocation.

use std::ops::{BitAnd, BitOr, BitOrAssign};

/// A set of numbers below `64 * W`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::plan) struct Mask<const W: usize>([u64; W]);

impl<const W: usize> Mask<W> {
    /// The empty set.
    pub(in crate::plan) const EMPTY: Self = Self([0; W]);

    /// The set of one number.
    pub(in crate::plan) fn of(number: usize) -> Self {
        let mut mask = Self::EMPTY;
        mask.insert(number);
        mask
    }

    /// Adds a number.
    pub(in crate::plan) fn insert(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    /// Whether the set contains a number.
    pub(in crate::plan) fn contains(self, number: usize) -> bool {
        self.0[number / 64] >> (number % 64) & 1 == 1
    }

    /// Whether the set is empty.
    pub(in crate::plan) fn is_empty(self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    /// The count of numbers in the set.
    pub(in crate::plan) fn len(self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether the two sets have a number in common.
    pub(in crate::plan) fn meets(self, other: Self) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    /// Whether all its numbers are in `other`.
    pub(in crate::plan) fn is_within(self, other: Self) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a & !b == 0)
    }

    /// Its numbers that are not in `other`.
    pub(in crate::plan) fn without(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] & !other.0[i]))
    }

    /// The smallest number.
    pub(in crate::plan) fn first(self) -> Option<usize> {
        let word = self.0.iter().position(|&word| word != 0)?;
        Some(64 * word + self.0[word].trailing_zeros() as usize)
    }

    /// Its numbers, ascending.
    pub(in crate::plan) fn iter(self) -> impl Iterator<Item = usize> {
        (0..W).flat_map(move |i| {
            let mut word = self.0[i];
            std::iter::from_fn(move || {
                let bit = word.trailing_zeros() as usize;
                let is_left = word != 0;
                word &= word.wrapping_sub(1);
                is_left.then_some(64 * i + bit)
            })
        })
    }
}

impl<const W: usize> BitOr for Mask<W> {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }
}

impl<const W: usize> BitOrAssign for Mask<W> {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

impl<const W: usize> BitAnd for Mask<W> {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }
}

impl<const W: usize> FromIterator<usize> for Mask<W> {
    fn from_iter<I: IntoIterator<Item = usize>>(numbers: I) -> Self {
        let mut mask = Self::EMPTY;
        numbers.into_iter().for_each(|number| mask.insert(number));
        mask
    }
}

/// The largest count of numbers for which there is a width.
pub(in crate::plan) const MOST: usize = 1024;

/// The value of an expression in which the constant `$width` is a number of words that is enough
/// for `$count` numbers, at most [`MOST`].
macro_rules! for_width {
    ($count:expr, $width:ident => $value:expr) => {
        match $count {
            ..=64 => {
                const $width: usize = 1;
                $value
            }
            65..=128 => {
                const $width: usize = 2;
                $value
            }
            129..=256 => {
                const $width: usize = 4;
                $value
            }
            257..=512 => {
                const $width: usize = 8;
                $value
            }
            _ => {
                const $width: usize = 16;
                $value
            }
        }
    };
}
pub(in crate::plan) use for_width;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn check<const W: usize>(a: &BTreeSet<usize>, b: &BTreeSet<usize>) {
        let mask = |set: &BTreeSet<usize>| set.iter().copied().collect::<Mask<W>>();
        let set = |mask: Mask<W>| mask.iter().collect::<BTreeSet<_>>();
        let (x, y) = (mask(a), mask(b));
        assert_eq!(&set(x), a);
        assert_eq!(set(x | y), a | b);
        assert_eq!(set(x & y), a & b);
        assert_eq!(set(x.without(y)), a - b);
        assert_eq!(x.meets(y), !a.is_disjoint(b));
        assert_eq!(x.is_within(y), a.is_subset(b));
        assert_eq!((x.len(), x.is_empty(), x.first()), (a.len(), a.is_empty(), a.first().copied()));
        assert!((0..64 * W).all(|number| x.contains(number) == a.contains(&number)));
    }

    proptest! {
        #[test]
        fn masks_are_sets(
            a in proptest::collection::btree_set(0usize..64, 0..20),
            b in proptest::collection::btree_set(0usize..64, 0..20),
            spread in 1usize..8,
        ) {
            check::<1>(&a, &b);
            let wide = |set: &BTreeSet<usize>| set.iter().map(|&i| i * spread).collect();
            check::<8>(&wide(&a), &wide(&b));
        }
    }

    #[test]
    fn widths_are_enough() {
        for count in 0..=MOST {
            assert!(for_width!(count, W => 64 * W) >= count);
        }
    }
}
