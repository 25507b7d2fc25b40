//! What the pieces of the planner say, beside their definitions written down once more.

#![allow(clippy::unwrap_used)]

use crate::budget::Budget;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::bounds::{Joint, Levels, kernels_by_limit};
use super::component::{Component, Scratch, least_closed, movable, refine};
use super::masks::{MOST, Mask};
use super::portfolio::{PORTFOLIO, Question};
use super::proof_tests::{Random, SHAPES, random_arrays};
use super::tests::moved;
use super::*;
use crate::rows::Rows;

/// Random problems of these sizes.
fn random_problems(
    seed: u64,
    n_problems: usize,
    sizes: std::ops::Range<usize>,
) -> impl Iterator<Item = (ProblemArrays, FusionProblem)> {
    let mut random = Random(seed);
    (0..n_problems).map(move |number| {
        let n_nodes = sizes.start + random.below(sizes.len());
        let arrays = random_arrays(&mut random, n_nodes, SHAPES[number % SHAPES.len()]);
        (arrays.clone(), FusionProblem::new(arrays, &Budget::unlimited()).unwrap())
    })
}

/// Nodes of one result each after `n_roots` variables from outside: a group and what is read. Only
/// data connects them, and what is not read is a result.
fn arrays(n_roots: usize, nodes: &[(i32, &[u32])], max_operands: u32) -> ProblemArrays {
    let (mut inputs, mut outputs) = (Rows::empty(), Rows::empty());
    for (&(_, reads), made) in nodes.iter().zip(n_roots as u32..) {
        inputs.push(reads.iter().copied()).unwrap();
        outputs.push([made]).unwrap();
    }
    let n_variables = n_roots + nodes.len();
    let mut results = vec![true; n_variables];
    inputs.items().iter().for_each(|&variable| results[variable as usize] = false);
    ProblemArrays {
        n_variables,
        inputs,
        outputs,
        groups: nodes.iter().map(|&(group, _)| group).collect(),
        links: vec![-1; n_variables],
        constants: vec![false; n_variables],
        results,
        orderings: Vec::new(),
        max_operands,
    }
}

/// Problems of one part, of which most results are read once: each node has operands of its own, and
/// few share one, or are results of the graph.
fn trees(seed: u64, n_problems: usize) -> impl Iterator<Item = (ProblemArrays, FusionProblem)> {
    let mut random = Random(seed);
    (0..n_problems).map(move |_| {
        let n_nodes = 2 + random.below(12) as u32;
        let n_roots = 2 * n_nodes;
        let shared = [0, 0, 10][random.below(3)];
        let mut unread: Vec<u32> = Vec::new();
        let mut reads: Vec<Vec<u32>> = Vec::new();
        for node in 0..n_nodes {
            let mut row = vec![2 * node];
            if random.percent(50) {
                row.push(if random.percent(shared) { 0 } else { 2 * node + 1 });
            }
            row.extend(unread.pop());
            if random.percent(30) {
                row.extend(unread.pop());
            }
            unread.push(n_roots + node);
            reads.push(row);
        }
        let nodes: Vec<(i32, &[u32])> = reads.iter().map(|row| (0, &row[..])).collect();
        let mut arrays = arrays(n_roots as usize, &nodes, 2 + random.below(5) as u32);
        if random.percent(30) {
            arrays.results[n_roots as usize + random.below(n_nodes as usize)] = true;
        }
        (arrays.clone(), FusionProblem::new(arrays, &Budget::unlimited()).unwrap())
    })
}

