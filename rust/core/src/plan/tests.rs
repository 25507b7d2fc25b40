//! Plans of random problems, judged by an independent check of legality and by exhaustive search.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::budget::Budget;
use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::strategy::Strategy;

use super::portfolio::{Entry, PORTFOLIO, Question};
use super::*;
use crate::rows::Rows;

/// A node: its group (-1: none), the variables it reads (indices modulo what exists), whether its
/// result is a result of the graph.
type NodeSeed = (i32, Vec<u16>, bool);

/// Nodes in topological order, over a few roots, of which some are constants and some may bring
/// siblings together.
fn problems(max_nodes: usize, n_groups: i32) -> impl Strategy<Value = FusionProblem> {
    let node = (-1..n_groups, prop::collection::vec(any::<u16>(), 1..4), prop::bool::weighted(0.1));
    let nodes = prop::collection::vec(node, 0..max_nodes);
    (nodes, 1usize..4, prop::collection::vec(any::<u8>(), 4), 2u32..12).prop_map(
        move |(nodes, n_roots, kinds, max_operands)| {
            let limit = if max_operands > 8 { 1024 } else { max_operands };
            let mut arrays = build(&nodes, n_roots, &kinds, n_groups, limit);
            arrays.add_sinks_to_results();
            FusionProblem::new(arrays, &Budget::unlimited()).unwrap()
        },
    )
}

/// [`problems`] with orders beside the data flow, and with nodes whose results nobody reads.
fn wild_problems(max_nodes: usize, n_groups: i32) -> impl Strategy<Value = FusionProblem> {
    let node = (-1..n_groups, prop::collection::vec(any::<u16>(), 1..4), prop::bool::weighted(0.1));
    let nodes = prop::collection::vec(node, 0..max_nodes);
    let orderings = prop::collection::vec((any::<u16>(), any::<u16>()), 0..6);
    (nodes, 1usize..4, prop::collection::vec(any::<u8>(), 4), 2u32..12, orderings, any::<bool>())
        .prop_map(move |(nodes, n_roots, kinds, max_operands, orderings, has_dead)| {
            let limit = if max_operands > 8 { 1024 } else { max_operands };
            let mut arrays = build(&nodes, n_roots, &kinds, n_groups, limit);
            if !has_dead {
                arrays.add_sinks_to_results();
            }
            for (a, b) in orderings {
                let n_nodes = nodes.len().max(1) as u32;
                let (a, b) = (u32::from(a) % n_nodes, u32::from(b) % n_nodes);
                if a != b {
                    arrays.orderings.push((a.min(b), a.max(b)));
                }
            }
            FusionProblem::new(arrays, &Budget::unlimited()).unwrap()
        })
}

impl ProblemArrays {
    /// What no node reads is a result of the graph, as in all graphs of PyTensor.
    fn add_sinks_to_results(&mut self) {
        let used: BTreeSet<u32> = self.inputs.items().iter().copied().collect();
        for &variable in self.outputs.items() {
            self.results[variable as usize] |= !used.contains(&variable);
        }
    }
}

fn build(
    nodes: &[NodeSeed],
    n_roots: usize,
    kinds: &[u8],
    n_groups: i32,
    max_operands: u32,
) -> ProblemArrays {
    let (mut inputs, mut outputs) = (Rows::empty(), Rows::empty());
    let mut groups = Vec::new();
    let mut results = vec![false; n_roots + nodes.len()];
    // Dense groups: below the number of nodes.
    let n_groups = n_groups.min(nodes.len() as i32).max(1);
    for (i, (group, reads, is_result)) in nodes.iter().enumerate() {
        let known = n_roots + i;
        // Later variables more often than earlier ones, as in real graphs.
        let pick =
            |&seed: &u16| (known - 1 - (seed as usize % known).min(seed as usize % 7)) as u32;
        inputs.push(reads.iter().map(pick)).unwrap();
        outputs.push([known as u32]).unwrap();
        groups.push((*group).min(n_groups - 1));
        results[known] = *is_result;
    }
    let root_kind = |root: usize| kinds[root % kinds.len()];
    let links = (0..results.len())
        .map(|variable| match variable.checked_sub(n_roots) {
            None if root_kind(variable) % 3 == 0 => -1,
            None => (root_kind(variable) / 3) as i32 % n_groups,
            Some(node) => groups[node],
        })
        .collect();
    let constants = (0..results.len()).map(|v| v < n_roots && root_kind(v) % 5 == 0).collect();
    ProblemArrays {
        n_variables: results.len(),
        inputs,
        outputs,
        groups,
        links,
        constants,
        results,
        orderings: Vec::new(),
        max_operands,
    }
}

pub(super) fn connected(problem: &FusionProblem, members: &BTreeSet<u32>) -> bool {
    let first = *members.first().unwrap();
    let group = problem.group(first);
    let touches = |a: u32, b: u32| {
        problem.inputs(b).contains(&problem.output(a))
            || problem.inputs(a).contains(&problem.output(b))
            || problem
                .inputs(a)
                .iter()
                .any(|&v| problem.link(v) == group && problem.inputs(b).contains(&v))
    };
    let (mut reached, mut stack) = (BTreeSet::from([first]), vec![first]);
    while let Some(node) = stack.pop() {
        for &other in members {
            if !reached.contains(&other) && touches(node, other) {
                reached.insert(other);
                stack.push(other);
            }
        }
    }
    reached.len() == members.len()
}

