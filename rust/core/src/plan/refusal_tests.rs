//! What others may call refuses arguments that make no sense, and does not panic.

#![allow(clippy::unwrap_used)]

use super::canonical::canonical_form;
use super::*;
use crate::error::Error;
use crate::rows::Rows;

/// Two nodes, the second of which reads the first; that has no result if `has_first` is false.
fn pair(has_first: bool) -> FusionProblem {
    let (mut inputs, mut outputs) = (Rows::empty(), Rows::empty());
    inputs.push([0]);
    outputs.push(has_first.then_some(1));
    inputs.push([u32::from(has_first)]);
    outputs.push([2]);
    FusionProblem::new(ProblemArrays {
        n_variables: 3,
        inputs,
        outputs,
        groups: vec![if has_first { 0 } else { -1 }, 0],
        links: vec![-1; 3],
        constants: vec![false; 3],
        results: vec![false; 3],
        weights: None,
        orderings: Vec::new(),
        max_operands: 8,
    })
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
        mismatch(other.quotient_order(&problem).err());
        mismatch(explain(&problem, &other, 0, 1).err());
        mismatch(Explainer::new(&problem, &other).err());
        mismatch(prove(&problem, &other, Objective::KernelsFirst, 9).err());
        for objective in [Objective::KernelsFirst, Objective::Traffic { launch: 1 }] {
            mismatch(objective.of(&problem, &other).err());
        }
        mismatch(plan(&problem, Some(&vec![true; n_nodes])).err());
    }
}

#[test]
fn nodes_that_are_not_there_are_refused() {
    let problem = pair(true);
    let partition = Partition::singletons(2);
    for (a, b, id) in [(0, 9, 9), (2, 1, 2), (NONE, NONE, NONE)] {
        let refusal = Error::OutOfRange { what: "node", id: id.into(), limit: 2 };
        assert_eq!(explain(&problem, &partition, a, b), Err(refusal.clone()));
        assert_eq!(lone_cost(&problem, [0, id].into_iter()), Err(refusal));
    }
}

#[test]
fn canonical_forms_of_clusters_that_are_none_are_refused() {
    let form = |problem: &FusionProblem, nodes: &[NodeId], outputs: &[NodeId]| {
        let interface = Interface { inputs: vec![77], outputs: outputs.to_vec() };
        let cluster = Cluster { nodes: nodes.to_vec(), interface };
        canonical_form(problem, &cluster, |_| Some(0), |_| Some(0))
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
    // Inputs are read off the nodes.
    assert_eq!(form(&problem, &[0, 1], &[1]).unwrap().inputs, [0]);
}

#[test]
fn nodes_without_results_have_an_interface() {
    let problem = pair(false);
    let mut interfaces = Interfaces::new(&problem);
    for members in [&[0][..], &[0, 1]] {
        // What nobody reads is no output.
        assert_eq!(interfaces.of(members), Interface { inputs: vec![0], outputs: vec![] });
        assert_eq!((interfaces.n_arrays(members), interfaces.traffic(members)), (1, 1));
    }
    assert_eq!(cost::cost(&problem, &Partition::singletons(2)), Cost { kernels: 1, arrays: 1 });
}
