//! The smallest choice of sets that needs no others.

use super::masks::Mask;

/// The choice of disjoint sets with the fewest nodes that needs no nodes of other sets: the one
/// with the first set, if there are several. Empty sets are never chosen.
///
/// # Arguments
/// * `needs`: for each set the nodes that it needs, of all sets.
/// * `own`: for each node the number of its set.
///
/// # Approach
/// A set, all that it needs, and all that these need, form a closed choice. Sets that need one
/// another are in the same choices. Among these strongly connected components, those that need no
/// other are closed, and every other closed choice contains one of them. So the result is the
/// smallest of them. A path of sets, each needed by the one before, grows as long as its last set
/// needs an unseen one. If the last set then needs another one on the path, the last two are in one
/// component and continue as one set.
///
/// # Complexity
/// O(1) masks for each set.
///
/// # Source
/// H. Gabow, "Path-based depth-first search for strong and biconnected components", Information
/// Processing Letters 74 (2000).
pub(in crate::plan) fn least_closed<const W: usize>(
    sets: &[Mask<W>],
    needs: &[Mask<W>],
    own: &[u32],
) -> Vec<usize> {
    let mut unseen = sets.iter().fold(Mask::EMPTY, |mask, &set| mask | set);
    let mut done = Mask::EMPTY;
    // Nodes, their needs, and the number of the first of their sets.
    let mut path: Vec<(Mask<W>, Mask<W>, usize)> = Vec::new();
    let mut best: Option<(usize, usize, Mask<W>)> = None;
    for start in 0..sets.len() {
        let mut next = sets[start].meets(unseen).then_some(start);
        loop {
            if let Some(number) = next {
                unseen = unseen.without(sets[number]);
                path.push((sets[number], needs[number], number));
            }
            let Some(&(nodes, needed, first)) = path.last() else { break };
            next = (needed & unseen).first().map(|node| own[node] as usize);
            if next.is_some() {
                continue;
            }
            path.pop();
            if needed.is_within(nodes | done) {
                done |= nodes;
                let size = nodes.len();
                let is_less = best.is_none_or(|(least, known, _)| (size, first) < (least, known));
                if needed.is_within(nodes) && is_less {
                    best = Some((size, first, nodes));
                }
            } else if let Some(before) = path.last_mut() {
                *before = (before.0 | nodes, before.1 | needed, before.2.min(first));
            }
        }
    }
    let chosen = best.map_or(Mask::EMPTY, |(.., nodes)| nodes);
    (0..sets.len()).filter(|&i| sets[i].meets(chosen)).collect()
}