/// The components of a problem that have movable nodes, no more than a word of them.
fn components(problem: &FusionProblem) -> Vec<Component<1>> {
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
fn lone_nodes_cost_what_they_read_and_what_is_read_of_them() {
    for (arrays, problem) in random_problems(21, 200, 1..12) {
        let lone = || (0..problem.n_nodes() as u32).filter(|&node| problem.group(node).is_none());
        let mut expected = Cost::default();
        for node in lone() {
            let read: BTreeSet<u32> = arrays.inputs.row(node).iter().copied().collect();
            let is_read = |variable: u32| arrays.inputs.items().contains(&variable);
            expected.kernels += 1;
            expected.arrays +=
                read.iter().filter(|&&v| !arrays.constants[v as usize]).count() as u64;
            for &variable in arrays.outputs.row(node) {
                let is_needed = arrays.results[variable as usize] || is_read(variable);
                expected.arrays += u64::from(is_needed);
            }
        }
        assert_eq!(lone_cost(&problem, lone(), &Budget::unlimited()), Ok(expected));
    }
}

#[test]
fn the_operand_limit_takes_as_many_kernels_as_its_formula_says() {
    let mut seen = BTreeSet::new();
    for (arrays, problem) in random_problems(22, 1000, 2..14).chain(trees(34, 1000)) {
        let parts = parts::parts(&problem, &Budget::unlimited()).unwrap();
        for part in parts.names().filter(|&part| problem.group(part).is_some()) {
            let members: BTreeSet<u32> = parts.members(part).iter().copied().collect();
            let made = |node: u32| arrays.outputs.row(node)[0];
            let own: BTreeSet<u32> = members.iter().map(|&node| made(node)).collect();
            let readers_in =
                |v: u32| members.iter().filter(|&&n| arrays.inputs.row(n).contains(&v)).count();
            let is_needed = |v: u32| {
                let outside = (0..problem.n_nodes() as u32).filter(|n| !members.contains(n));
                arrays.results[v as usize]
                    || outside.into_iter().any(|n| arrays.inputs.row(n).contains(&v))
            };
            let read: BTreeSet<u32> =
                members.iter().flat_map(|&n| arrays.inputs.row(n)).copied().collect();
            let outside: Vec<u32> = read.difference(&own).copied().collect();
            let n_operands = outside.len() + own.iter().filter(|&&v| is_needed(v)).count();
            // A link is one operand more where two read the same, or a result is kept that is read.
            let is_cheap = outside.iter().any(|&v| readers_in(v) > 1)
                || own.iter().any(|&v| readers_in(v) > 1 || (readers_in(v) == 1 && is_needed(v)));
            let per_link = if is_cheap { 1 } else { 2 };
            let longest = members.iter().map(|&n| arrays.inputs.row(n).len() + 1).max().unwrap();
            let limit = longest.max(arrays.max_operands as usize);
            // k kernels of so many operands, k - 1 links between them.
            let fits = |k: usize| n_operands + (k - 1) * per_link <= k * limit;
            let expected = match n_operands {
                n if n <= arrays.max_operands as usize || limit <= per_link => 1,
                n => (1..=n + 1).find(|&k| fits(k)).unwrap(),
            };
            let budget = Budget::unlimited();
            let mut interfaces = Interfaces::new(&problem, &budget);
            let members = parts.members(part);
            let found = kernels_by_limit(&problem, &parts, members, &mut interfaces, &budget);
            assert_eq!(found.unwrap(), expected as u64, "{arrays:?}");
            seen.insert((expected, per_link));
        }
    }
    assert!(seen.is_superset(&[(1, 2), (2, 1), (2, 2), (3, 1), (4, 2)].into()), "{seen:?}");
}

#[test]
fn the_joint_bound_is_that_of_the_shortest_sequence_of_parts() {
    /// The least over all sequences of what the estimates on the way are at most.
    fn shortest(
        component: &Component<1>,
        levels: &Levels<1>,
        (left, done): (Mask<1>, u64),
        known: &mut FxHashMap<(Mask<1>, u64), u64>,
    ) -> u64 {
        let own = done + levels.kernels(left);
        if left.is_empty() {
            return own;
        }
        if let Some(&known) = known.get(&(left, done)) {
            return known;
        }
        let sets: Vec<Mask<1>> = component.parts.iter().map(|&part| part & left).collect();
        let sets: Vec<Mask<1>> = sets.into_iter().filter(|set| !set.is_empty()).collect();
        let mut best = u64::MAX;
        for source in component.sources(&sets, left) {
            let ready = component.ready(sets[source], left);
            if !ready.is_empty() {
                let next = (left.without(ready), done + 1);
                best = best.min(shortest(component, levels, next, known));
            }
        }
        known.insert((left, done), own.max(best));
        own.max(best)
    }
    let mut n_above = 0;
    for (_, problem) in random_problems(23, 2000, 4..45) {
        for component in components(&problem) {
            if component.parts.len() < 2 {
                continue;
            }
            let budget = Budget::unlimited();
            let levels = Levels::new(&component, &budget).unwrap();
            let mut joint = Joint::new(&component, &levels);
            let found = joint.kernels(component.all, 5000, &budget).unwrap();
            let start = (component.all, 0);
            let expected = shortest(&component, &levels, start, &mut FxHashMap::default());
            assert_eq!(found, expected);
            n_above += usize::from(found > levels.kernels(component.all));
        }
    }
    assert!(n_above > 10, "{n_above}");
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
                    // Connected with i by nodes of its part that it may be with.
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
        let problem = FusionProblem::new(arrays(1, &nodes, 8), &Budget::unlimited()).unwrap();
        let members: Vec<u32> = (0..n_nodes).collect();
        let parts = parts::parts(&problem, &Budget::unlimited()).unwrap();
        let mut scratch = Scratch::new(&problem);
        let budget = Budget::unlimited();
        let component = Component::<4>::new(&problem, &parts, &members, &mut scratch, &budget);
        assert_eq!(component.unwrap().step(), expected);
    }
}

