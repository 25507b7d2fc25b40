//! Digests and hashes of terms.

use super::rows::chain;
use crate::hashcons::table::{Kind, Table, structure_hash};
use crate::hashcons::{Content, Digest, Duplicates, HashConsTable, TermId, TermsOf};

/// The digest of a live term, computed `step` terms at a time.
pub(super) fn digest_in_steps(table: &mut Table, id: TermId, step: usize) -> Option<Digest> {
    let slot = table.slot_of(id).unwrap();
    if !table.term(slot).stable {
        return None;
    }
    let mut pending = vec![slot];
    while table.compute_digests(&mut pending, step) {}
    table.term(slot).digest
}

pub(super) fn digest(table: &mut Table, id: TermId) -> Option<Digest> {
    digest_in_steps(table, id, usize::MAX)
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
    // The digest is cached from now on.
    assert_eq!(graph.root.digest_asking(|| Err("there is nothing left to compute")), Ok(digest));
    assert_eq!(graph.root.digest(), digest);
    assert_eq!(table.check(), Ok(()));
}

#[test]
fn kind_and_number_are_apart_in_the_hash() {
    // Terms differ only in their numbers, or only in their kinds.
    let hashes: std::collections::HashSet<u64> = [Kind::Input, Kind::Output]
        .into_iter()
        .flat_map(|kind| (0..100).map(move |number| structure_hash(kind, number, &[7])))
        .collect();
    assert_eq!(hashes.len(), 200);
}
