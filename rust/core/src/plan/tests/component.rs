//! Components as small problems, compared with their definitions.

use std::collections::BTreeSet;

use super::problems::arrays::arrays_of_data;
use super::problems::random::{Random, random_problems};
use crate::budget::Budget;
use crate::plan::FusionProblem;
use crate::plan::problem::parts;
use crate::plan::proof::component::Component;
use crate::plan::proof::least_closed::least_closed;
use crate::plan::proof::masks::Mask;
use crate::plan::proof::relations::{Scratch, movable, refine};

/// The components of a problem that have movable nodes, but no more than fit into a word.
pub(in crate::plan) fn components(problem: &FusionProblem) -> Vec<Component<1>> {
    let (parts, components) = refine(problem, &Budget::unlimited()).unwrap();
    let mut scratch = Scratch::new(problem);
    let all = (0..components.len() as u32).map(|component| components.members(component));
    let open = all.filter(|members| (1..=64).contains(&movable(&parts, members).count()));
    let budget = Budget::unlimited();
    let component =
        |members| Component::new(problem, &parts, members, &mut scratch, &budget).unwrap();
    open.map(component).collect()
}

#[test]
fn what_is_excluded_follows_from_what_is_apart() {
    let mut n_more = 0;
    for (_, problem) in random_problems(24, 3000, 4..40) {
        for component in components(&problem) {
            let n_nodes = component.nodes.len();
            let part = |i: usize| component.parts[component.part[i] as usize];
            let mut excluded: Vec<BTreeSet<usize>> =
                component.apart.iter().map(|apart| apart.iter().collect()).collect();
            loop {
                let before = excluded.clone();
                for i in 0..n_nodes {
                    // Nodes connected with i through nodes of its part that it may share a kernel
                    // with.
                    let mut reached = BTreeSet::from([i]);
                    loop {
                        let next: BTreeSet<usize> = reached
                            .iter()
                            .flat_map(|&node| component.adjacent[node].iter())
                            .filter(|other| {
                                part(i).contains(*other) && !excluded[i].contains(other)
                            })
                            .collect();
                        if next.is_subset(&reached) {
                            break;
                        }
                        reached.extend(next);
                    }
                    for other in part(i).iter() {
                        let between: BTreeSet<usize> = (0..n_nodes)
                            .filter(|&node| {
                                component.before[node].contains(i)
                                    && component.before[other].contains(node)
                            })
                            .collect();
                        let is_broken = between.iter().any(|node| {
                            excluded[i].contains(node) || excluded[other].contains(node)
                        });
                        if !reached.contains(&other) || is_broken {
                            excluded[i].insert(other);
                            excluded[other].insert(i);
                        }
                    }
                }
                if excluded == before {
                    break;
                }
            }
            for (found, expected) in component.excluded.iter().zip(&excluded) {
                assert_eq!(&found.iter().collect::<BTreeSet<_>>(), expected);
            }
            n_more += usize::from(component.excluded != component.apart);
        }
    }
    assert!(n_more > 10, "{n_more}");
}

#[test]
fn sets_are_connected_or_not() {
    let mut random = Random(25);
    let mut seen = [0, 0];
    for (_, problem) in random_problems(26, 300, 4..20) {
        for component in components(&problem) {
            let nodes: Vec<usize> =
                component.parts[0].iter().filter(|_| random.percent(60)).collect();
            let mut reached: BTreeSet<usize> = nodes.iter().take(1).copied().collect();
            while let Some(&next) = nodes.iter().find(|&&node| {
                !reached.contains(&node)
                    && reached.iter().any(|&other| component.adjacent[other].contains(node))
            }) {
                reached.insert(next);
            }
            let expected = reached.len() == nodes.len();
            assert_eq!(component.is_connected(nodes.iter().copied().collect()), expected);
            seen[usize::from(expected)] += 1;
        }
    }
    assert!(seen.iter().all(|&times| times > 10), "{seen:?}");
}