/// Interface of a set of members, from the definition.
pub(super) fn naive_interface(
    problem: &FusionProblem,
    members: &BTreeSet<u32>,
) -> (BTreeSet<u32>, BTreeSet<u32>) {
    let inside = |v: u32| problem.owner(v) != NONE && members.contains(&problem.owner(v));
    let inputs = members.iter().flat_map(|&n| problem.inputs(n)).copied().filter(|&v| !inside(v));
    let outputs = members.iter().copied().filter(|&n| {
        let output = problem.output(n);
        problem.is_result(output)
            || (0..problem.n_nodes() as u32)
                .any(|c| problem.inputs(c).contains(&output) && !members.contains(&c))
    });
    (inputs.collect(), outputs.collect())
}

fn naive_cost(problem: &FusionProblem, clusters: &[BTreeSet<u32>]) -> Cost {
    let mut cost = Cost::default();
    for members in clusters {
        let (inputs, outputs) = naive_interface(problem, members);
        cost.kernels += 1;
        cost.arrays += inputs.iter().filter(|&&v| !problem.is_constant(v)).count() as u64;
        cost.arrays += outputs.len() as u64;
    }
    cost
}

/// What the blocks of one component cost.
fn cost_of_component(
    problem: &FusionProblem,
    partition: &Partition,
    components: &parts::Components,
    component: u32,
) -> Cost {
    let blocks = partition.names().filter(|&name| components.of(name) == component);
    let blocks: Vec<BTreeSet<u32>> = blocks
        .filter(|&name| problem.group(name).is_some())
        .map(|name| partition.members(name).iter().copied().collect())
        .collect();
    naive_cost(problem, &blocks)
}

fn clusters_of(problem: &FusionProblem, plan: &Plan) -> Vec<BTreeSet<u32>> {
    let mut clusters: Vec<BTreeSet<u32>> =
        plan.clusters.iter().map(|c| c.nodes.iter().copied().collect()).collect();
    let fused: BTreeSet<u32> = clusters.iter().flatten().copied().collect();
    let lone = (0..problem.n_nodes() as u32)
        .filter(|&n| problem.group(n).is_some() && !fused.contains(&n));
    clusters.extend(lone.map(|n| BTreeSet::from([n])));
    clusters
}

fn check(problem: &FusionProblem, plan: &Plan) {
    let mut cluster_of = BTreeMap::new();
    for (index, cluster) in plan.clusters.iter().enumerate() {
        let members: BTreeSet<u32> = cluster.nodes.iter().copied().collect();
        assert!(members.len() >= 2 && members.len() == cluster.nodes.len());
        let groups: BTreeSet<_> = members.iter().map(|&n| problem.group(n)).collect();
        assert!(groups.len() == 1 && !groups.contains(&None), "one group per cluster");
        assert!(connected(problem, &members), "{members:?} is not connected");
        let (inputs, outputs) = naive_interface(problem, &members);
        assert!(inputs.len() + outputs.len() <= problem.max_operands());
        assert_eq!(cluster.interface.inputs.iter().copied().collect::<BTreeSet<_>>(), inputs);
        assert_eq!(cluster.interface.inputs.len(), inputs.len());
        assert_eq!(cluster.interface.outputs, outputs.into_iter().collect::<Vec<_>>());
        for node in members {
            assert_eq!(cluster_of.insert(node, index), None, "node {node} is in two clusters");
        }
    }
    // Every cluster follows those that it depends on, by whatever path: no cycle.
    let mut latest = vec![None; problem.n_nodes()];
    let mut quotient: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for node in 0..problem.n_nodes() as u32 {
        let mut before: BTreeSet<usize> = BTreeSet::new();
        for &source in problem.graph().predecessors(node) {
            before.extend(latest[source as usize].clone().unwrap_or_default());
        }
        if let Some(&own) = cluster_of.get(&node) {
            quotient.entry(own).or_default().extend(before.iter().filter(|&&c| c != own));
            before.insert(own);
        }
        latest[node as usize] = Some(before);
    }
    for (cluster, before) in quotient {
        assert!(before.iter().all(|&other| other < cluster), "cluster {cluster} is out of order");
    }
    let clusters = clusters_of(problem, plan);
    assert_eq!(naive_cost(problem, &clusters), plan.after);
    assert!(plan.after <= plan.before);
}

/// The cheapest legal plan: every partition of the grouped nodes, for small problems.
fn optimum(problem: &FusionProblem) -> Cost {
    let nodes: Vec<u32> =
        (0..problem.n_nodes() as u32).filter(|&n| problem.group(n).is_some()).collect();
    let mut best = None;
    extend(problem, &nodes, &mut Vec::new(), &mut best);
    best.unwrap_or_default()
}

