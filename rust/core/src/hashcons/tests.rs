#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::lifetime::{MIN_SLOTS, SPARSE};
use super::table::{Kind, Table, Term, structure_hash};
use super::*;
use crate::error::Error;
use crate::rows::Rows;

/// One call of the table; indices pick among the terms that are held.
#[derive(Debug, Clone)]
enum Call {
    Compound(u8, Vec<Index>),
    Opaque,
    Input(u8, Index),
    Apply(Index, Vec<Index>, Vec<Index>),
    Output(Index, u8),
    Graph(Vec<Index>, Vec<Index>),
    Retain(Index),
    Release(Index),
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let some = || vec(any::<Index>(), 0..3);
    let call = prop_oneof![
        (0u8..3, some()).prop_map(|(content, children)| Call::Compound(content, children)),
        Just(Call::Opaque),
        (0u8..3, any::<Index>()).prop_map(|(position, kind)| Call::Input(position, kind)),
        (any::<Index>(), some(), some())
            .prop_map(|(op, types, inputs)| Call::Apply(op, types, inputs)),
        (any::<Index>(), 0u8..3).prop_map(|(apply, index)| Call::Output(apply, index)),
        (some(), some()).prop_map(|(inputs, outputs)| Call::Graph(inputs, outputs)),
        any::<Index>().prop_map(Call::Retain),
        any::<Index>().prop_map(Call::Release),
        any::<Index>().prop_map(Call::Release),
    ];
    vec(call, 0..60)
}

/// The digest of a live term, computed `step` terms at a time.
fn digest_in_steps(table: &mut Table, id: TermId, step: usize) -> Option<Digest> {
    let slot = table.slot_of(id).unwrap();
    if !table.term(slot).stable {
        return None;
    }
    let mut pending = vec![slot];
    while table.compute_digests(&mut pending, step) {}
    table.term(slot).digest
}

fn digest(table: &mut Table, id: TermId) -> Option<Digest> {
    digest_in_steps(table, id, usize::MAX)
}

/// What a term is, written out in full: the oracle for equality.
type Meaning = String;

/// A handle on a term, with what the term means.
type Held = Vec<(TermId, Meaning)>;

/// The results of an apply term whose meaning is written `apply(n|...)`.
fn n_outputs(meaning: &str) -> Option<u32> {
    meaning.strip_prefix("apply(")?.split('|').next()?.parse().ok()
}

/// Makes the call and returns the handle that it gave, if any.
fn make(table: &mut Table, held: &mut Held, call: &Call, n_opaque: &mut u32) {
    let pick = |index: &Index| held[index.index(held.len())].clone();
    let unzip = |picks: &[Index]| -> (Vec<TermId>, String) {
        let (ids, meanings): (Vec<_>, Vec<_>) = picks.iter().map(pick).unzip();
        (ids, meanings.join(","))
    };
    if held.is_empty() && !matches!(call, Call::Opaque) {
        let id = table.compound(Content::of(b"first"), &[]).unwrap();
        held.push((id, "compound(first|)".into()));
        return;
    }
    let result = match call {
        Call::Compound(content, children) => {
            let (ids, meanings) = unzip(children);
            let id = table.compound(Content::of(&[*content]), &ids).unwrap();
            (id, format!("compound({content}|{meanings})"))
        }
        Call::Opaque => {
            *n_opaque += 1;
            (table.opaque().unwrap(), format!("opaque{n_opaque}"))
        }
        Call::Input(position, kind) => {
            let (kind, meaning) = pick(kind);
            let id = table.input(u32::from(*position), kind).unwrap();
            (id, format!("input({position}|{meaning})"))
        }
        Call::Apply(op, types, inputs) => {
            let ((op, meaning), (types, type_meanings)) = (pick(op), unzip(types));
            let (inputs, input_meanings) = unzip(inputs);
            match table.apply(op, &types, &inputs) {
                Err(Error::Inconsistent(_)) if types.is_empty() => return,
                id => {
                    let n = types.len();
                    let text = format!("apply({n}|{meaning}|{type_meanings}|{input_meanings})");
                    (id.unwrap(), text)
                }
            }
        }
        Call::Output(apply, index) => {
            let (apply, meaning) = pick(apply);
            let index = u32::from(*index);
            match (table.output(apply, index), n_outputs(&meaning)) {
                (Err(Error::Inconsistent(_)), None) => return,
                (Err(Error::OutOfRange { .. }), Some(n)) if index >= n => return,
                (id, Some(1)) => (id.unwrap(), meaning),
                (id, _) => (id.unwrap(), format!("output({index}|{meaning})")),
            }
        }
        Call::Graph(inputs, outputs) => {
            let (inputs, input_meanings) = unzip(inputs);
            let (outputs, output_meanings) = unzip(outputs);
            match table.graph(&inputs, &outputs) {
                Err(Error::Inconsistent(_)) => return,
                id => (id.unwrap(), format!("graph({input_meanings}|{output_meanings})")),
            }
        }
        Call::Retain(index) => {
            let (id, meaning) = pick(index);
            table.retain(id).unwrap();
            (id, meaning)
        }
        Call::Release(index) => {
            let (id, _) = held.swap_remove(index.index(held.len()));
            table.release(id).unwrap();
            return;
        }
    };
    held.push(result);
}

