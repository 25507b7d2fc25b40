//! Disjoint sets of dense ids: a forest whose roots stand for their sets, in one array of parents.
//!
//! # Source
//! Path halving: R. Tarjan, J. van Leeuwen, "Worst-case analysis of set union algorithms", Journal of
//! the ACM 31 (1984).

/// The root of the set of `id`; halves the path to it. O(log n) amortized.
pub(crate) fn find(parents: &mut [u32], mut id: u32) -> u32 {
    loop {
        let parent = parents[id as usize];
        if parent == id {
            return id;
        }
        let grandparent = parents[parent as usize];
        parents[id as usize] = grandparent;
        id = grandparent;
    }
}

/// Unites the sets of two ids. If all sets are made by this function, the root of each set is its
/// smallest id.
pub(crate) fn unite(parents: &mut [u32], a: u32, b: u32) {
    let (a, b) = (find(parents, a), find(parents, b));
    parents[a.max(b) as usize] = a.min(b);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn roots_are_the_smallest_of_their_sets(
            pairs in proptest::collection::vec((0u32..12, 0u32..12), 0..20)
        ) {
            let mut parents: Vec<u32> = (0..12).collect();
            let mut smallest = parents.clone();
            for (a, b) in pairs {
                unite(&mut parents, a, b);
                let (a, b) = (smallest[a as usize], smallest[b as usize]);
                let merged = |&name: &u32| if name == a.max(b) { a.min(b) } else { name };
                smallest = smallest.iter().map(merged).collect();
            }
            for id in 0..12 {
                prop_assert_eq!(find(&mut parents, id), smallest[id as usize]);
            }
        }
    }
}