fn extend(
    problem: &FusionProblem,
    rest: &[u32],
    clusters: &mut Vec<BTreeSet<u32>>,
    best: &mut Option<Cost>,
) {
    let Some((&node, rest)) = rest.split_first() else {
        let cost = naive_cost(problem, clusters);
        if best.is_none_or(|best| cost < best) && legal(problem, clusters) {
            *best = Some(cost);
        }
        return;
    };
    for i in 0..clusters.len() {
        if problem.group(node) == problem.group(*clusters[i].first().unwrap()) {
            clusters[i].insert(node);
            extend(problem, rest, clusters, best);
            clusters[i].remove(&node);
        }
    }
    clusters.push(BTreeSet::from([node]));
    extend(problem, rest, clusters, best);
    clusters.pop();
}

fn legal(problem: &FusionProblem, clusters: &[BTreeSet<u32>]) -> bool {
    let shape_ok = clusters.iter().filter(|members| members.len() > 1).all(|members| {
        let (inputs, outputs) = naive_interface(problem, members);
        inputs.len() + outputs.len() <= problem.max_operands() && connected(problem, members)
    });
    let mut names = vec![NONE; problem.n_nodes()];
    for members in clusters {
        for &node in members {
            names[node as usize] = *members.first().unwrap();
        }
    }
    shape_ok && Partition::from_names(names).quotient_order(problem, &Budget::unlimited()).is_ok()
}

/// A problem in which node `i` makes variable `n_roots + i`, everything may be fused in the group
/// given, and roots and results may bring siblings of any group 0 together.
fn problem(n_roots: usize, nodes: &[(i32, &[u32])], max_operands: u32) -> FusionProblem {
    FusionProblem::new(arrays(n_roots, nodes, max_operands), &Budget::unlimited()).unwrap()
}

/// The arrays of [`problem`].
fn arrays(n_roots: usize, nodes: &[(i32, &[u32])], max_operands: u32) -> ProblemArrays {
    let (mut inputs, mut outputs) = (Rows::empty(), Rows::empty());
    for (i, (_, reads)) in nodes.iter().enumerate() {
        inputs.push(reads.iter().copied()).unwrap();
        outputs.push([(n_roots + i) as u32]).unwrap();
    }
    let n_variables = n_roots + nodes.len();
    let mut results = vec![true; n_variables];
    inputs.items().iter().for_each(|&v| results[v as usize] = false);
    ProblemArrays {
        n_variables,
        inputs,
        outputs,
        groups: nodes.iter().map(|&(group, _)| group).collect(),
        links: vec![0; n_variables],
        constants: vec![false; n_variables],
        results,
        orderings: Vec::new(),
        max_operands,
    }
}

/// The partition after moves, without a limit of effort; those that save nothing everywhere or
/// nowhere at first.
pub(super) fn moved(problem: &FusionProblem, partition: &Partition, ties: bool) -> Partition {
    let order = partition.quotient_order(problem, &Budget::unlimited()).unwrap();
    let doubtful = vec![ties; problem.n_nodes()];
    let moved = moves::move_nodes(
        problem,
        partition,
        &order,
        &doubtful,
        &Budget::unlimited().with_effort(u64::MAX),
    )
    .unwrap();
    moved.unwrap_or_else(|| partition.clone())
}

/// What each strategy that applies starts from.
fn starts(problem: &FusionProblem) -> impl Iterator<Item = (super::Strategy, Partition)> {
    PORTFOLIO.iter().filter_map(move |entry| {
        let question = Question { problem, strict: None, budget: &Budget::unlimited() };
        (entry.applies)(&question).then(|| (entry.strategy, (entry.start)(&question).unwrap()))
    })
}

/// The entry of a strategy, with another effort.
fn entry(strategy: super::Strategy, effort: u64) -> Entry {
    let known = PORTFOLIO.into_iter().find(|entry| entry.strategy == strategy).unwrap();
    Entry { effort, ..known }
}

fn nodes_of(plan: &Plan) -> Vec<Vec<u32>> {
    plan.clusters.iter().map(|cluster| cluster.nodes.clone()).collect()
}

#[test]
fn nothing_to_plan() {
    let empty = plan(&problem(1, &[], 1024), None, &Budget::unlimited()).unwrap();
    assert_eq!((empty.before, empty.after), (Cost::default(), Cost::default()));
    let barrier = plan(&problem(1, &[(-1, &[0])], 1024), None, &Budget::unlimited()).unwrap();
    assert!(barrier.clusters.is_empty());
    let lone = plan(&problem(1, &[(0, &[0])], 1024), None, &Budget::unlimited()).unwrap();
    assert!(lone.clusters.is_empty());
    assert_eq!(lone.after, Cost { kernels: 1, arrays: 2 });
}

#[test]
fn a_barrier_between_two_nodes_keeps_them_apart() {
    // exp -> sum -> div and exp -> div.
    let problem = problem(1, &[(0, &[0]), (-1, &[1]), (0, &[1, 2])], 1024);
    let plan = plan(&problem, None, &Budget::unlimited()).unwrap();
    assert!(plan.clusters.is_empty());
    assert_eq!(
        explain(&problem, &plan.partition, 0, 2, &Budget::unlimited()),
        Ok(Verdict::Cycle(vec![0, 1, 2]))
    );
}