proptest! {
    #[test]
    fn ids_are_equal_exactly_when_meanings_are(calls in calls()) {
        let (mut table, mut held, mut n_opaque) = (Table::default(), Held::new(), 0);
        for call in &calls {
            make(&mut table, &mut held, call, &mut n_opaque);
            prop_assert_eq!(table.check(), Ok(()));
            let mut meaning_of: HashMap<TermId, &str> = HashMap::new();
            let mut id_of: HashMap<&str, TermId> = HashMap::new();
            for (id, meaning) in &held {
                prop_assert_eq!(*meaning_of.entry(*id).or_insert(meaning), meaning);
                prop_assert_eq!(*id_of.entry(meaning).or_insert(*id), *id);
                let is_stable = table.term(id.slot).stable;
                prop_assert_eq!(is_stable, !meaning.contains("opaque"));
            }
        }
        let ids: Vec<TermId> = held.iter().map(|&(id, _)| id).collect();
        table.release_all(&ids).unwrap();
        prop_assert!(ids.iter().all(|&id| table.slot_of(id).is_err()));
        prop_assert_eq!(table.stats().live, 0);
        prop_assert_eq!(table.stats().applies, 0);
        prop_assert_eq!(table.check(), Ok(()));
    }

    #[test]
    fn digests_do_not_depend_on_what_else_is_in_the_table(
        before in calls(),
        calls in calls(),
        step in 1usize..4,
    ) {
        let digests = |before: &[Call]| {
            let (mut table, mut held, mut n_opaque) = (Table::default(), Held::new(), 0);
            for call in before {
                make(&mut table, &mut held, call, &mut n_opaque);
            }
            let mut held = Held::new();
            for call in &calls {
                make(&mut table, &mut held, call, &mut n_opaque);
            }
            let ids = held.iter().map(|&(id, _)| id);
            let digests: Vec<_> = ids.map(|id| digest_in_steps(&mut table, id, step)).collect();
            prop_assert_eq!(table.check(), Ok(()));
            Ok(digests)
        };
        let alone = digests(&[])?;
        prop_assert_eq!(digests(&before)?, alone);
    }

    #[test]
    fn equal_digests_mean_equal_terms(calls in calls()) {
        let (mut table, mut held, mut n_opaque) = (Table::default(), Held::new(), 0);
        for call in &calls {
            make(&mut table, &mut held, call, &mut n_opaque);
        }
        let mut id_of = HashMap::new();
        for (id, meaning) in held {
            let Some(digest) = digest(&mut table, id) else {
                prop_assert!(meaning.contains("opaque"));
                continue;
            };
            prop_assert!(!meaning.contains("opaque"));
            prop_assert_eq!(*id_of.entry(digest).or_insert(id), id);
        }
    }

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

        // One by one, in the same table: the same ids, or, numbered, others for duplicates.
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
        // Each output alone, and those that it does not need are gone.
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

fn chain(n_nodes: usize) -> GraphRows {
    let mut rows = GraphRows { ops: vec![0; n_nodes], inputs: Rows::empty(), types: Rows::empty() };
    for node in 0..n_nodes as u32 {
        rows.inputs.push([node]).unwrap();
        rows.types.push([0]).unwrap();
    }
    rows
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
fn handles_know_their_table_and_digest() {
    let tables = [HashConsTable::new(), HashConsTable::new()];
    let [first, second] = [0, 1].map(|i| tables[i].compound(Content::of(b"op"), &[]).unwrap());
    assert!(first.table().is(&tables[0]) && !first.table().is(&tables[1]));
    // The same id, and the same term, of two tables.
    assert_eq!(first.id(), second.id());
    assert_ne!(first, second);
    assert_eq!(first, tables[0].compound(Content::of(b"op"), &[]).unwrap());
    assert_eq!(first.digest(), tables[0].digest(first.id()).unwrap());
    assert!(first.digest().is_some() && first.digest() == second.digest());
}

#[test]
fn a_digest_is_the_same_everywhere() {
    let mut table = Table::default();
    let double = table.compound(Content::of(b"float64"), &[]).unwrap();
    let exp = table.compound(Content::of(b"exp"), &[double]).unwrap();
    let x = table.input(0, double).unwrap();
    let split = table.apply(exp, &[double, double], &[x, x]).unwrap();
    let second = table.output(split, 1).unwrap();
    let graph = table.graph(&[x], &[split, second]).unwrap();
    let digests = [graph, double, exp, x, split, second]
        .map(|id| digest(&mut table, id).unwrap().to_string());
    // Computed with another implementation of BLAKE3, from the description in `Digest::of`.
    assert_eq!(
        digests,
        [
            "4109844a4313060c1c6c2016fd7a78ec",
            "3a596cc307e4c8c55272595b03cf1785",
            "3fb98d88f4b15ad7ae6d54c32c5d8854",
            "afc78a13841c462b36625cb457b52096",
            "78f4a17087750204f540e6a6bfa08216",
            "4a4d8f80f09bb85402adb7cadac02ea1",
        ]
    );
}

#[test]
fn what_is_not_in_the_table_is_named() {
    let table = HashConsTable::new();
    let op = table.compound(Content::of(b"op"), &[]).unwrap();
    let x = table.input(0, op.id()).unwrap().id();
    let gone = Error::NoTerm { id: x.bits(), limit: 2 };
    assert_eq!(table.apply(op.id(), &[op.id()], &[x]).unwrap_err(), gone);
    assert_eq!(table.handle(x).unwrap_err(), gone);
    assert_eq!(table.digest(x).unwrap_err(), gone);
    let unknown = TermId::from_bits(7);
    assert_eq!(table.digest(unknown), Err(Error::NoTerm { id: 7, limit: 2 }));
    // The same slot, and another term.
    let other = table.input(1, op.id()).unwrap();
    assert_eq!(other.id().slot, x.slot);
    assert_ne!(other.id(), x);
    assert_eq!(table.handle(x).unwrap_err(), gone);
    assert!(matches!(table.graph(&[other.id()], &[]), Err(Error::Inconsistent(_))));
    assert_eq!(table.check(), Ok(()));
    assert_eq!(TermId::from_bits(other.id().bits()), other.id());
}

#[test]
fn a_handle_is_on_the_term_that_it_was_made_for() {
    let table = HashConsTable::new();
    let [a, b] = [b"a", b"b"].map(|content| table.compound(Content::of(content), &[]).unwrap());
    let (id, digest) = (a.id(), a.digest());
    let another = table.handle(id).unwrap();
    drop(a);
    // Whoever has a handle keeps the term, whatever others do with theirs.
    let c = table.compound(Content::of(b"c"), &[]).unwrap();
    assert_eq!((another.id(), another.digest()), (id, digest));
    assert!(another != b && another != c && another.digest() != c.digest());
    drop(another);
    let d = table.compound(Content::of(b"d"), &[]).unwrap();
    assert!(d.id().slot == id.slot && d.id() != id && d.digest() != digest);
    assert!(table.handle(id).is_err());
    drop((b, c, d));
    assert_eq!(table.stats().live, 0);
}

#[test]
fn handles_on_many_terms_are_given_back_together() {
    let table = HashConsTable::new();
    let contents = [b"a", b"b", b"a"].map(|content| Content::of(content));
    let symbols = table.symbols(&contents).unwrap();
    assert_eq!((symbols.ids()[0], symbols.ids().len()), (symbols.ids()[2], 3));
    assert!(symbols.table().is(&table));
    let leaves = &symbols.ids()[..1];
    let terms = TermsOf { leaves, ops: leaves, types: leaves };
    let mut computed = table.intern_rows(&chain(5), terms, Duplicates::Fold).unwrap();
    drop(symbols);
    assert_eq!(table.stats().live, 6);
    let last = computed.ids()[4];
    let on = TermsOf { leaves: &[last], ops: &[last], types: &[last] };
    computed.append(table.intern_rows(&chain(1), on, Duplicates::Fold).unwrap()).unwrap();
    assert_eq!(computed.ids().len(), 6);
    let foreign = HashConsTable::new().symbols(&contents).unwrap();
    assert!(matches!(computed.append(foreign), Err(Error::Inconsistent(_))));
    drop(computed);
    assert_eq!(table.stats().live, 0);
    assert_eq!(table.check(), Ok(()));
}

#[test]
fn who_counts_handles_is_told_of_mistakes() {
    let mut table = Table::default();
    let op = table.compound(Content::of(b"op"), &[]).unwrap();
    let x = table.input(0, op).unwrap();
    // A parent needs it, but nobody has a handle to give back.
    table.release(op).unwrap();
    assert_eq!(table.release(op), Err(Error::NoTerm { id: op.bits(), limit: 2 }));
    table.release(x).unwrap();
    assert_eq!(table.release(x), Err(Error::NoTerm { id: x.bits(), limit: 2 }));
    assert_eq!(table.check(), Ok(()));
}

#[test]
fn a_slot_without_a_generation_left_is_not_used_again() {
    let mut table = Table::default();
    let kept = table.compound(Content::of(b"kept"), &[]).unwrap();
    let id = table.compound(Content::of(b"a"), &[]).unwrap();
    table.terms[id.slot as usize].generation = TermId::N_GENERATIONS - 1;
    let last = table.id_of(id.slot);
    assert!(table.slot_of(id).is_err() && i64::try_from(last.bits()).is_ok());
    table.release(last).unwrap();
    assert_eq!((table.stats().live, table.stats().free), (1, 0));
    assert_eq!(table.check(), Ok(()));
    let next = table.compound(Content::of(b"a"), &[]).unwrap();
    assert_ne!(next.slot, id.slot);
    assert!(table.slot_of(last).is_err());
    table.release_all(&[kept, next]).unwrap();
    table.n_retired = 0;
    assert!(table.check().unwrap_err().to_string().contains("1 slots are retired, not 0"));
}

#[test]
fn digests_of_a_deep_graph_are_computed_in_parts() {
    let table = HashConsTable::new();
    let op = table.compound(Content::of(b"op"), &[]).unwrap();
    let terms = TermsOf { leaves: &[], ops: &[op.id()], types: &[op.id()] };
    let n_nodes = 150_000;
    let outputs = [n_nodes as u32];
    let graph =
        table.intern_graph(&[0], &chain(n_nodes), terms, &outputs, Duplicates::Fold).unwrap();
    let mut n_parts = 1;
    let part_done = || {
        n_parts += 1;
        assert_eq!(table.stats().live, n_nodes + 3);
        Ok::<_, ()>(())
    };
    let digest = graph.root.digest_asking(part_done).unwrap();
    assert_eq!(n_parts, 3);
    assert!(digest.is_some());
    // Known from now on, also from above.
    assert_eq!(graph.root.digest_asking(|| Err("there is nothing left to compute")), Ok(digest));
    assert_eq!(graph.root.digest(), digest);
    assert_eq!(table.check(), Ok(()));
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

#[test]
fn deep_graphs_are_freed_without_recursion_and_memory_is_given_back() {
    let mut table = Table::default();
    let op = table.compound(Content::of(b"op"), &[]).unwrap();
    let x = table.input(0, op).unwrap();
    let small = table.stats().bytes;
    let n_nodes = 300_000;
    let terms = TermsOf { leaves: &[], ops: &[op], types: &[op] };
    let outputs = [n_nodes as u32];
    let interned = table.intern_graph(&[0], &chain(n_nodes), terms, &outputs, Duplicates::Fold);
    let (root, variables) = interned.unwrap();
    assert_eq!(table.stats().applies, n_nodes);
    // A term made late that stays holds the slots below it, but not for good.
    let late = table.compound(Content::of(b"late"), &[]).unwrap();
    table.release(root).unwrap();
    assert_eq!(table.stats().live, 3);
    for id in [op, x, late] {
        table.release(id).unwrap();
    }
    assert_eq!(table.stats().live, 0);
    assert!(table.stats().bytes <= small + 64 * size_of::<Term>(), "{:?}", table.stats());
    assert_eq!(table.check(), Ok(()));
    // Slots that are made anew do not bring back the ids that they had.
    let again = table.compound(Content::of(b"op"), &[]).unwrap();
    assert_eq!((again.slot, variables[0].slot), (op.slot, x.slot));
    assert!(again != op && table.slot_of(op).is_err() && table.slot_of(x).is_err());
}

#[test]
fn terms_that_come_and_go_do_not_have_the_table_searched_each_time() {
    let mut table = Table::default();
    let number = |i: usize| Content::of(&i.to_le_bytes());
    let n_slots = 2 * MIN_SLOTS;
    let ids: Vec<TermId> = (0..n_slots).map(|i| table.compound(number(i), &[]).unwrap()).collect();
    // The last stays, so that no slot can be given back.
    let kept = n_slots / SPARSE;
    for &id in &ids[kept - 2..n_slots - 1] {
        table.release(id).unwrap();
    }
    assert_eq!((table.stats().live, table.terms.len()), (kept - 1, n_slots));
    let after = table.trim_at;
    assert!(after < kept);
    for _ in 0..3 {
        let more: Vec<TermId> =
            (0..4).map(|i| table.compound(number(n_slots + i), &[]).unwrap()).collect();
        for id in more {
            table.release(id).unwrap();
            assert_eq!(table.trim_at, after);
        }
    }
}

#[test]
fn threads_share_a_table() {
    let table = HashConsTable::new();
    let n_threads = 4;
    let roots: Vec<Vec<Handle>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..n_threads)
            .map(|worker| {
                let table = table.clone();
                scope.spawn(move || {
                    let mut kept = Vec::new();
                    for round in 0..200 {
                        let op = table.compound(Content::of(b"op"), &[]).unwrap();
                        let terms = TermsOf { leaves: &[], ops: &[op.id()], types: &[op.id()] };
                        let length = (round * 7 + worker) % 50 + 1;
                        let graph = table.intern_graph(
                            &[0],
                            &chain(length),
                            terms,
                            &[length as u32],
                            Duplicates::Fold,
                        );
                        let root = graph.unwrap().root;
                        assert!(root.digest().is_some());
                        if round % 50 == 0 {
                            assert_eq!(table.check(), Ok(()));
                            kept.push(root);
                        }
                    }
                    kept
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    assert_eq!(table.check(), Ok(()));
    for (worker, kept) in roots.iter().enumerate() {
        for (i, root) in kept.iter().enumerate() {
            // 50 rounds are 350 steps: the same length again.
            assert_eq!(*root, kept[0], "worker {worker}, root {i}");
        }
    }
    assert_ne!(roots[0][0], roots[1][0]);
    drop(roots);
    assert_eq!(table.stats().live, 0);
}

/// What the check says of a table of some terms once it is damaged.
fn violation(damage: impl FnOnce(&mut Table, [TermId; 4])) -> String {
    let mut table = Table::default();
    let leaf = table.compound(Content::of(b"leaf"), &[]).unwrap();
    let other = table.compound(Content::of(b"other"), &[]).unwrap();
    let top = table.compound(Content::of(b"top"), &[leaf]).unwrap();
    let apply = table.apply(leaf, &[other], &[top]).unwrap();
    let gone = table.compound(Content::of(b"gone"), &[]).unwrap();
    table.release(gone).unwrap();
    table.check().unwrap();
    damage(&mut table, [leaf, other, top, apply]);
    table.check().unwrap_err().to_string()
}

#[test]
fn each_damage_is_found() {
    let is_said = |text: &str, said: String| assert!(said.contains(text), "{said}");
    is_said("a slot is free twice", violation(|table, _| table.free.push(table.free[0])));
    is_said("is among the free: true", violation(|table, [leaf, ..]| table.free.push(leaf.slot)));
    is_said("is among the free: false", violation(|table, _| table.free.clear()));
    is_said("there are 1 apply terms", violation(|table, _| table.n_applies += 1));
    is_said("0 spilled children, not 1 and 1", violation(|table, _| table.n_spilled += 1));
    let equal = violation(|table, [leaf, other, ..]| {
        let (content, number) = (table.contents[&leaf.slot], table.term(leaf.slot).number);
        table.contents.insert(other.slot, content);
        table.terms[other.slot as usize].number = number;
    });
    is_said("are equal", equal);
    is_said("the index does not find", violation(|table, _| table.index.clear()));
    let twice = violation(|table, [leaf, ..]| {
        table.index.insert_unique(0, leaf.slot, |_| 0);
    });
    is_said("the index has 5 entries for 4 terms", twice);
    let dangling =
        violation(|table, [_, _, top, _]| table.terms[top.slot as usize].children[0] = 999);
    is_said("is not in the table", dangling);
    let freed = violation(|table, [_, _, top, _]| {
        table.terms[top.slot as usize].children[0] = table.free[0];
    });
    is_said("is not in the table", freed);
    is_said(
        "counts 3 parents",
        violation(|table, [l, ..]| table.terms[l.slot as usize].parents += 1),
    );
    let unneeded =
        violation(|table, [_, _, _, apply]| table.terms[apply.slot as usize].handles = 0);
    is_said("nothing needs", unneeded);
    let cyclic = violation(|table, [leaf, _, top, _]| {
        table.terms[leaf.slot as usize].children.push(top.slot);
        table.terms[top.slot as usize].parents += 1;
    });
    is_said("terms form a cycle", cyclic);
    let unstable = violation(|table, [_, _, top, _]| table.terms[top.slot as usize].stable = false);
    is_said("calls its digest stable: false", unstable);
    let mistaken = violation(|table, [leaf, _, _, apply]| {
        digest(table, apply).unwrap();
        table.terms[apply.slot as usize].digest = table.terms[leaf.slot as usize].digest;
    });
    is_said("the digest of term", mistaken);
    let early = violation(|table, [leaf, other, top, _]| {
        table.terms[top.slot as usize].digest = digest(table, other);
        assert_eq!(table.terms[leaf.slot as usize].digest, None);
    });
    is_said("has a digest that nothing gave it", early);
    let without = violation(|table, [leaf, ..]| {
        table.contents.remove(&leaf.slot);
    });
    is_said("is Compound and has a content: false", without);
    let with = violation(|table, [leaf, _, _, apply]| {
        table.contents.insert(apply.slot, table.contents[&leaf.slot]);
    });
    is_said("is Apply and has a content: true", with);
    let left_over = violation(|table, [leaf, ..]| {
        table.contents.insert(999, table.contents[&leaf.slot]);
    });
    is_said("there are 4 contents of 3 terms", left_over);
}

#[test]
fn a_table_is_in_order_whatever_needs_a_term() {
    // Parents alone, handles alone, and a count that has gone as far as it can.
    let mut table = Table::default();
    let leaf = table.compound(Content::of(b"leaf"), &[]).unwrap();
    let top = table.compound(Content::of(b"top"), &[leaf]).unwrap();
    table.release(leaf).unwrap();
    table.check().unwrap();
    table.terms[leaf.slot as usize].parents = u32::MAX;
    table.check().unwrap();
    let opaque = table.opaque().unwrap();
    table.check().unwrap();
    table.terms[opaque.slot as usize].stable = true;
    assert!(table.check().unwrap_err().to_string().contains("calls its digest stable: true"));
    assert!(table.release(top).is_ok());
}

#[test]
fn bytes_are_those_that_were_asked_for() {
    let mut table = Table::default();
    let leaf = table.compound(Content::of(b"leaf"), &[]).unwrap();
    let wide = |i: u32| (Content::of(&i.to_le_bytes()), vec![leaf; 6]);
    let made: Vec<TermId> = (0..40)
        .map(|i| {
            let (content, children) = wide(i);
            table.compound(content, &children).unwrap()
        })
        .collect();
    made[..20].iter().for_each(|&id| table.release(id).unwrap());
    let slots = table.terms.capacity() * size_of::<Term>();
    let free = table.free.capacity() * size_of::<Slot>();
    // Twenty terms of six children each, which do not fit into them.
    let children = 20 * 6 * size_of::<Slot>();
    assert!(slots > 0 && free > 0);
    let contents = table.contents.capacity() * size_of::<(Slot, Content)>();
    let index = table.index.allocation_size();
    assert!(contents > 0);
    assert_eq!(table.stats().bytes, slots + free + children + contents + index);
    // One line of the processor's cache.
    assert_eq!(size_of::<Term>(), 64);
}

#[test]
fn counts_at_their_limit_keep_a_term_for_good() {
    let mut table = Table::default();
    let leaf = table.compound(Content::of(b"leaf"), &[]).unwrap();
    let top = table.compound(Content::of(b"top"), &[leaf]).unwrap();
    table.terms[leaf.slot as usize].parents = u32::MAX;
    table.terms[top.slot as usize].handles = u32::MAX;
    table.release(top).unwrap();
    assert_eq!(table.terms[top.slot as usize].handles, u32::MAX);
    table.terms[top.slot as usize].handles = 1;
    table.release(top).unwrap();
    table.release(leaf).unwrap();
    assert_eq!(table.stats().live, 1);
    assert_eq!(table.terms[leaf.slot as usize].parents, u32::MAX);
}

#[test]
fn kind_and_number_are_apart_in_the_hash() {
    // Terms of one kind that differ in their numbers alone, and the other way round.
    let hashes: std::collections::HashSet<u64> = [Kind::Input, Kind::Output]
        .into_iter()
        .flat_map(|kind| (0..100).map(move |number| structure_hash(kind, number, &[7])))
        .collect();
    assert_eq!(hashes.len(), 200);
}