#[test]
fn whether_no_plan_has_fewer_kernels_is_a_matter_of_depth() {
    let mut seen = [0, 0];
    for (arrays, problem) in random_problems(27, 1200, 2..16) {
        let plan = plan(&problem, None, &Budget::unlimited()).unwrap();
        let parts = parts::parts(&problem, &Budget::unlimited()).unwrap();
        let n_nodes = problem.n_nodes() as u32;
        let feeds = |a: u32, b: u32| {
            let made = arrays.outputs.row(a);
            arrays.inputs.row(b).iter().any(|v| made.contains(v))
                || arrays.orderings.contains(&(a, b))
        };
        let expected = parts.names().filter(|&part| problem.group(part).is_some()).all(|part| {
            let within = |node: u32| parts.block(node) == part;
            let blocks: BTreeSet<u32> =
                parts.members(part).iter().map(|&node| plan.partition.block(node)).collect();
            // How often a path leaves the part on its way to each node, at most.
            let mut left = vec![0; n_nodes as usize];
            for node in 0..n_nodes {
                let ways = (0..node).filter(|&source| feeds(source, node));
                let ways = ways.map(|source| {
                    left[source as usize] + usize::from(within(source) && !within(node))
                });
                left[node as usize] = ways.max().unwrap_or(0);
            }
            let deepest = parts.members(part).iter().map(|&node| left[node as usize]).max();
            blocks.len() == 1 || deepest.unwrap() + 1 == blocks.len()
        });
        let floor = floor::floor(&problem, &Budget::unlimited()).unwrap().unwrap();
        assert_eq!(floor.kernels == plan.after.kernels, expected, "{arrays:?}");
        seen[usize::from(expected)] += 1;
    }
    assert!(seen.iter().all(|&times| times > 20), "{seen:?}");
}

#[test]
fn blocks_come_in_the_order_in_which_they_are_free() {
    // 0 -> 3 and 1 -> 2: what 0 sets free is listed first.
    let nodes: [(i32, &[u32]); 4] = [(-1, &[0]), (-1, &[0]), (-1, &[2]), (-1, &[1])];
    let problem = FusionProblem::new(arrays(1, &nodes, 8), &Budget::unlimited()).unwrap();
    let order = Partition::singletons(4).quotient_order(&problem, &Budget::unlimited()).unwrap();
    assert_eq!(order, [0, 1, 3, 2]);
}

#[test]
fn only_the_empty_problem_has_no_components() {
    for (n_nodes, is_empty) in [(0, true), (1, false)] {
        let nodes: [(i32, &[u32]); 1] = [(0, &[0])];
        let problem =
            FusionProblem::new(arrays(1, &nodes[..n_nodes], 8), &Budget::unlimited()).unwrap();
        let components = parts::Components::new(
            &problem,
            &parts::parts(&problem, &Budget::unlimited()).unwrap(),
            &Budget::unlimited(),
        )
        .unwrap();
        assert_eq!((components.is_empty(), components.len()), (is_empty, n_nodes));
    }
}

