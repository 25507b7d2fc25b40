//! The steps, compared with the same steps on lists that are searched and copied each time.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::budget::Budget;
use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Nodes and variables by number; no number is ever reused.
struct Slow {
    inputs: Vec<Vec<u32>>,
    outputs: Vec<u32>,
    repeats: Vec<u32>,
    is_there: Vec<bool>,
    owners: Vec<u32>,
    is_increment: Vec<bool>,
    readers: Vec<Vec<(u32, u32)>>,
    notes: Vec<Vec<u32>>,
    changed: Vec<u32>,
}

impl Slow {
    fn make(&mut self, inputs: Vec<u32>, repeats: u32, notes: Vec<u32>) -> u32 {
        let (node, output) = (self.inputs.len() as u32, self.owners.len() as u32);
        for (position, &variable) in (0u32..).zip(&inputs) {
            self.readers[variable as usize].push((node, position));
        }
        self.inputs.push(inputs);
        self.outputs.push(output);
        self.repeats.push(repeats);
        self.is_there.push(true);
        self.owners.push(node);
        self.is_increment.push(repeats != NONE);
        self.readers.push(Vec::new());
        self.notes.push(notes);
        self.changed.push(node);
        node
    }

    fn take_away(&mut self, node: u32) {
        self.is_there[node as usize] = false;
        for readers in &mut self.readers {
            readers.retain(|&(reader, _)| reader != node);
        }
    }

    fn movable(&self, sum: u32) -> Vec<u32> {
        let can_move =
            |v: &&u32| self.is_increment[**v as usize] && self.readers[**v as usize].len() == 1;
        self.inputs[sum as usize].iter().filter(can_move).copied().collect()
    }

    fn step(&mut self, sum: u32) -> u32 {
        let movable = self.movable(sum);
        let out = self.outputs[sum as usize];
        let incs: Vec<u32> = movable.iter().map(|&v| self.owners[v as usize]).collect();
        let mut below = self.inputs[sum as usize].clone();
        below.retain(|v| !movable.contains(v));
        below.extend(incs.iter().map(|&inc| self.inputs[inc as usize][0]));
        let note = self.notes[out as usize][0];
        let made = self.make(below, NONE, vec![note]);
        let mut tip = self.outputs[made as usize];
        for (&v, &inc) in movable.iter().zip(&incs) {
            let mut inputs = self.inputs[inc as usize].clone();
            inputs[0] = tip;
            let notes = [vec![note], self.notes[v as usize].clone()].concat();
            let node = self.make(inputs, self.repeats[inc as usize], notes);
            tip = self.outputs[node as usize];
        }
        let readers = std::mem::take(&mut self.readers[out as usize]);
        for &(reader, position) in &readers {
            if let Some(read) = self.inputs[reader as usize].get_mut(position as usize) {
                *read = tip;
            }
            if !self.changed.contains(&reader) {
                self.changed.push(reader);
            }
        }
        self.readers[tip as usize] = readers;
        self.take_away(sum);
        incs.into_iter().for_each(|inc| self.take_away(inc));
        made
    }
}

fn slowly(sums: &Sums) -> Strung {
    let (n_nodes, n_variables) = (sums.inputs.len() as u32, sums.owners.len() as u32);
    let mut slow = Slow {
        inputs: sums.inputs.clone(),
        outputs: sums.outputs.clone(),
        repeats: (0..n_nodes).collect(),
        is_there: vec![true; n_nodes as usize],
        owners: sums.owners.clone(),
        is_increment: sums.is_increment.clone(),
        readers: sums.readers.clone(),
        notes: (0..n_variables).map(|v| vec![v]).collect(),
        changed: Vec::new(),
    };
    let mut waiting: VecDeque<u32> = sums.sums.iter().copied().collect();
    let mut strung = Strung::default();
    while let Some(sum) = waiting.pop_front() {
        if slow.is_there[sum as usize] && !slow.movable(sum).is_empty() {
            strung.n_steps += 1;
            if sum < n_nodes {
                strung.moved.push(sum);
            }
            waiting.push_back(slow.step(sum));
        }
    }
    let made: Vec<u32> =
        (n_nodes..slow.inputs.len() as u32).filter(|&n| slow.is_there[n as usize]).collect();
    let node = |id: u32| match made.iter().position(|&m| m == id) {
        Some(rank) => n_nodes + rank as u32,
        None => id,
    };
    let variable = |id: u32| match made.iter().position(|&m| slow.outputs[m as usize] == id) {
        Some(rank) => n_variables + rank as u32,
        None => id,
    };
    strung.gone = (0..n_nodes).filter(|&n| !slow.is_there[n as usize]).collect();
    for &n in slow.changed.iter().filter(|&&n| slow.is_there[n as usize]) {
        strung.changed.push(node(n));
        strung.inputs.push(slow.inputs[n as usize].iter().map(|&v| variable(v)).collect());
    }
    strung.repeats = made.iter().map(|&n| slow.repeats[n as usize]).collect();
    let outputs: Vec<u32> = made.iter().map(|&n| slow.outputs[n as usize]).collect();
    strung.notes = outputs.iter().map(|&v| slow.notes[v as usize].clone()).collect();
    strung.readers = (0..n_variables)
        .chain(outputs)
        .map(|v| slow.readers[v as usize].iter().map(|&(n, at)| (node(n), at)).collect())
        .collect();
    strung
}

