//! Public functions reject arguments that make no sense, and do not panic.

use crate::budget::Budget;
use crate::error::Error;
use crate::graph::NodeId;
use crate::plan::canonical::canonical_form;
use crate::plan::problem::cost::{self, Interfaces};
use crate::plan::*;
use crate::rows::Rows;

/// Two nodes, the second of which reads the first; the first has no result if `has_first` is false.
fn pair(has_first: bool) -> FusionProblem {
    let (mut inputs, mut outputs) = (Rows::empty(), Rows::empty());
    inputs.push([0]).unwrap();
    outputs.push(has_first.then_some(1)).unwrap();
    inputs.push([u32::from(has_first)]).unwrap();
    outputs.push([2]).unwrap();
    FusionProblem::new(
        ProblemArrays {
            n_variables: 3,
            inputs,
            outputs,
            groups: vec![if has_first { 0 } else { -1 }, 0],
            links: vec![-1; 3],
            constants: vec![false; 3],
            results: vec![false; 3],
            orderings: Vec::new(),
            max_operands: 8,
        },
        &Budget::unlimited(),
    )
    .unwrap()
}

#[test]
fn partitions_of_other_nodes_are_refused() {
    let problem = pair(true);
    for n_nodes in [0, 1, 3] {
        let other = Partition::singletons(n_nodes);
        let mismatch = |error: Option<Error>| {
            assert!(matches!(error, Some(Error::LengthMismatch { .. })), "{n_nodes}: {error:?}");
        };
        mismatch(other.quotient_order(&problem, &Budget::unlimited()).err());
        mismatch(explain(&problem, &other, 0, 1, &Budget::unlimited()).err());
        mismatch(Explainer::new(&problem, &other, &Budget::unlimited()).err());
        mismatch(prove(&problem, &other, &Budget::unlimited().with_effort(9)).err());
        mismatch(plan(&problem, Some(&vec![true; n_nodes]), &Budget::unlimited()).err());
    }
}

#[test]
fn nodes_that_are_not_there_are_refused() {
    let problem = pair(true);
    let partition = Partition::singletons(2);
    for (a, b, id) in [(0, 9, 9), (2, 1, 2), (NONE, NONE, NONE)] {
        let refusal = Error::OutOfRange { what: "node", id: id.into(), limit: 2 };
        assert_eq!(explain(&problem, &partition, a, b, &Budget::unlimited()), Err(refusal.clone()));
        assert_eq!(lone_cost(&problem, [0, id].into_iter(), &Budget::unlimited()), Err(refusal));
    }
}

#[test]
fn canonical_forms_of_clusters_that_are_none_are_refused() {
    let form = |problem: &FusionProblem, nodes: &[NodeId], outputs: &[NodeId]| {
        let interface = Interface { inputs: vec![77], outputs: outputs.to_vec() };
        let cluster = Cluster { nodes: nodes.to_vec(), interface };
        canonical_form(problem, &cluster, |_| Some(0), |_| Some(0), &Budget::unlimited())
    };
    let problem = pair(true);
    assert!(matches!(form(&problem, &[0, 9], &[0]), Err(Error::OutOfRange { id: 9, .. })));
    for (problem, nodes, outputs, message) in [
        (&problem, &[0, 1][..], &[9][..], "output 9 of a cluster is not in it"),
        (&problem, &[0], &[1], "output 1 of a cluster is not in it"),
        (&pair(false), &[0, 1], &[1], "node 0 of a cluster has not one result"),
    ] {
        assert_eq!(form(problem, nodes, outputs), Err(Error::Inconsistent(message.to_owned())));
    }
    // Inputs are derived from the nodes.
    assert_eq!(form(&problem, &[0, 1], &[1]).unwrap().inputs, [0]);
}

#[test]
fn nodes_without_results_have_an_interface() {
    let problem = pair(false);
    let budget = Budget::unlimited();
    let mut interfaces = Interfaces::new(&problem, &budget);
    for members in [&[0][..], &[0, 1]] {
        // An unread result is not an output.
        assert_eq!(interfaces.of(members).unwrap(), Interface { inputs: vec![0], outputs: vec![] });
        assert_eq!(interfaces.cost_of(members).unwrap(), Cost { kernels: 1, arrays: 1 });
    }
    assert_eq!(
        cost::cost(&problem, &Partition::singletons(2), &Budget::unlimited()).unwrap(),
        Cost { kernels: 1, arrays: 1 }
    );
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
