//! Slots, counts and memory as terms come and go.

use super::rows::chain;
use crate::hashcons::lifetime::{MIN_SLOTS, SPARSE};
use crate::hashcons::table::{Table, Term};
use crate::hashcons::{Content, Duplicates, Slot, TermId, TermsOf};

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
    // A late term that stays keeps the slots below it, but only until it is freed.
    let late = table.compound(Content::of(b"late"), &[]).unwrap();
    table.release(root).unwrap();
    assert_eq!(table.stats().live, 3);
    for id in [op, x, late] {
        table.release(id).unwrap();
    }
    assert_eq!(table.stats().live, 0);
    assert!(table.stats().bytes <= small + 64 * size_of::<Term>(), "{:?}", table.stats());
    assert_eq!(table.check(), Ok(()));
    // Slots that are created again do not reuse their earlier ids.
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
    // The last term stays, so that no slot can be released.
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
    // Twenty terms have six children each, which do not fit into the terms.
    let children = 20 * 6 * size_of::<Slot>();
    assert!(slots > 0 && free > 0);
    let contents = table.contents.capacity() * size_of::<(Slot, Content)>();
    let index = table.index.allocation_size();
    assert!(contents > 0);
    assert_eq!(table.stats().bytes, slots + free + children + contents + index);
    // A term takes one cache line.
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