#[test]
fn an_ordering_along_the_data_keeps_nothing_apart() {
    let mut arrays = arrays(1, &[(0, &[0]), (0, &[1]), (0, &[0, 2])], 8);
    arrays.orderings = vec![(0, 1), (0, 2)];
    let problem = FusionProblem::new(arrays, &Budget::unlimited()).unwrap();
    assert!(problem.has_data(0, 1) && !problem.has_data(0, 2));
    let mut without = problem.arrays().clone();
    without.orderings.pop();
    let problem = FusionProblem::new(without, &Budget::unlimited()).unwrap();
    for direction in [typed::Direction::FromSources, typed::Direction::FromSinks] {
        let partition = typed::fuse_by_depth(&problem, direction, &Budget::unlimited()).unwrap();
        assert_eq!(partition.members(0), [0, 1, 2]);
    }
}

#[test]
fn two_that_could_be_one_kernel_are_told_so_up_to_the_limit() {
    // x -> 0 -> 1, with y: operands x, y and the result.
    for limit in 2..5 {
        let nodes: [(i32, &[u32]); 2] = [(0, &[0]), (0, &[2, 1])];
        let problem = FusionProblem::new(arrays(2, &nodes, limit), &Budget::unlimited()).unwrap();
        let expected = if limit < 3 { Verdict::OperandLimit(3) } else { Verdict::Possible };
        let unfused = Partition::singletons(2);
        assert_eq!(explain(&problem, &unfused, 0, 1, &Budget::unlimited()), Ok(expected.clone()));
        assert_eq!(explain(&problem, &unfused, 1, 0, &Budget::unlimited()), Ok(expected));
    }
}

#[test]
fn a_part_alone_is_one_kernel_without_any_search() {
    // A chain of four, and an operand for each: six operands in all.
    let nodes: [(i32, &[u32]); 4] = [(0, &[0, 1]), (0, &[5, 2]), (0, &[6, 3]), (0, &[7, 4])];
    for (limit, is_one) in [(5, false), (6, true), (7, true)] {
        let problem = FusionProblem::new(arrays(5, &nodes, limit), &Budget::unlimited()).unwrap();
        let unfused = Partition::singletons(4);
        let proof = prove(&problem, &unfused, &Budget::unlimited().with_effort(0)).unwrap();
        assert_eq!(proof.cost.kernels, if is_one { 1 } else { 4 });
        assert_eq!(proof.is_proven(), is_one);
        assert_eq!(proof.partition.members(0).len(), if is_one { 4 } else { 1 });
    }
}

#[test]
fn a_plan_above_the_bound_is_not_proven() {
    let mut n_open = 0;
    for (_, problem) in random_problems(29, 60, 10..30) {
        let unfused = Partition::singletons(problem.n_nodes());
        let proof = prove(&problem, &unfused, &Budget::unlimited().with_effort(0)).unwrap();
        if proof.bound < proof.cost {
            assert!(!proof.is_proven());
            n_open += 1;
        }
    }
    assert!(n_open > 10);
}

#[test]
fn kernels_that_orderings_alone_hold_together_are_no_plan() {
    // a -> c <- b and a -> d, with b before d: a, b and d would be within the limit, but only c, which
    // is one operand too many, connects b with the others.
    let nodes: [(i32, &[u32]); 4] = [(0, &[0]), (0, &[1]), (0, &[6, 7, 2, 3, 4]), (0, &[6, 5])];
    let mut arrays = arrays(6, &nodes, 6);
    arrays.orderings = vec![(1, 3)];
    let problem = FusionProblem::new(arrays, &Budget::unlimited()).unwrap();
    let unfused = Partition::singletons(4);
    let proof = prove(&problem, &unfused, &Budget::unlimited().with_effort(EFFORT)).unwrap();
    assert!(proof.is_proven());
    assert_eq!(proof.cost.kernels, 3, "{:?}", proof.partition);
}

