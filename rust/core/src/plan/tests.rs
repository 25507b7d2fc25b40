//! Plans of random problems, judged by an independent check of legality and by exhaustive search.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

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
            build(&nodes, n_roots, &kinds, n_groups, limit)
        },
    )
}

fn build(
    nodes: &[NodeSeed],
    n_roots: usize,
    kinds: &[u8],
    n_groups: i32,
    max_operands: u32,
) -> FusionProblem {
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
        inputs.push(reads.iter().map(pick));
        outputs.push([known as u32]);
        groups.push((*group).min(n_groups - 1));
        results[known] = *is_result;
    }
    let used: BTreeSet<u32> = inputs.items().iter().copied().collect();
    for (variable, is_result) in (0u32..).zip(&mut results).skip(n_roots) {
        *is_result |= !used.contains(&variable);
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
    FusionProblem::new(ProblemArrays {
        n_variables: results.len(),
        inputs,
        outputs,
        groups,
        links,
        constants,
        results,
        orderings: Vec::new(),
        max_operands,
    })
    .unwrap()
}

fn connected(problem: &FusionProblem, members: &BTreeSet<u32>) -> bool {
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
fn naive_interface(
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
    shape_ok && Partition::from_names(names).quotient_order(problem).is_ok()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn plans_are_legal(problem in problems(40, 3)) {
        check(&problem, &plan(&problem, None).unwrap());
    }

    #[test]
    fn plans_of_a_part_are_not_worse(
        (problem, keep) in problems(30, 2).prop_flat_map(|p| {
            let n = p.n_nodes();
            (Just(p), prop::collection::vec(any::<bool>(), n))
        })
    ) {
        let narrow = sinks::grow_from_sinks(&problem, |n| keep[n as usize], usize::MAX).unwrap();
        let narrow = split::split_oversized(&problem, Partition::from_names(narrow));
        let plan = plan(&problem, Some(&keep)).unwrap();
        check(&problem, &plan);
        prop_assert!(plan.after <= cost::cost(&problem, &narrow));
    }

    #[test]
    fn plans_are_not_better_than_the_best(problem in problems(9, 2)) {
        let plan = plan(&problem, None).unwrap();
        check(&problem, &plan);
        let best = optimum(&problem);
        prop_assert!(best <= plan.after);
        prop_assert!(typed::fewest_kernels(&problem) <= best.kernels);
    }

    #[test]
    fn nothing_more_can_be_merged(problem in problems(24, 2)) {
        let plan = plan(&problem, None).unwrap();
        let n_nodes = problem.n_nodes() as u32;
        for (a, b) in (0..n_nodes).flat_map(|a| (0..n_nodes).map(move |b| (a, b))) {
            let verdict = explain(&problem, &plan.partition, a, b);
            let pair = [plan.partition.block(a), plan.partition.block(b)];
            let members: BTreeSet<u32> =
                pair.iter().flat_map(|&block| plan.partition.members(block)).copied().collect();
            match verdict {
                Verdict::Possible => prop_assert!(false, "{a} and {b} could be merged"),
                Verdict::Together => prop_assert_eq!(pair[0], pair[1]),
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
    fn each_order_alone_is_legal(problem in problems(40, 3)) {
        for order in Order::ALL {
            let Some(start) = order.start(&problem, None).unwrap() else { continue };
            let split = split::split_oversized(&problem, start);
            let before = cost::cost(&problem, &split);
            let (partition, _) = improve::improve(&problem, split, u64::MAX).unwrap();
            let after = cost::cost(&problem, &partition);
            prop_assert!(after <= before);
            let clusters = clusters(&problem, &partition).unwrap();
            let singletons = Partition::singletons(problem.n_nodes());
            let before = cost::cost(&problem, &singletons);
            let order = order.name();
            check(&problem, &Plan { clusters, before, after, order, partition });
        }
    }
}

/// How often and by how much each order misses the optimum, for the notes of the planner.
#[test]
#[ignore = "a measurement: cargo test --release -- --ignored --nocapture gap"]
fn gap_to_the_optimum() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut tally: BTreeMap<&str, [u64; 4]> = BTreeMap::new();
    for _ in 0..3000 {
        let problem = problems(10, 2).new_tree(&mut runner).unwrap().current();
        let best = optimum(&problem);
        let mut add = |order, cost: Cost| {
            let row = tally.entry(order).or_default();
            row[0] += 1;
            row[1] += u64::from(cost > best);
            row[2] += cost.kernels - best.kernels;
            row[3] += if cost.kernels == best.kernels { cost.arrays - best.arrays } else { 0 };
        };
        add("portfolio", plan(&problem, None).unwrap().after);
        for order in Order::ALL {
            let Some(start) = order.start(&problem, None).unwrap() else { continue };
            let split = split::split_oversized(&problem, start);
            let (improved, _) = improve::improve(&problem, split, u64::MAX).unwrap();
            add(order.name(), cost::cost(&problem, &improved));
        }
    }
    println!("order: problems, not optimal, kernels too many, arrays too many at equal kernels");
    for (order, row) in tally {
        println!("{order}: {row:?}");
    }
}