/// Nodes that each read earlier variables: increments, sums, and others, with one output; and three
/// variables that no node makes.
fn sums() -> impl Strategy<Value = Sums> {
    let node = (0..8u8, any::<[prop::sample::Index; 3]>(), 1..=3usize);
    (vec(node, 0..24), any::<bool>()).prop_map(|(program, backwards)| {
        let mut sums = Sums {
            owners: vec![NONE; 3],
            is_increment: vec![false; 3],
            readers: vec![Vec::new(); 3],
            ..Sums::default()
        };
        for (number, (kind, picks, n_inputs)) in (0u32..).zip(program) {
            let n_known = sums.owners.len();
            // Often a variable that is still unread.
            let free: Vec<u32> =
                (0..n_known as u32).filter(|&v| sums.readers[v as usize].is_empty()).collect();
            let pick = |i: usize| match free.is_empty() || picks[i].index(3) == 0 {
                true => picks[i].index(n_known) as u32,
                false => free[picks[i].index(free.len())],
            };
            let (is_increment, is_sum) = (kind < 4, (4..7).contains(&kind));
            let inputs: Vec<u32> =
                (0..if is_sum { n_inputs.max(2) } else { n_inputs }).map(pick).collect();
            for (position, &variable) in (0u32..).zip(&inputs) {
                sums.readers[variable as usize].push((number, position));
            }
            sums.inputs.push(inputs);
            sums.outputs.push(n_known as u32);
            sums.owners.push(number);
            sums.is_increment.push(is_increment);
            sums.readers.push(Vec::new());
            if is_sum {
                sums.sums.push(number);
            }
        }
        if backwards {
            sums.sums.reverse();
        }
        sums
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_same_as_slowly(sums in sums()) {
        prop_assert_eq!(string_together(&sums, &Budget::unlimited())?, slowly(&sums));
    }

    /// Nodes that are neither sums nor increments and read no sum may be omitted.
    #[test]
    fn what_does_not_matter_may_be_left_out(sums in sums()) {
        let whole = slowly(&sums);
        let mut part = sums.clone();
        for node in 0..sums.inputs.len() {
            let is_increment = sums.is_increment[sums.outputs[node] as usize];
            let reads_sum = sums.inputs[node].iter().any(|&v| {
                let owner = sums.owners[v as usize];
                owner != NONE && sums.sums.contains(&owner)
            });
            if !is_increment && !reads_sum && !sums.sums.contains(&(node as u32)) {
                part.inputs[node].clear();
                part.outputs[node] = NONE;
            }
        }
        prop_assert_eq!(string_together(&part, &Budget::unlimited())?, whole);
    }
}

/// `0 + .. + n - 1` of increments of variable 0, added up from the left, two at a time.
fn chain(n: u32) -> Sums {
    let mut sums = Sums {
        owners: vec![NONE],
        is_increment: vec![false],
        readers: vec![Vec::new()],
        ..Sums::default()
    };
    let mut add = |inputs: Vec<u32>, is_increment: bool| {
        let (node, output) = (sums.inputs.len() as u32, sums.owners.len() as u32);
        for (position, &variable) in (0u32..).zip(&inputs) {
            sums.readers[variable as usize].push((node, position));
        }
        sums.inputs.push(inputs);
        sums.outputs.push(output);
        sums.owners.push(node);
        sums.is_increment.push(is_increment);
        sums.readers.push(Vec::new());
        if !is_increment {
            sums.sums.push(node);
        }
        output
    };
    let increments: Vec<u32> = (0..n).map(|_| add(vec![0], true)).collect();
    let (mut total, rest) = (increments[0], &increments[1..]);
    for &increment in rest {
        total = add(vec![total, increment], false);
    }
    sums
}

#[test]
fn a_chain_takes_half_the_square_of_its_length() {
    for n in [2, 3, 10, 30] {
        let sums = chain(n);
        let strung = string_together(&sums, &Budget::unlimited()).unwrap();
        assert_eq!(strung, slowly(&sums));
        assert_eq!(strung.n_steps, (n * (n - 1) / 2) as usize);
        // All sums are below all increments.
        assert_eq!(strung.repeats.iter().filter(|&&r| r == NONE).count() as u32, n - 1);
        assert_eq!(strung.repeats.len() as u32, 2 * n - 1);
        assert_eq!(strung.gone.len() as u32, 2 * n - 1);
    }
}

#[test]
fn numbers_of_nodes_that_are_gone_are_used_again() {
    let sums = chain(200);
    let mut steps = Steps::new(&sums, &Budget::unlimited()).unwrap();
    let mut waiting: VecDeque<u32> = sums.sums.iter().copied().collect();
    while let Some(sum) = waiting.pop_front() {
        waiting.extend(steps.step(sum).unwrap());
    }
    assert!(steps.nodes.len() < 1200, "{}", steps.nodes.len());
}

#[test]
fn nodes_that_read_each_other_are_refused() {
    // 0 and 1 add up each other's increments: 2 of 0, and 3 of 1.
    let sums = Sums {
        inputs: vec![vec![3, 3], vec![2, 2], vec![0], vec![1]],
        outputs: vec![0, 1, 2, 3],
        owners: vec![0, 1, 2, 3],
        is_increment: vec![false, false, true, true],
        readers: vec![vec![(2, 0)], vec![(3, 0)], vec![(1, 0), (1, 1)], vec![(0, 0), (0, 1)]],
        sums: vec![0, 1],
    };
    assert_eq!(string_together(&sums, &Budget::unlimited()).unwrap_err().kind(), "cycle");
    // A sum of an increment of itself.
    let sums = Sums {
        inputs: vec![vec![1], vec![0]],
        outputs: vec![0, 1],
        owners: vec![0, 1],
        is_increment: vec![false, true],
        readers: vec![vec![(1, 0)], vec![(0, 0)]],
        sums: vec![0],
    };
    assert_eq!(string_together(&sums, &Budget::unlimited()).unwrap_err().kind(), "cycle");
}

#[test]
fn arrays_that_contradict_each_other() {
    let refused = |change: &dyn Fn(&mut Sums)| {
        let mut sums = chain(3);
        change(&mut sums);
        string_together(&sums, &Budget::unlimited()).unwrap_err().kind()
    };
    assert_eq!(refused(&|sums| sums.inputs[0][0] = 99), "out-of-range");
    assert_eq!(refused(&|sums| sums.outputs[0] = 99), "out-of-range");
    assert_eq!(refused(&|sums| sums.owners[1] = 99), "out-of-range");
    assert_eq!(refused(&|sums| sums.sums[0] = 99), "out-of-range");
    assert_eq!(refused(&|sums| sums.readers[1][0].0 = 99), "out-of-range");
    assert_eq!(refused(&|sums| sums.readers[1][0].1 = 1), "inconsistent");
    assert_eq!(refused(&|sums| sums.readers[1].push((3, 0))), "inconsistent");
    assert_eq!(refused(&|sums| sums.readers[1].clear()), "inconsistent");
    assert_eq!(refused(&|sums| sums.readers[0].clear()), "inconsistent");
    assert_eq!(refused(&|sums| sums.outputs[3] = NONE), "inconsistent");
    assert_eq!(refused(&|sums| sums.inputs[0].clear()), "inconsistent");
    assert_eq!(refused(&|sums| sums.outputs.truncate(1)), "length-mismatch");
    assert_eq!(refused(&|sums| sums.readers.truncate(1)), "length-mismatch");
    assert_eq!(refused(&|sums| sums.is_increment.truncate(1)), "length-mismatch");
}