#[test]
fn components_of_any_size_have_a_bound() {
    // Pairs of readers of one operand, each pair after the one before by way of what is not fused: one
    // component of more nodes than sets have room for.
    let n_pairs = MOST as u32 / 2 + 1;
    let mut reads: Vec<(i32, Vec<u32>)> = Vec::new();
    let mut last = 0;
    for made in (1..).step_by(3).take(n_pairs as usize) {
        let reader = vec![last, 0];
        reads.extend([(0, reader.clone()), (0, reader), (-1, vec![made, made + 1])]);
        last = made + 2;
    }
    let nodes: Vec<(i32, &[u32])> = reads.iter().map(|(group, row)| (*group, &row[..])).collect();
    let mut arrays = arrays(1, &nodes, 1024);
    arrays.links[0] = 0;
    let problem = FusionProblem::new(arrays, &Budget::unlimited()).unwrap();
    let (parts, components) = refine(&problem, &Budget::unlimited()).unwrap();
    let all = (0..components.len() as u32).map(|component| components.members(component));
    assert_eq!(all.map(|members| movable(&parts, members).count()).max(), Some(MOST + 2));
    let plan = plan(&problem, None, &Budget::unlimited()).unwrap();
    assert_eq!(plan.after.kernels, n_pairs.into());
    let bound = lower_bound(&problem, &Budget::unlimited()).unwrap();
    assert!(bound.kernels == plan.after.kernels && bound.arrays < plan.after.arrays);
    for incumbent in [&plan.partition, &Partition::singletons(nodes.len())] {
        let proof = prove(&problem, incumbent, &Budget::unlimited().with_effort(GLANCE)).unwrap();
        assert_eq!(proof.bound, bound);
        assert_eq!(proof.cost, cost::cost(&problem, incumbent, &Budget::unlimited()).unwrap());
    }
}

#[test]
fn a_cut_fills_its_pieces() {
    // A chain of additions, each of an operand of its own: as many in each piece as the limit is, less two.
    for (limit, n_nodes) in [(4, 9), (8, 13), (5, 10)] {
        let reads: Vec<[u32; 2]> = (0..n_nodes).map(|i| [n_nodes + i, i]).collect();
        let nodes: Vec<(i32, &[u32])> = reads.iter().map(|row| (0, &row[..])).collect();
        let problem =
            FusionProblem::new(arrays(n_nodes as usize + 1, &nodes, limit), &Budget::unlimited())
                .unwrap();
        let whole = Partition::from_names(vec![0; n_nodes as usize]);
        let cut = split::split_oversized(&problem, whole, &Budget::unlimited()).unwrap();
        let firsts = (0..n_nodes).step_by(limit as usize - 2);
        assert!(cut.names().eq(firsts), "{:?}", cut.blocks());
    }
}

#[test]
fn moves_go_on_as_long_as_they_save() {
    let (mut n_moved, mut n_open) = (0, 0);
    for (_, problem) in random_problems(31, 600, 10..60) {
        let start = PORTFOLIO[2].start;
        let start =
            start(&Question { problem: &problem, strict: None, budget: &Budget::unlimited() })
                .unwrap();
        let start = split::split_oversized(&problem, start, &Budget::unlimited()).unwrap();
        let once = moved(&problem, &start, true);
        let twice = moved(&problem, &once, true);
        n_moved += usize::from(once != start);
        n_open += usize::from(twice != once);
    }
    // The kernels stand in another order afterwards, which lets some go that could not before.
    assert!(n_moved > 100 && 10 * n_open < n_moved, "{n_moved} {n_open}");
}

/// A chain of kernels of two nodes each, then two nodes that a move brings together, and nodes that
/// no kernel may have. With the partition into these.
fn pairs_and_a_move(n_pairs: u32, n_nodes: u32) -> (FusionProblem, Partition) {
    let n_chain = 2 * n_pairs;
    // Variable 0 is from outside, and node `i` makes variable `i + 1`.
    let reads: Vec<[u32; 1]> = (0..n_nodes)
        .map(|node| [if node == n_chain || node > n_chain + 1 { 0 } else { node }])
        .collect();
    let group =
        |node: u32| [0, 1, -1][usize::from(node >= n_chain) + usize::from(node > n_chain + 1)];
    let nodes: Vec<(i32, &[u32])> =
        (0..n_nodes).zip(&reads).map(|(node, reads)| (group(node), reads.as_slice())).collect();
    let blocks = (0..n_nodes).map(|node| if node < n_chain { node / 2 * 2 } else { node });
    let problem = FusionProblem::new(arrays(1, &nodes, 1024), &Budget::unlimited()).unwrap();
    (problem, Partition::from_names(blocks.collect()))
}