#[test]
fn clusters_that_are_legal_alone_but_not_together() {
    // a1 -> b1 and b2 -> a2, where the a share an operand and so do the b.
    let mut arrays = ProblemArrays {
        n_variables: 6,
        inputs: Rows::empty(),
        outputs: Rows::empty(),
        groups: vec![0, 1, 1, 0],
        links: vec![0, 1, -1, -1, -1, -1],
        constants: vec![false; 6],
        results: vec![false, false, false, true, false, true],
        orderings: Vec::new(),
        max_operands: 1024,
    };
    for (node, reads) in [[0, 0], [1, 2], [1, 1], [0, 4]].into_iter().enumerate() {
        arrays.inputs.push(reads).unwrap();
        arrays.outputs.push([node as u32 + 2]).unwrap();
    }
    let problem = FusionProblem::new(arrays, &Budget::unlimited()).unwrap();
    let plan = plan(&problem, None, &Budget::unlimited()).unwrap();
    check(&problem, &plan);
    assert_eq!(plan.after.kernels, 3);
}

#[test]
fn orderings_between_the_parts_of_a_group() {
    // 0 -> 2 and 1 -> 3, where 0 comes before 3 and 1 before 2: either pair, not both.
    let nodes: [(i32, &[u32]); 6] =
        [(0, &[0]), (0, &[1]), (0, &[2]), (0, &[3]), (1, &[0]), (1, &[6])];
    for max_operands in [1024, 2] {
        let mut arrays = arrays(2, &nodes, max_operands);
        arrays.links.fill(-1);
        arrays.orderings = vec![(0, 3), (1, 2)];
        let problem = FusionProblem::new(arrays, &Budget::unlimited()).unwrap();
        for direction in [typed::Direction::FromSources, typed::Direction::FromSinks] {
            let partition =
                typed::fuse_by_depth(&problem, direction, &Budget::unlimited()).unwrap();
            assert!(partition.quotient_order(&problem, &Budget::unlimited()).is_ok());
        }
        let plan = plan(&problem, None, &Budget::unlimited()).unwrap();
        check(&problem, &plan);
        assert_eq!(plan.after.kernels, 4);
    }
}

#[test]
fn orderings_between_the_parts_of_a_piece() {
    // Too many operands for all: what is cut off has the parts of the test above.
    let nodes: [(i32, &[u32]); 5] =
        [(0, &[0]), (0, &[0]), (0, &[5]), (0, &[6]), (0, &[7, 8, 1, 2, 3, 4])];
    for max_operands in 2..6 {
        let mut arrays = arrays(5, &nodes, max_operands);
        arrays.links.fill(-1);
        arrays.orderings = vec![(0, 3), (1, 2)];
        let problem = FusionProblem::new(arrays, &Budget::unlimited()).unwrap();
        let whole = Partition::from_names(vec![0; 5]);
        let cut = split::split_oversized(&problem, whole, &Budget::unlimited()).unwrap();
        assert!(cut.quotient_order(&problem, &Budget::unlimited()).is_ok(), "{max_operands}");
    }
}

#[test]
fn a_cluster_whose_last_result_nobody_reads() {
    let mut arrays = arrays(1, &[(0, &[0]), (0, &[1]), (0, &[0])], 1024);
    arrays.results.fill(false);
    let problem = FusionProblem::new(arrays, &Budget::unlimited()).unwrap();
    let plan = plan(&problem, None, &Budget::unlimited()).unwrap();
    check(&problem, &plan);
    assert_eq!(plan.after.kernels, 1);
}

#[test]
fn a_partition_with_a_cycle_names_the_blocks_of_one() {
    // 0 -> 1 -> 2: the block of 0 and 2 waits for 1, and 1 for it.
    let problem = problem(1, &[(0, &[0]), (-1, &[1]), (0, &[2])], 1024);
    let partition = Partition::from_names(vec![0, NONE, 0]);
    let error = partition.quotient_order(&problem, &Budget::unlimited()).unwrap_err();
    assert_eq!(error, crate::Error::Cycle { nodes: vec![0, 1] });
}

#[test]
fn a_cluster_with_too_many_operands_is_cut() {
    // A chain of additions, each of a root of its own.
    let reads: Vec<[u32; 2]> = (0..9).map(|i| [if i == 0 { 9 } else { 9 + i }, i]).collect();
    let nodes: Vec<(i32, &[u32])> = reads.iter().map(|row| (0, &row[..])).collect();
    let problem = problem(10, &nodes, 4);
    let plan = plan(&problem, None, &Budget::unlimited()).unwrap();
    check(&problem, &plan);
    // Each kernel takes three inputs and gives one: two additions, or three with the last.
    assert_eq!(plan.after.kernels, 5);
}