#[test]
fn a_look_at_a_set_counts_the_words_of_its_component() {
    for (n_nodes, expected) in [(200, 4 * 2), (256, 4 * 3)] {
        let reads: Vec<[u32; 2]> = (0..n_nodes).map(|node| [node, 0]).collect();
        let nodes: Vec<(i32, &[u32])> = reads.iter().map(|row| (0, &row[..])).collect();
        let problem =
            FusionProblem::new(arrays_of_data(1, &nodes, 8), &Budget::unlimited()).unwrap();
        let members: Vec<u32> = (0..n_nodes).collect();
        let parts = parts::parts(&problem, &Budget::unlimited()).unwrap();
        let mut scratch = Scratch::new(&problem);
        let budget = Budget::unlimited();
        let component = Component::<4>::new(&problem, &parts, &members, &mut scratch, &budget);
        assert_eq!(component.unwrap().step(), expected);
    }
}

/// The smallest choice of sets that needs no others: the first of the smallest closures of single
/// sets.
fn smallest_closure(sets: &[BTreeSet<usize>], needs: &[BTreeSet<usize>]) -> Vec<usize> {
    let closures = (0..sets.len()).filter(|&start| !sets[start].is_empty()).map(|start| {
        let mut chosen = BTreeSet::from([start]);
        loop {
            let wanted: BTreeSet<usize> = chosen.iter().flat_map(|&i| needs[i].clone()).collect();
            let more = (0..sets.len()).filter(|&i| !sets[i].is_disjoint(&wanted));
            let n_before = chosen.len();
            chosen.extend(more);
            if chosen.len() == n_before {
                return chosen;
            }
        }
    });
    let size = |choice: &BTreeSet<usize>| choice.iter().map(|&i| sets[i].len()).sum::<usize>();
    // `min_by_key` returns the first of several.
    closures.min_by_key(size).into_iter().flatten().collect()
}

#[test]
fn the_smallest_choice_that_needs_no_other_is_found() {
    let mut random = Random(39);
    let (mut sizes, mut n_ties) = (BTreeSet::new(), 0);
    for _ in 0..4000 {
        let n_nodes = 1 + random.below(30);
        let n_sets = 1 + random.below(n_nodes.min(12));
        let own: Vec<u32> = (0..n_nodes).map(|_| random.below(n_sets) as u32).collect();
        let sets: Vec<BTreeSet<usize>> =
            (0..n_sets as u32).map(|s| (0..n_nodes).filter(|&i| own[i] == s).collect()).collect();
        let density = 1 + random.below(12);
        let needs: Vec<BTreeSet<usize>> = sets
            .iter()
            .map(|set| {
                let more = (0..n_nodes).filter(|_| !set.is_empty() && random.percent(density));
                set.iter().copied().chain(more.collect::<Vec<_>>()).collect()
            })
            .collect();
        let masks = |sets: &[BTreeSet<usize>]| -> Vec<Mask<1>> {
            sets.iter().map(|set| set.iter().copied().collect()).collect()
        };
        let found = least_closed(&masks(&sets), &masks(&needs), &own);
        assert_eq!(found, smallest_closure(&sets, &needs), "{sets:?} {needs:?}");
        sizes.insert(found.len());
        n_ties += usize::from(sets.iter().filter(|set| set.len() == 1).count() > 1);
    }
    assert!(sizes.is_superset(&[1, 2, 3, 4, 5, 6].into()) && n_ties > 100, "{sizes:?} {n_ties}");
}

#[test]
fn what_a_search_begins_with_waits_for_nothing() {
    let mut random = Random(40);
    let mut n_several = 0;
    for (_, problem) in random_problems(41, 1500, 4..40) {
        for component in components(&problem) {
            // The remainder after some nodes, with all that comes before them.
            let n_nodes = component.nodes.len();
            let done = (0..random.below(4)).fold(Mask::EMPTY, |done, _| {
                let last = random.below(n_nodes);
                done | component.before[last] | Mask::of(last)
            });
            let left = component.all.without(done);
            let parts: Vec<Mask<1>> = component.parts.iter().map(|&part| part & left).collect();
            for sets in [component.pieces(left), parts] {
                let plain: Vec<BTreeSet<usize>> =
                    sets.iter().map(|set| set.iter().collect()).collect();
                let needs: Vec<BTreeSet<usize>> = plain
                    .iter()
                    .map(|set| {
                        let is_before =
                            |i: usize| set.iter().any(|&node| component.before[node].contains(i));
                        left.iter().filter(|&i| set.contains(&i) || is_before(i)).collect()
                    })
                    .collect();
                let found = component.sources(&sets, left);
                assert_eq!(found, smallest_closure(&plain, &needs));
                n_several += usize::from(found.len() > 1);
            }
        }
    }
    assert!(n_several > 100, "{n_several}");
}
