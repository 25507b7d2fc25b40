//! Terms compared with their meanings, which are written out in full: ids and digests are equal
//! exactly when the meanings are.

use std::collections::HashMap;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::digests::{digest, digest_in_steps};
use crate::error::Error;
use crate::hashcons::table::Table;
use crate::hashcons::{Content, TermId};

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

/// The meaning of a term, written out in full: the oracle for equality.
type Meaning = String;

/// Handles on terms, with the meanings of the terms.
type Held = Vec<(TermId, Meaning)>;

/// The number of results of an apply term, whose meaning is written `apply(n|...)`.
fn n_outputs(meaning: &str) -> Option<u32> {
    meaning.strip_prefix("apply(")?.split('|').next()?.parse().ok()
}

/// Makes the call, and adds the handle that it gave, if any, to `held`.
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
}
