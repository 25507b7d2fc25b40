//! Small problems with known answers, for the pieces of the planner.

use super::judges::definition::check;
use super::problems::arrays::{arrays, arrays_of_data, problem};
use crate::budget::Budget;
use crate::plan::problem::parts;
use crate::plan::search::{split, typed};
use crate::plan::*;
use crate::rows::Rows;

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
    // a1 -> b1 and b2 -> a2, where a1 and a2 share an operand, and so do b1 and b2.
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
    // 0 -> 2 and 1 -> 3, where 0 comes before 3 and 1 before 2: either pair may fuse, not both.
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
    // Too many operands for one kernel: the nodes that are cut off have the parts of the test
    // above.
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
    // 0 -> 1 -> 2: the block of 0 and 2 waits for 1, and 1 waits for that block.
    let problem = problem(1, &[(0, &[0]), (-1, &[1]), (0, &[2])], 1024);
    let partition = Partition::from_names(vec![0, NONE, 0]);
    let error = partition.quotient_order(&problem, &Budget::unlimited()).unwrap_err();
    assert_eq!(error, crate::Error::Cycle { nodes: vec![0, 1] });
}

#[test]
fn a_cluster_with_too_many_operands_is_cut() {
    // A chain of additions, each with a root of its own.
    let reads: Vec<[u32; 2]> = (0..9).map(|i| [if i == 0 { 9 } else { 9 + i }, i]).collect();
    let nodes: Vec<(i32, &[u32])> = reads.iter().map(|row| (0, &row[..])).collect();
    let problem = problem(10, &nodes, 4);
    let plan = plan(&problem, None, &Budget::unlimited()).unwrap();
    check(&problem, &plan);
    // Each kernel has three inputs and one output: two additions, or three with the last.
    assert_eq!(plan.after.kernels, 5);
}

#[test]
fn equal_kernels_have_equal_forms_wherever_they_stand() {
    // Two copies of exp(x) * y, the second with its operands' ids in the opposite order.
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
fn blocks_come_in_the_order_in_which_they_are_free() {
    // 0 -> 3 and 1 -> 2: the node that waits for 0 is listed first.
    let nodes: [(i32, &[u32]); 4] = [(-1, &[0]), (-1, &[0]), (-1, &[2]), (-1, &[1])];
    let problem = FusionProblem::new(arrays_of_data(1, &nodes, 8), &Budget::unlimited()).unwrap();
    let order = Partition::singletons(4).quotient_order(&problem, &Budget::unlimited()).unwrap();
    assert_eq!(order, [0, 1, 3, 2]);
}

#[test]
fn only_the_empty_problem_has_no_components() {
    for (n_nodes, is_empty) in [(0, true), (1, false)] {
        let nodes: [(i32, &[u32]); 1] = [(0, &[0])];
        let problem =
            FusionProblem::new(arrays_of_data(1, &nodes[..n_nodes], 8), &Budget::unlimited())
                .unwrap();
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
    let mut arrays = arrays_of_data(1, &[(0, &[0]), (0, &[1]), (0, &[0, 2])], 8);
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
        let problem =
            FusionProblem::new(arrays_of_data(2, &nodes, limit), &Budget::unlimited()).unwrap();
        let expected = if limit < 3 { Verdict::OperandLimit(3) } else { Verdict::Possible };
        let unfused = Partition::singletons(2);
        assert_eq!(explain(&problem, &unfused, 0, 1, &Budget::unlimited()), Ok(expected.clone()));
        assert_eq!(explain(&problem, &unfused, 1, 0, &Budget::unlimited()), Ok(expected));
    }
}

#[test]
fn a_cut_fills_its_pieces() {
    // A chain of additions, each with an operand of its own: a piece has as many as the limit, less
    // two.
    for (limit, n_nodes) in [(4, 9), (8, 13), (5, 10)] {
        let reads: Vec<[u32; 2]> = (0..n_nodes).map(|i| [n_nodes + i, i]).collect();
        let nodes: Vec<(i32, &[u32])> = reads.iter().map(|row| (0, &row[..])).collect();
        let problem = FusionProblem::new(
            arrays_of_data(n_nodes as usize + 1, &nodes, limit),
            &Budget::unlimited(),
        )
        .unwrap();
        let whole = Partition::from_names(vec![0; n_nodes as usize]);
        let cut = split::split_oversized(&problem, whole, &Budget::unlimited()).unwrap();
        let firsts = (0..n_nodes).step_by(limit as usize - 2);
        assert!(cut.names().eq(firsts), "{:?}", cut.blocks());
    }
}
