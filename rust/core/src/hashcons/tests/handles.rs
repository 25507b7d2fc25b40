//! Handles keep their terms, and know their table.

use super::rows::chain;
use crate::error::Error;
use crate::hashcons::table::Table;
use crate::hashcons::{Content, Duplicates, Handle, HashConsTable, TermId, TermsOf};

#[test]
fn handles_know_their_table_and_digest() {
    let tables = [HashConsTable::new(), HashConsTable::new()];
    let [first, second] = [0, 1].map(|i| tables[i].compound(Content::of(b"op"), &[]).unwrap());
    assert!(first.table().is(&tables[0]) && !first.table().is(&tables[1]));
    // The ids and the terms are equal, but the tables differ.
    assert_eq!(first.id(), second.id());
    assert_ne!(first, second);
    assert_eq!(first, tables[0].compound(Content::of(b"op"), &[]).unwrap());
    assert_eq!(first.digest(), tables[0].digest(first.id()).unwrap());
    assert!(first.digest().is_some() && first.digest() == second.digest());
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
    // Another term reuses the slot.
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
    // A handle keeps its term, even if another handle on the term is dropped.
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
    // A parent needs the op, but no handle is left to give back.
    table.release(op).unwrap();
    assert_eq!(table.release(op), Err(Error::NoTerm { id: op.bits(), limit: 2 }));
    table.release(x).unwrap();
    assert_eq!(table.release(x), Err(Error::NoTerm { id: x.bits(), limit: 2 }));
    assert_eq!(table.check(), Ok(()));
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
            // The length repeats after 50 rounds, since 350 is a multiple of 50.
            assert_eq!(*root, kept[0], "worker {worker}, root {i}");
        }
    }
    assert_ne!(roots[0][0], roots[1][0]);
    drop(roots);
    assert_eq!(table.stats().live, 0);
}
