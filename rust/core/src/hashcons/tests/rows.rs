//! Graphs that are interned as rows.

use std::collections::HashMap;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::error::Error;
use crate::hashcons::table::{Kind, Table};
use crate::hashcons::{Content, Duplicates, GraphRows, TermId, TermsOf};
use crate::rows::Rows;

/// Rows of nodes of one op, each of which reads the one before it.
pub(super) fn chain(n_nodes: usize) -> GraphRows {
    let mut rows = GraphRows { ops: vec![0; n_nodes], inputs: Rows::empty(), types: Rows::empty() };
    for node in 0..n_nodes as u32 {
        rows.inputs.push([node]).unwrap();
        rows.types.push([0]).unwrap();
    }
    rows
}

proptest! {
    #[test]
    fn rows_are_interned_as_their_nodes_are_one_by_one(
        nodes in vec((0u32..3, vec(any::<Index>(), 0..3), 1usize..3), 0..30),
        numbered in any::<bool>(),
    ) {
        let mut table = Table::default();
        let double = table.compound(Content::of(b"double"), &[]).unwrap();
        let ops: Vec<_> =
            (0u8..3).map(|op| table.compound(Content::of(&[op]), &[]).unwrap()).collect();
        let leaves: Vec<_> = (0..2).map(|i| table.input(i, double).unwrap()).collect();
        let mut rows =
            GraphRows { ops: Vec::new(), inputs: Rows::empty(), types: Rows::empty() };
        let mut n_variables = leaves.len();
        for (op, inputs, n_outputs) in &nodes {
            rows.ops.push(*op);
            rows.inputs.push(inputs.iter().map(|input| input.index(n_variables) as u32)).unwrap();
            rows.types.push(std::iter::repeat_n(0, *n_outputs)).unwrap();
            n_variables += n_outputs;
        }
        let duplicates = if numbered { Duplicates::Number } else { Duplicates::Fold };
        let live = table.stats().live;
        let terms = TermsOf { leaves: &[], ops: &ops, types: &[double] };
        let outputs: Vec<u32> = (0..n_variables as u32).collect();
        let interned = table.intern_graph(&[0, 0], &rows, terms, &outputs, duplicates);
        let (root, interned) = interned.unwrap();
        prop_assert_eq!(&interned[..2], &leaves);
        let computed_terms = &interned[2..];
        prop_assert_eq!(table.check(), Ok(()));

        // Nodes that are interned one by one have the same ids, except numbered duplicates.
        let mut variables = leaves.clone();
        let mut seen = HashMap::new();
        for node in 0..nodes.len() as u32 {
            let inputs: Vec<_> =
                rows.inputs.row(node).iter().map(|&input| variables[input as usize]).collect();
            let types = vec![double; rows.types.row(node).len()];
            let apply = table.apply(ops[rows.ops[node as usize] as usize], &types, &inputs).unwrap();
            let at = variables.len() - leaves.len();
            let computed = &computed_terms[at..at + types.len()];
            let first = table.output(apply, 0).unwrap();
            let count = seen.entry(first).or_insert(0);
            prop_assert_eq!(first == computed[0], *count == 0 || !numbered);
            *count += 1;
            variables.extend(computed);
        }
        if numbered {
            let mut distinct = computed_terms.to_vec();
            distinct.sort_unstable();
            distinct.dedup();
            prop_assert_eq!(distinct.len(), computed_terms.len());
        }
        for _ in 0..2 {
            let (again, variables) =
                table.intern_graph(&[0, 0], &rows, terms, &outputs, duplicates).unwrap();
            prop_assert_eq!((again, &variables), (root, &interned));
            table.release(again).unwrap();
        }
        // Each output is interned alone, without the nodes that it does not need.
        for &output in &outputs {
            let terms = TermsOf { leaves: &leaves, ..terms };
            let ids = table.intern_outputs(&rows, terms, &[output, output]).unwrap();
            prop_assert!(numbered || ids == [interned[output as usize]; 2]);
            prop_assert_eq!(table.check(), Ok(()));
            table.release_all(&ids).unwrap();
        }
        for slot in (0..table.terms.len() as u32).rev() {
            while table.term(slot).kind != Kind::Free && table.release(table.id_of(slot)).is_ok() {}
        }
        prop_assert!(live > 0 && table.stats().live == 0);
    }
}

#[test]
fn a_part_of_rows_has_these_and_no_others() {
    let mut rows = chain(4);
    rows.ops = vec![0, 1, 2, 3];
    assert!(matches!(rows.part(0..4), std::borrow::Cow::Borrowed(_)));
    let part = rows.part(1..3);
    assert_eq!(part.ops, [1, 2]);
    assert_eq!((part.inputs.items(), part.types.len()), (&[1, 2][..], 2));
}

#[test]
fn inputs_and_outputs_that_a_graph_does_not_have_are_refused() {
    let mut table = Table::default();
    let op = table.compound(Content::of(b"op"), &[]).unwrap();
    let terms = TermsOf { leaves: &[], ops: &[op], types: &[op] };
    let mut graph = |inputs: &[u32], output| {
        let interned = table.intern_graph(inputs, &chain(2), terms, &[output], Duplicates::Fold);
        interned.map(|(root, variables)| (table.release(root), variables.len()))
    };
    assert_eq!(graph(&[0, 0], 3), Ok((Ok(()), 4)));
    assert_eq!(graph(&[0, 0], 4), Err(Error::OutOfRange { what: "output", id: 4, limit: 4 }));
    assert_eq!(graph(&[0, 1], 3), Err(Error::OutOfRange { what: "type", id: 1, limit: 1 }));
    assert_eq!(graph(&[], 0), Err(Error::OutOfRange { what: "input", id: 0, limit: 0 }));
    assert_eq!(table.stats().live, 1);
}

#[test]
fn rows_that_are_refused_leave_the_table_as_it_was() {
    let mut table = Table::default();
    let op = table.compound(Content::of(b"op"), &[]).unwrap();
    let x = table.input(0, op).unwrap();
    let terms = TermsOf { leaves: &[], ops: &[op], types: &[op] };
    let mut forward = chain(3);
    forward.inputs = Rows::new("inputs", vec![0, 1, 2, 3], vec![0, 2, 1]).unwrap();
    let mut without_outputs = chain(1);
    without_outputs.types = Rows::new("types", vec![0, 0], vec![]).unwrap();
    let dead = TermsOf { leaves: &[TermId::from_bits(9)], ..terms };
    for (rows, terms, outputs, kind) in [
        (&forward, terms, 1u32, "out-of-range"),
        (&without_outputs, terms, 0, "inconsistent"),
        (&chain(2), dead, 1, "no-term"),
        (&chain(2), terms, 3, "out-of-range"),
    ] {
        for duplicates in [Duplicates::Fold, Duplicates::Number] {
            let refused = table.intern_graph(&[0], rows, terms, &[outputs], duplicates);
            assert_eq!(refused.unwrap_err().kind(), kind);
        }
        let leaves = &[&[x], terms.leaves].concat();
        let refused = table.intern_outputs(rows, TermsOf { leaves, ..terms }, &[outputs]);
        assert_eq!(refused.unwrap_err().kind(), kind);
        assert_eq!(table.stats().live, 2);
        assert_eq!(table.check(), Ok(()));
    }
}
