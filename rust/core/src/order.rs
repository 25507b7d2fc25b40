//! A total order on dense ids that can be moved, with comparisons in constant time.

/// End of the list.
const NONE: u32 = u32::MAX;
/// Labels stay below this.
const END: u64 = 1 << 63;
/// A range of `2^i` labels is full with `(2 / OVERFLOW)^i` ids. Values closer to 1 mean fewer but wider
/// relabellings.
const OVERFLOW: f64 = 1.3;
/// Bits of the smallest range that is relabelled: it leaves a free label between any two ids while
/// it is not full.
const MIN_BITS: u32 = 3;

/// A list of ids, each with a 64-bit label that grows along the list.
///
/// Comparison is O(1). Moving is O(log n) amortized: it relabels the smallest range around the
/// target position that has enough free labels.
///
/// # Source
/// M. Bender, R. Cole, E. Demaine, M. Farach-Colton, J. Zito, "Two simplified algorithms for
/// maintaining order in a list", ESA 2002.
#[derive(Debug, Clone)]
pub(crate) struct OrderedList {
    /// `next` and `previous` form one doubly linked list that starts at the sentinel, the last
    /// index, whose label is 0 and which never moves.
    next: Vec<u32>,
    previous: Vec<u32>,
    labels: Vec<u64>,
}

impl OrderedList {
    /// The list `order`, a permutation of `0..order.len()`; O(n).
    pub(crate) fn new(order: &[u32]) -> Self {
        let sentinel = order.len() as u32;
        let step = END / (order.len() as u64 + 1);
        let mut list = Self {
            next: vec![NONE; order.len() + 1],
            previous: vec![NONE; order.len() + 1],
            labels: vec![0; order.len() + 1],
        };
        let mut last = sentinel;
        for (i, &id) in order.iter().enumerate() {
            list.labels[id as usize] = step * (i as u64 + 1);
            list.link(last, id);
            last = id;
        }
        list
    }

    /// A number that grows along the list, valid until the next move.
    pub(crate) fn label(&self, id: u32) -> u64 {
        self.labels[id as usize]
    }

    /// The ids, first to last.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let step = |id: u32| Some(self.next[id as usize]).filter(|&id| id != NONE);
        std::iter::successors(step(self.sentinel()), move |&id| step(id))
    }

    /// Takes `id` out of the list.
    pub(crate) fn remove(&mut self, id: u32) {
        let (before, after) = (self.previous[id as usize], self.next[id as usize]);
        self.link(before, after);
    }

    /// Puts `new`, which is not in the list, in the place of `old`.
    pub(crate) fn replace(&mut self, old: u32, new: u32) {
        let (before, after) = (self.previous[old as usize], self.next[old as usize]);
        self.labels[new as usize] = self.labels[old as usize];
        self.link(before, new);
        self.link(new, after);
    }

    /// Moves `ids`, in their order, to just before `place`, which is not one of them.
    pub(crate) fn move_before(&mut self, ids: &[u32], place: u32) {
        ids.iter().for_each(|&id| self.remove(id));
        self.insert_after(ids, self.previous[place as usize]);
    }

    /// Moves `ids`, in their order, to just after `place`, which is not one of them.
    pub(crate) fn move_after(&mut self, ids: &[u32], place: u32) {
        ids.iter().for_each(|&id| self.remove(id));
        self.insert_after(ids, place);
    }

    fn insert_after(&mut self, ids: &[u32], mut place: u32) {
        let step = self.gap_after(place) / (ids.len() as u64 + 1);
        for &id in ids {
            let mut step = step;
            // The gap is too small for all of them: make room for one at a time.
            if step == 0 {
                if self.gap_after(place) < 2 {
                    self.spread_round(place);
                }
                step = self.gap_after(place) / 2;
            }
            let after = self.next[place as usize];
            self.labels[id as usize] = self.labels[place as usize] + step;
            self.link(place, id);
            self.link(id, after);
            place = id;
        }
    }

    fn gap_after(&self, id: u32) -> u64 {
        let next = self.next[id as usize];
        let end = if next == NONE { END } else { self.labels[next as usize] };
        end - self.labels[id as usize]
    }

    /// Spreads the labels of the smallest aligned range around `id` that is not full.
    fn spread_round(&mut self, id: u32) {
        let (mut first, mut last, mut count) = (id, id, 1u64);
        let mut full = (2.0 / OVERFLOW).powi(MIN_BITS as i32);
        for bits in MIN_BITS..=END.trailing_zeros() {
            let low = self.labels[id as usize] >> bits << bits;
            let high = low + ((1 << bits) - 1);
            // The sentinel is the first element, so only it lacks a predecessor.
            while self.previous[first as usize] != NONE
                && self.label(self.previous[first as usize]) >= low
            {
                first = self.previous[first as usize];
                count += 1;
            }
            while self.next[last as usize] != NONE && self.label(self.next[last as usize]) <= high {
                last = self.next[last as usize];
                count += 1;
            }
            if (count as f64) < full {
                let step = (1u64 << bits) / count;
                let mut current = first;
                for i in 0..count {
                    self.labels[current as usize] = low + i * step;
                    current = self.next[current as usize];
                }
                return;
            }
            full *= 2.0 / OVERFLOW;
        }
    }

    fn sentinel(&self) -> u32 {
        self.labels.len() as u32 - 1
    }

    /// Makes `after` (which may be the end) follow `before`.
    fn link(&mut self, before: u32, after: u32) {
        self.next[before as usize] = after;
        if after != NONE {
            self.previous[after as usize] = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(list: &OrderedList, expected: &[u32]) {
        assert!(list.iter().eq(expected.iter().copied()));
        assert!(expected.windows(2).all(|pair| list.label(pair[0]) < list.label(pair[1])));
        assert!(expected.iter().all(|&id| list.label(id) < END));
    }

    #[test]
    fn one_place_takes_any_number_of_moves() {
        let n = 2000;
        let mut expected: Vec<u32> = (0..n).collect();
        let mut list = OrderedList::new(&expected);
        for id in 1..n {
            list.move_after(&[id], 0);
        }
        expected[1..].reverse();
        check(&list, &expected);
        for id in 1..n {
            list.move_before(&[id], 0);
        }
        expected.rotate_left(1);
        expected[..n as usize - 1].reverse();
        check(&list, &expected);
    }

    #[test]
    fn a_batch_that_outgrows_its_gap_is_spread() {
        let n = 5000;
        let expected: Vec<u32> = (0..n).collect();
        let mut list = OrderedList::new(&expected);
        let rest: Vec<u32> = (2..n).collect();
        // Squeeze 0 and 1 together first.
        for _ in 0..60 {
            list.move_after(&[1], 0);
            list.move_after(&[2], 0);
            list.move_after(&[2], 1);
        }
        list.move_after(&rest, 0);
        let mut moved = vec![0];
        moved.extend(&rest);
        moved.push(1);
        check(&list, &moved);
    }

    proptest! {
        #[test]
        fn agrees_with_a_vector(
            moves in proptest::collection::vec((0u32..8, 0u32..8, any::<bool>()), 0..200)
        ) {
            let mut expected: Vec<u32> = (0..8).collect();
            let mut list = OrderedList::new(&expected);
            for (id, place, before) in moves {
                if id == place {
                    continue;
                }
                expected.retain(|&other| other != id);
                let at = expected.iter().position(|&other| other == place).unwrap_or(0);
                expected.insert(if before { at } else { at + 1 }, id);
                if before {
                    list.move_before(&[id], place);
                } else {
                    list.move_after(&[id], place);
                }
                check(&list, &expected);
            }
        }
    }
}