/// How many kernels there are after moves and merges.
fn n_polished(problem: &FusionProblem, partition: &Partition) -> u64 {
    let order = partition.quotient_order(problem, &Budget::unlimited()).unwrap();
    let polished = polish(problem, partition, &order, &[], &Budget::unlimited()).unwrap().unwrap();
    cost::cost(problem, &polished, &Budget::unlimited()).unwrap().kernels
}

#[test]
fn merges_after_moves_are_left_out_on_large_graphs() {
    let n_nodes = LARGE as u32;
    for (n_nodes, expected) in [(n_nodes - 1, 2), (n_nodes, 2), (n_nodes + 1, 3)] {
        let (problem, partition) = pairs_and_a_move(2, n_nodes);
        assert_eq!(cost::cost(&problem, &partition, &Budget::unlimited()).unwrap().kernels, 4);
        assert_eq!(n_polished(&problem, &partition), expected, "{n_nodes}");
    }
}

#[test]
fn merges_after_moves_have_effort_for_each_node() {
    let (problem, partition) = pairs_and_a_move(1000, 2002);
    assert_eq!(cost::cost(&problem, &partition, &Budget::unlimited()).unwrap().kernels, 1002);
    assert_eq!(n_polished(&problem, &partition), 2);
    // What is no effort for each node does not suffice.
    let (less, is_complete) =
        improve::improve(&problem, partition, &Budget::unlimited().with_effort(AMPLE + 2003))
            .unwrap();
    assert!(!is_complete && cost::cost(&problem, &less, &Budget::unlimited()).unwrap().kernels > 2);
}

#[test]
fn strict_growth_is_that_of_strict_nodes() {
    let mut random = Random(32);
    let mut n_other = 0;
    for (_, problem) in random_problems(33, 100, 5..30) {
        let strict: Vec<bool> = (0..problem.n_nodes()).map(|_| random.percent(70)).collect();
        let question =
            Question { problem: &problem, strict: Some(&strict), budget: &Budget::unlimited() };
        let entry = &PORTFOLIO[1];
        assert_eq!(entry.strategy, Strategy::StrictGrowthFromSinks);
        assert!((entry.applies)(&question));
        let grown = (entry.start)(&question).unwrap();
        let expected =
            sinks::grow_from_sinks(&problem, |node| strict[node as usize], &Budget::unlimited())
                .unwrap();
        assert_eq!(grown, expected);
        n_other += usize::from(
            grown != sinks::grow_from_sinks(&problem, |_| true, &Budget::unlimited()).unwrap(),
        );
    }
    assert!(n_other > 10);
}

#[test]
fn growth_from_the_sinks_is_not_tried_beyond_its_memory() {
    for (n_nodes, fits) in [(46_000, true), (47_000, false)] {
        let mut arrays = arrays(1, &[], 8);
        for _ in 0..n_nodes {
            arrays.inputs.push([0]).unwrap();
            arrays.outputs.push([]).unwrap();
        }
        arrays.groups = vec![-1; n_nodes];
        let problem = FusionProblem::new(arrays, &Budget::unlimited()).unwrap();
        let question = Question { problem: &problem, strict: None, budget: &Budget::unlimited() };
        assert_eq!((PORTFOLIO[0].applies)(&question), fits);
    }
}

#[test]
fn a_part_of_one_operand_has_a_bound_where_none_are_allowed() {
    // A node that reads one variable twice and writes nothing has one operand of three.
    let mut chain = arrays(1, &[(0, &[0, 0]), (0, &[1])], 0);
    chain.results = vec![false; 3];
    let problem = FusionProblem::new(chain, &Budget::unlimited()).unwrap();
    let bound = lower_bound(&problem, &Budget::unlimited()).unwrap();
    assert!(
        bound.kernels <= plan(&problem, None, &Budget::unlimited()).unwrap().after.kernels,
        "{bound:?}"
    );
}

