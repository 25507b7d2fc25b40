//! The check of a table finds each kind of damage, and nothing else.

use super::digests::digest;
use crate::hashcons::table::Table;
use crate::hashcons::{Content, TermId};

/// The message of the check for a small table with the given damage.
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
    // Terms are needed by parents only and by handles only, and a count is at its limit.
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
