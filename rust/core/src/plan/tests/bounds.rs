//! Bounds compared with their definitions, and the effort that they take.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::component::components;
use super::problems::arrays::arrays_of_data;
use super::problems::random::{Random, random_problems};
use crate::budget::Budget;
use crate::plan::problem::cost::Interfaces;
use crate::plan::problem::parts;
use crate::plan::proof::bounds::{Joint, Levels, kernels_by_limit};
use crate::plan::proof::component::Component;
use crate::plan::proof::floor;
use crate::plan::proof::masks::Mask;
use crate::plan::proof::relations::{Scratch, refine};
use crate::plan::*;

/// Problems of one part in which most results are read once: each node has operands of its own, and
/// few nodes share one, or are results of the graph.
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
        let mut arrays = arrays_of_data(n_roots as usize, &nodes, 2 + random.below(5) as u32);
        if random.percent(30) {
            arrays.results[n_roots as usize + random.below(n_nodes as usize)] = true;
        }
        (arrays.clone(), FusionProblem::new(arrays, &Budget::unlimited()).unwrap())
    })
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
            // A link is only one operand more where two nodes read the same, or a result that is
            // read is kept.
            let is_cheap = outside.iter().any(|&v| readers_in(v) > 1)
                || own.iter().any(|&v| readers_in(v) > 1 || (readers_in(v) == 1 && is_needed(v)));
            let per_link = if is_cheap { 1 } else { 2 };
            let longest = members.iter().map(|&n| arrays.inputs.row(n).len() + 1).max().unwrap();
            let limit = longest.max(arrays.max_operands as usize);
            // k kernels with at most `limit` operands each, and k - 1 links between them.
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
    /// The minimum, over all sequences, of the largest estimate on the way.
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
            // The largest number of times that a path leaves the part on its way to each node.
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

/// Two recursions over the same vectors, one from each end, with sums in between: each product is
/// in a part with the product of the other recursion that reads the same vector.
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
    let mut arrays = arrays_of_data(n_roots as usize, &nodes, 1024);
    arrays.links[..n_roots as usize].fill(0);
    FusionProblem::new(arrays, &Budget::unlimited()).unwrap()
}

#[test]
fn the_joint_bound_takes_no_more_than_its_effort_and_asks_as_often() {
    /// The largest number of times that the bound asks whether to go on.
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
            // A plan that takes each part twice, but the last once, is legal, so the bound is not
            // above that; more effort never lowers the bound.
            assert!(last <= found && found < 2 * n_parts as u64, "{found}");
            last = found;
            // One unit of effort is 64 words, and the bound asks after at most 2^16 of them and
            // those of a step.
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