#[test]
fn equal_kernels_have_equal_forms_wherever_they_stand() {
    // Two copies of exp(x) * y, the second with its operands' ids the other way round.
    let nodes: [(i32, &[u32]); 6] =
        [(0, &[0]), (0, &[4, 1]), (-1, &[5]), (-1, &[6]), (0, &[7]), (0, &[8, 2])];
    let problem = problem(4, &nodes, 1024);
    let plan = plan(&problem, None, &Budget::unlimited()).unwrap();
    assert_eq!(nodes_of(&plan), [vec![0, 1], vec![4, 5]]);
    let form = |cluster: usize, ops: [u32; 6], dtype: u32| {
        let op = |node: u32| Some(ops[node as usize]);
        canonical::canonical_form(
            &problem,
            &plan.clusters[cluster],
            op,
            |_| Some(dtype),
            &Budget::unlimited(),
        )
        .unwrap()
    };
    let kernel = |cluster, ops, dtype| {
        let form = form(cluster, ops, dtype);
        (form.dtypes, form.rows, form.outputs)
    };
    let ops = [7, 8, 0, 0, 7, 8];
    assert_eq!(kernel(0, ops, 1), kernel(1, ops, 1));
    assert_eq!(form(1, ops, 1).nodes, [4, 5]);
    assert_eq!(form(1, ops, 1).inputs, [7, 2]);
    assert_eq!(form(1, ops, 1).rows.inputs.items(), [0, 2, 1]);
    assert_eq!(form(1, ops, 1).outputs, [3]);
    assert_ne!(kernel(0, ops, 1), kernel(0, ops, 2));
    assert_ne!(kernel(0, ops, 1), kernel(1, [7, 8, 0, 0, 7, 9], 1));
}

#[test]
fn a_plan_knows_its_strategy() {
    let fused =
        plan(&problem(1, &[(0, &[0]), (0, &[1])], 1024), None, &Budget::unlimited()).unwrap();
    assert_eq!(fused.strategy, Some(super::Strategy::DepthFromSinks));
    assert!(fused.exhausted.is_empty());
    let unfused =
        plan(&problem(1, &[(0, &[0]), (-1, &[1]), (0, &[2])], 1024), None, &Budget::unlimited())
            .unwrap();
    assert_eq!((unfused.strategy, unfused.exhausted), (None, Vec::new()));
}

#[test]
fn efforts_that_do_not_suffice_are_told() {
    use super::Strategy::{DepthFromSinks, GrowthFromSinks, LargestSavingFirst};
    let problem = problem(1, &[(0, &[0]), (0, &[1]), (0, &[2])], 1024);
    let question = Question { problem: &problem, strict: None, budget: &Budget::unlimited() };
    let best = |portfolio: &[Entry]| {
        let found = portfolio::best_of(portfolio, &question).unwrap();
        (found.strategy, found.exhausted)
    };
    // What must run counts although it was not finished, what need not does not.
    let unfinished = [entry(GrowthFromSinks, 0), entry(DepthFromSinks, 0)];
    assert_eq!(best(&unfinished), (Some(GrowthFromSinks), vec![GrowthFromSinks, DepthFromSinks]));
    assert_eq!(best(&[entry(LargestSavingFirst, 0)]), (None, vec![LargestSavingFirst]));
    assert_eq!(best(&[entry(LargestSavingFirst, 100)]), (Some(LargestSavingFirst), vec![]));
    // Where growth and depth agree, the rest is left out.
    let agreed =
        [entry(GrowthFromSinks, 9), entry(DepthFromSinks, 9), entry(LargestSavingFirst, 0)];
    assert_eq!(best(&agreed), (Some(GrowthFromSinks), vec![]));
}

#[test]
fn a_start_that_a_bound_proves_is_the_plan() {
    let best = |problem: &FusionProblem| {
        let question = Question { problem, strict: None, budget: &Budget::unlimited() };
        portfolio::best(&question).unwrap()
    };
    // Two nodes, and one beyond a barrier.
    let found = best(&problem(1, &[(0, &[0]), (0, &[1]), (-1, &[2]), (0, &[2, 3])], 1024));
    assert_eq!((found.strategy, found.is_optimal), (Some(super::Strategy::DepthFromSinks), true));
    assert_eq!(found.cost, Cost { kernels: 2, arrays: 5 });
    // Nothing can be fused.
    let found = best(&problem(1, &[(0, &[0]), (-1, &[1]), (0, &[2])], 1024));
    assert_eq!((found.strategy, found.is_optimal), (None, true));
}

#[test]
fn names_of_strategies_differ() {
    let names: BTreeSet<_> = PORTFOLIO.iter().map(|entry| entry.strategy.name()).collect();
    assert_eq!(names.len(), PORTFOLIO.len());
}

#[test]
fn what_may_be_left_out_comes_last() {
    // Whether those that must run agree is known only after them.
    assert!(PORTFOLIO.is_sorted_by_key(|entry| !entry.must_run));
}

