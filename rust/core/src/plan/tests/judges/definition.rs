//! Legality and costs of plans from the definition; and the best of all plans of a small problem.

use std::collections::{BTreeMap, BTreeSet};

use crate::budget::Budget;
use crate::plan::problem::parts;
use crate::plan::{Cost, FusionProblem, NONE, Partition, Plan};

pub(in crate::plan) fn connected(problem: &FusionProblem, members: &BTreeSet<u32>) -> bool {
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
pub(in crate::plan) fn naive_interface(
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

pub(in crate::plan) fn naive_cost(problem: &FusionProblem, clusters: &[BTreeSet<u32>]) -> Cost {
    let mut cost = Cost::default();
    for members in clusters {
        let (inputs, outputs) = naive_interface(problem, members);
        cost.kernels += 1;
        cost.arrays += inputs.iter().filter(|&&v| !problem.is_constant(v)).count() as u64;
        cost.arrays += outputs.len() as u64;
    }
    cost
}

/// The cost of the blocks of one component.
pub(in crate::plan) fn cost_of_component(
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

pub(in crate::plan) fn check(problem: &FusionProblem, plan: &Plan) {
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
    // Every cluster comes after those that it depends on, by any path: no cycle.
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
pub(in crate::plan) fn optimum(problem: &FusionProblem) -> Cost {
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