/// A choice of sets that needs no others, as small as possible: the first closure of all that is.
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
    // The first of several: `min_by_key` says so.
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
            // What is left once some nodes are done, with all that comes before them.
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

/// Two recursions over the same vectors, one from each end, with sums in between: each product is in a
/// part with the one of the other recursion that reads the same vector.
fn forward_backward(n_steps: u32) -> FusionProblem {
    let n_roots = n_steps + 2;
    let mut reads: Vec<(i32, Vec<u32>)> = Vec::new();
    for first in [n_steps, n_steps + 1] {
        let mut last = first;
        for step in 0..n_steps {
            let vector = if first == n_steps { step } else { n_steps - 1 - step };
            let made = n_roots + reads.len() as u32;
            reads.extend([(-1, vec![last]), (0, vec![vector, made])]);
            last = made + 1;
        }
    }
    let nodes: Vec<(i32, &[u32])> = reads.iter().map(|(group, row)| (*group, &row[..])).collect();
    let mut arrays = arrays(n_roots as usize, &nodes, 1024);
    arrays.links[..n_roots as usize].fill(0);
    FusionProblem::new(arrays, &Budget::unlimited()).unwrap()
}

#[test]
fn the_joint_bound_takes_no_more_than_its_effort_and_asks_as_often() {
    /// How many questions are asked at most.
    fn joint<const W: usize>(problem: &FusionProblem) -> u64 {
        let (parts, components) = refine(problem, &Budget::unlimited()).unwrap();
        let members = (0..components.len() as u32)
            .map(|component| components.members(component))
            .max_by_key(|members| members.len())
            .unwrap();
        let mut scratch = Scratch::new(problem);
        let budget = Budget::unlimited();
        let component =
            Component::<W>::new(problem, &parts, members, &mut scratch, &budget).unwrap();
        let n_parts = component.parts.len();
        assert_eq!(component.nodes.len(), 2 * n_parts);
        let levels = Levels::new(&component, &budget).unwrap();
        let (mut last, mut most) = (0, 0);
        for given in [0, 100, 1000, 10_000, 100_000] {
            let asked = Rc::new(Cell::new(0));
            let count = Rc::clone(&asked);
            let question = Rc::new(move || {
                count.set(count.get() + 1);
                true
            });
            let budget = Budget::asking(question).with_effort(given);
            let mut joint = Joint::new(&component, &levels);
            let found = joint.kernels(component.all, 2000, &budget).unwrap();
            // No plan has more than a kernel for each node, and one that takes each part twice but the
            // last is legal; more effort finds no less.
            assert!(last <= found && found < 2 * n_parts as u64, "{found}");
            last = found;
            // 64 words for one of effort, and a question after 2^16 and those of a step at most.
            let words = 64 * (given - budget.effort());
            assert!(words >> 17 <= asked.get(), "{words} {}", asked.get());
            most = most.max(asked.get());
        }
        assert!(last > n_parts as u64, "{last}");
        most
    }
    joint::<1>(&forward_backward(32));
    joint::<2>(&forward_backward(64));
    assert!(joint::<8>(&forward_backward(256)) > 40);
}

#[test]
fn a_glance_takes_no_more_than_it_may() {
    for n_steps in [8, 64, 256] {
        let problem = forward_backward(n_steps);
        let known = plan(&problem, None, &Budget::unlimited()).unwrap();
        let mut last = Cost::default();
        for effort in [0, GLANCE, 50 * GLANCE] {
            let proof = prove(&problem, &known.partition, &Budget::unlimited().with_effort(effort))
                .unwrap();
            assert!(proof.effort <= effort, "{}", proof.effort);
            let bound = proof.bound;
            assert!(last <= bound && bound <= known.after, "{n_steps}: {bound:?}");
            last = bound;
        }
        assert_eq!(last == known.after, n_steps < 10);
    }
}