#[test]
fn contradictory_arrays_are_refused() {
    let good = ProblemArrays {
        n_variables: 2,
        inputs: Rows::new("inputs", vec![0, 1], vec![0]).unwrap(),
        outputs: Rows::new("outputs", vec![0, 1], vec![1]).unwrap(),
        groups: vec![0],
        links: vec![0, 0],
        constants: vec![false, false],
        results: vec![false, true],
        orderings: Vec::new(),
        max_operands: 4,
    };
    assert!(FusionProblem::new(good.clone(), &Budget::unlimited()).is_ok());
    let refused = |change: fn(&mut ProblemArrays)| {
        let mut arrays = good.clone();
        change(&mut arrays);
        FusionProblem::new(arrays, &Budget::unlimited()).unwrap_err().to_string()
    };
    assert!(refused(|a| a.groups.push(0)).contains("groups has 2;"));
    assert!(refused(|a| a.links.clear()).contains("links has 0;"));
    assert!(refused(|a| a.n_variables = 1).contains("links"));
    assert!(refused(|a| a.groups[0] = 5).contains("group 5 is outside"));
    assert!(refused(|a| a.orderings.push((0, 0))).contains("contradicts the order"));
    assert!(refused(|a| a.orderings.push((0, 9))).contains("9 is outside"));
    let cycle =
        |a: &mut ProblemArrays| a.inputs = Rows::new("inputs", vec![0, 1], vec![1]).unwrap();
    assert!(refused(cycle).contains("topological order"));
    let two = |a: &mut ProblemArrays| {
        a.outputs = Rows::new("outputs", vec![0, 2], vec![0, 1]).unwrap();
    };
    assert!(refused(two).contains("only a node with one output"));
    assert!(Rows::new("inputs", vec![0, 2], vec![0]).is_err());
    assert!(Rows::new("inputs", vec![1, 1], vec![0]).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn plans_are_legal(problem in wild_problems(40, 3)) {
        check(&problem, &plan(&problem, None, &Budget::unlimited()).unwrap());
    }

    #[test]
    fn plans_of_a_part_are_not_worse(
        (problem, keep) in problems(30, 2).prop_flat_map(|p| {
            let n = p.n_nodes();
            (Just(p), prop::collection::vec(any::<bool>(), n))
        })
    ) {
        let narrow = sinks::grow_from_sinks(&problem, |n| keep[n as usize], &Budget::unlimited()).unwrap();
        let narrow = split::split_oversized(&problem, narrow, &Budget::unlimited()).unwrap();
        let plan = plan(&problem, Some(&keep), &Budget::unlimited()).unwrap();
        check(&problem, &plan);
        prop_assert!(plan.after <= cost::cost(&problem, &narrow, &Budget::unlimited()).unwrap());
    }

    #[test]
    fn plans_are_not_better_than_the_best(problem in wild_problems(9, 2)) {
        let plan = plan(&problem, None, &Budget::unlimited()).unwrap();
        check(&problem, &plan);
        let best = optimum(&problem);
        prop_assert!(best <= plan.after);
        let floor = floor::floor(&problem, &Budget::unlimited()).unwrap().unwrap();
        prop_assert!(floor.kernels <= best.kernels && floor.arrays <= best.arrays);
        let question = Question { problem: &problem, strict: None, budget: &Budget::unlimited() };
        let found = portfolio::best(&question).unwrap();
        prop_assert!(!found.is_optimal || found.cost == best);
        prop_assert!(found.cost <= portfolio::best_of(&PORTFOLIO, &question).unwrap().cost);
    }

    #[test]
    fn nothing_more_can_be_merged(problem in wild_problems(24, 2)) {
        let plan = plan(&problem, None, &Budget::unlimited()).unwrap();
        let budget = Budget::unlimited();
        let mut explainer = Explainer::new(&problem, &plan.partition, &budget).unwrap();
        let n_nodes = problem.n_nodes() as u32;
        for (a, b) in (0..n_nodes).flat_map(|a| (0..n_nodes).map(move |b| (a, b))) {
            let verdict = explainer.explain(a, b).unwrap();
            prop_assert_eq!(&verdict, &explain(&problem, &plan.partition, a, b, &Budget::unlimited()).unwrap());
            let pair = [plan.partition.block(a), plan.partition.block(b)];
            let members: BTreeSet<u32> =
                pair.iter().flat_map(|&block| plan.partition.members(block)).copied().collect();
            match verdict {
                Verdict::Possible => prop_assert!(false, "{a} and {b} could be merged"),
                Verdict::Together => {
                    prop_assert_eq!(pair[0], pair[1]);
                    prop_assert!(members.len() > 1);
                }
                Verdict::Alone => prop_assert!(a == b && members.len() == 1),
                Verdict::NoGroup(node) => prop_assert!(problem.group(node).is_none()),
                Verdict::OtherGroup => prop_assert_ne!(problem.group(a), problem.group(b)),
                Verdict::NotConnected => prop_assert!(!connected(&problem, &members)),
                Verdict::OperandLimit(operands) => {
                    let (inputs, outputs) = naive_interface(&problem, &members);
                    prop_assert_eq!(operands, inputs.len() + outputs.len());
                    prop_assert!(operands > problem.max_operands());
                }
                Verdict::Cycle(path) => {
                    prop_assert!(members.contains(&path[0]));
                    prop_assert!(members.contains(&path[path.len() - 1]));
                    prop_assert!(path[1..path.len() - 1].iter().all(|n| !members.contains(n)));
                    prop_assert!(path.len() > 2);
                    for step in path.windows(2) {
                        prop_assert!(
                            problem.graph().successors(step[0]).contains(&step[1])
                                || plan.partition.block(step[0]) == plan.partition.block(step[1])
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_found_is_that_of_the_best_strategy_in_each_component(problem in wild_problems(40, 3)) {
        let question = Question { problem: &problem, strict: None, budget: &Budget::unlimited() };
        let found = portfolio::best_of(&PORTFOLIO, &question).unwrap();
        let components = parts::Components::new(&problem, &parts::parts(&problem, &Budget::unlimited()).unwrap(), &Budget::unlimited()).unwrap();
        let mut best = vec![None; components.len()];
        let mut cheapest = Cost::default();
        for entry in PORTFOLIO {
            let (strategy, must_run) = (entry.strategy, entry.must_run);
            let alone = portfolio::best_of(&[entry], &question).unwrap();
            prop_assert!(!must_run || found.cost <= alone.cost);
            if found.strategy == Some(strategy) {
                cheapest = alone.cost;
            }
            for (component, best) in (0u32..).zip(&mut best) {
                let is_same = components.members(component).iter().all(|&node| {
                    found.partition.block(node) == alone.partition.block(node)
                });
                let cost = cost_of_component(&problem, &alone.partition, &components, component);
                let best = best.get_or_insert((cost, false));
                if must_run && cost < best.0 {
                    *best = (cost, false);
                }
                best.1 |= is_same && cost <= best.0;
            }
        }
        // Each component is as some strategy has it, and no strategy that always runs has it cheaper.
        for (component, best) in (0u32..).zip(best) {
            let cost = cost_of_component(&problem, &found.partition, &components, component);
            prop_assert!(best.is_none_or(|(cheapest, is_some)| is_some && cost <= cheapest));
        }
        prop_assert!(found.strategy.is_none() || cheapest < found.unfused_cost);
        prop_assert_eq!(found.strategy.is_none(), found.cost == found.unfused_cost);
    }

    #[test]
    fn parts_are_doubtful_where_strategies_do_not_cost_the_same(problem in wild_problems(40, 3)) {
        use super::Strategy::{DepthFromSinks, DepthFromSources, GrowthFromSinks, LargestSavingFirst};
        let question = Question { problem: &problem, strict: None, budget: &Budget::unlimited() };
        // All of them count, and none stops the others.
        let strategies = [GrowthFromSinks, DepthFromSinks, DepthFromSources, LargestSavingFirst];
        let always = |strategy| Entry { applies: |_| true, must_run: true, ..entry(strategy, AMPLE) };
        let found = portfolio::best_of(&strategies.map(always), &question).unwrap();
        let mut candidates = Vec::new();
        for entry in strategies.map(always) {
            if (entry.start)(&question).unwrap().quotient_order(&problem, &Budget::unlimited()).is_ok() {
                candidates.push(portfolio::best_of(&[entry], &question).unwrap());
            }
        }
        // What fuses nothing is the same as nothing before the first that does.
        let merging = candidates.iter().position(|alone| alone.strategy.is_some());
        let counting = &candidates[merging.unwrap_or(candidates.len())..];
        let parts = parts::parts(&problem, &Budget::unlimited()).unwrap();
        let mut expected = vec![false; problem.n_nodes()];
        for part in parts.names().filter(|&part| problem.group(part).is_some()) {
            let costs = counting.iter().map(|alone| {
                let blocks = alone.partition.names().filter(|&name| parts.block(name) == part);
                let members = |name| alone.partition.members(name).iter().copied().collect();
                naive_cost(&problem, &blocks.map(members).collect::<Vec<BTreeSet<u32>>>())
            });
            let is_doubtful = costs.collect::<BTreeSet<_>>().len() > 1;
            parts.members(part).iter().for_each(|&node| expected[node as usize] = is_doubtful);
        }
        let is_any = expected.contains(&true);
        prop_assert_eq!(found.doubtful, if is_any { expected } else { Vec::new() });
    }

    #[test]
    fn moves_keep_plans_legal_and_save_arrays(problem in wild_problems(40, 3)) {
        for (_, start) in starts(&problem) {
            if start.quotient_order(&problem, &Budget::unlimited()).is_err() {
                continue;
            }
            let split = split::split_oversized(&problem, start, &Budget::unlimited()).unwrap();
            let before = cost::cost(&problem, &split, &Budget::unlimited()).unwrap();
            for ties in [false, true] {
                let partition = moved(&problem, &split, ties);
                let after = cost::cost(&problem, &partition, &Budget::unlimited()).unwrap();
                prop_assert_eq!(after < before, partition != split);
                prop_assert!(after.arrays <= before.arrays && after.kernels <= before.kernels);
                let order = partition.quotient_order(&problem, &Budget::unlimited()).unwrap();
                let clusters =
                    clusters(&problem, &partition, &order, &Budget::unlimited()).unwrap();
                let before = cost::cost(&problem, &Partition::singletons(problem.n_nodes()), &Budget::unlimited()).unwrap();
                let (strategy, exhausted) = (None, Vec::new());
                check(&problem, &Plan { clusters, before, after, partition, strategy, exhausted });
            }
        }
    }

    #[test]
    fn the_plan_is_no_worse_than_before_moves(problem in wild_problems(40, 3)) {
        let question = Question { problem: &problem, strict: None, budget: &Budget::unlimited() };
        let before = portfolio::best(&question).unwrap();
        let fast = plan(&problem, None, &Budget::unlimited()).unwrap();
        check(&problem, &fast);
        prop_assert!(fast.after <= before.cost);
        prop_assert_eq!(fast.after < before.cost, fast.partition != before.partition);
        prop_assert_eq!(&plan(&problem, None, &Budget::unlimited()).unwrap(), &fast);
        let (best, _) = plan_optimally(&problem, None, &Budget::unlimited().with_effort(0)).unwrap();
        check(&problem, &best);
        prop_assert!(best.after <= fast.after);
    }

    #[test]
    fn components_do_not_meet(problem in wild_problems(30, 3)) {
        let parts = parts::parts(&problem, &Budget::unlimited()).unwrap();
        let components = parts::Components::new(&problem, &parts, &Budget::unlimited()).unwrap();
        let nodes: Vec<u32> = (0..problem.n_nodes() as u32).collect();
        for name in parts.names().filter(|&name| problem.group(name).is_some()) {
            let members: BTreeSet<u32> = parts.members(name).iter().copied().collect();
            prop_assert!(connected(&problem, &members));
            prop_assert!(members.iter().all(|&node| components.of(node) == components.of(name)));
        }
        // Nodes of one component reach one another when parts are points.
        let blocks = parts.blocks();
        let mut reach = vec![vec![false; nodes.len()]; nodes.len()];
        for &a in &nodes {
            reach[a as usize][a as usize] = true;
        }
        for (a, b) in problem.graph().edges() {
            reach[blocks[a as usize] as usize][blocks[b as usize] as usize] = true;
        }
        for &via in &nodes {
            for &a in &nodes {
                for &b in &nodes {
                    let (a, b, via) = (a as usize, b as usize, via as usize);
                    reach[a][b] |= reach[a][via] && reach[via][b];
                }
            }
        }
        for (&a, &b) in nodes.iter().flat_map(|a| nodes.iter().map(move |b| (a, b))) {
            let (p, q) = (blocks[a as usize] as usize, blocks[b as usize] as usize);
            prop_assert_eq!(components.of(a) == components.of(b), reach[p][q] && reach[q][p]);
            prop_assert!(!reach[p][q] || components.of(a) <= components.of(b));
        }
    }

    #[test]
    fn each_strategy_alone_is_legal(problem in wild_problems(40, 3)) {
        for (strategy, start) in starts(&problem) {
            // Growth from the sinks does not know of orderings.
            if problem.has_orderings() && start.quotient_order(&problem, &Budget::unlimited()).is_err() {
                use super::Strategy::{GrowthFromSinks, StrictGrowthFromSinks};
                prop_assert!([GrowthFromSinks, StrictGrowthFromSinks].contains(&strategy));
                continue;
            }
            let split = split::split_oversized(&problem, start, &Budget::unlimited()).unwrap();
            let before = cost::cost(&problem, &split, &Budget::unlimited()).unwrap();
            let (partition, _) = improve::improve(&problem, split, &Budget::unlimited().with_effort(u64::MAX)).unwrap();
            let after = cost::cost(&problem, &partition, &Budget::unlimited()).unwrap();
            prop_assert!(after <= before);
            let order = partition.quotient_order(&problem, &Budget::unlimited()).unwrap();
            let clusters =
                    clusters(&problem, &partition, &order, &Budget::unlimited()).unwrap();
            let singletons = Partition::singletons(problem.n_nodes());
            let before = cost::cost(&problem, &singletons, &Budget::unlimited()).unwrap();
            let (strategy, exhausted) = (None, Vec::new());
            check(&problem, &Plan { clusters, before, after, partition, strategy, exhausted });
        }
    }
}

/// How often and by how much each strategy misses the optimum, for the notes of the planner.
#[test]
#[ignore = "a measurement: cargo test --release -- --ignored --nocapture gap"]
fn gap_to_the_optimum() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut tally: BTreeMap<String, [u64; 4]> = BTreeMap::new();
    for _ in 0..3000 {
        let problem = problems(10, 2).new_tree(&mut runner).unwrap().current();
        let best = optimum(&problem);
        let mut add = |strategy: String, cost: Cost| {
            let row = tally.entry(strategy).or_default();
            row[0] += 1;
            row[1] += u64::from(cost > best);
            row[2] += cost.kernels - best.kernels;
            row[3] += if cost.kernels == best.kernels { cost.arrays - best.arrays } else { 0 };
        };
        add("portfolio".into(), plan(&problem, None, &Budget::unlimited()).unwrap().after);
        for (strategy, start) in starts(&problem) {
            let split = split::split_oversized(&problem, start, &Budget::unlimited()).unwrap();
            let (improved, _) =
                improve::improve(&problem, split, &Budget::unlimited().with_effort(u64::MAX))
                    .unwrap();
            add(
                strategy.name().into(),
                cost::cost(&problem, &improved, &Budget::unlimited()).unwrap(),
            );
        }
    }
    println!("strategy: problems, not optimal, kernels too many, arrays too many at equal kernels");
    for (strategy, row) in tally {
        println!("{strategy}: {row:?}");
    }
}
