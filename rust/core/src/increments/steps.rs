//! The nodes and variables while sums go below increments: a single step, and the final state.

use rustc_hash::FxHashMap;

use super::sums::{NONE, Strung};
use crate::budget::Budget;
use crate::error::{Error, Result};

#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    /// The index of its first place.
    pub(super) first: u32,
    pub(super) n_inputs: u32,
    pub(super) output: u32,
    pub(super) repeats: u32,
    pub(super) is_there: bool,
    /// The time when it was made; 0 if it was given.
    pub(super) made_at: u64,
    /// The time when it was made or first read something else; 0 if never.
    pub(super) changed_at: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Variable {
    pub(super) owner: u32,
    pub(super) is_increment: bool,
    /// A note of `Steps::notes`.
    pub(super) note: u32,
    /// The places that read it, first to last.
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) n_readers: u32,
}

/// A position among the inputs of a node, linked into the list of the readers of a variable.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) node: u32,
    pub(super) position: u32,
    pub(super) reads: u32,
    pub(super) before: u32,
    pub(super) after: u32,
}

/// A given variable whose notes are taken over, and the notes that follow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Note {
    of: u32,
    rest: u32,
}

pub(super) struct Steps {
    pub(super) n_nodes: usize,
    pub(super) n_variables: usize,
    pub(super) nodes: Vec<Node>,
    pub(super) variables: Vec<Variable>,
    pub(super) places: Vec<Place>,
    pub(super) notes: Vec<Note>,
    /// Made nodes that are gone, by the number of their inputs. Nodes that are made next reuse
    /// their numbers, places and outputs.
    pub(super) spare: FxHashMap<u32, Vec<u32>>,
    pub(super) now: u64,
}

impl Steps {
    pub(super) fn places_of(&self, node: Node) -> std::ops::Range<usize> {
        node.first as usize..(node.first + node.n_inputs) as usize
    }

    /// Makes a place that reads nothing the last reader of a variable.
    pub(super) fn read(&mut self, place: u32, variable: u32) {
        let read = &mut self.variables[variable as usize];
        let last = std::mem::replace(&mut read.last, place);
        read.n_readers += 1;
        if last == NONE {
            read.first = place;
        } else {
            self.places[last as usize].after = place;
        }
        let place = &mut self.places[place as usize];
        (place.reads, place.before, place.after) = (variable, last, NONE);
    }

    /// Makes a place read nothing.
    fn let_go(&mut self, place: usize) -> Result<()> {
        let Place { reads, before, after, node, .. } = self.places[place];
        if reads == NONE {
            return Err(Error::Inconsistent(format!("what node {node} reads is not known")));
        }
        self.places[place].reads = NONE;
        let read = &mut self.variables[reads as usize];
        read.n_readers -= 1;
        if before == NONE {
            read.first = after;
        }
        if after == NONE {
            read.last = before;
        }
        if before != NONE {
            self.places[before as usize].after = after;
        }
        if after != NONE {
            self.places[after as usize].before = before;
        }
        Ok(())
    }

    /// Makes a node, which reads something, and returns it.
    fn make(&mut self, inputs: &[u32], repeats: u32, note: u32) -> Result<u32> {
        let n_inputs = inputs.len() as u32;
        let number = match self.spare.get_mut(&n_inputs).and_then(Vec::pop) {
            Some(number) => number,
            None => {
                let (number, output) = (self.nodes.len() as u32, self.variables.len() as u32);
                if self.places.len() + inputs.len() >= NONE as usize {
                    let limit = NONE as usize;
                    return Err(Error::TooLarge { what: "places", count: limit, limit });
                }
                let first = self.places.len() as u32;
                for position in 0..n_inputs {
                    let place =
                        Place { node: number, position, reads: NONE, before: NONE, after: NONE };
                    self.places.push(place);
                }
                self.nodes.push(Node {
                    first,
                    n_inputs,
                    output,
                    repeats,
                    is_there: true,
                    made_at: 0,
                    changed_at: 0,
                });
                self.variables.push(Variable {
                    owner: number,
                    is_increment: false,
                    note,
                    first: NONE,
                    last: NONE,
                    n_readers: 0,
                });
                number
            }
        };
        self.now += 1;
        let now = self.now;
        let node = &mut self.nodes[number as usize];
        (node.repeats, node.is_there, node.made_at, node.changed_at) = (repeats, true, now, now);
        let (first, output) = (node.first, node.output);
        let variable = &mut self.variables[output as usize];
        (variable.is_increment, variable.note) = (repeats != NONE, note);
        for (place, &reads) in (first..).zip(inputs) {
            self.read(place, reads);
        }
        Ok(number)
    }

    /// The note of a variable, which is made if it has none yet.
    fn note_of(&mut self, variable: u32) -> u32 {
        let note = self.variables[variable as usize].note;
        if note != NONE {
            return note;
        }
        let note = self.notes.len() as u32;
        self.notes.push(Note { of: variable, rest: NONE });
        self.variables[variable as usize].note = note;
        note
    }

    /// Moves a sum below the increments among its terms, if there are any; returns the new sum.
    pub(super) fn step(&mut self, sum: u32) -> Result<Option<u32>> {
        let old = self.nodes[sum as usize];
        let terms: Vec<u32> =
            self.places[self.places_of(old)].iter().map(|place| place.reads).collect();
        let can_move = |variable: &u32| {
            let variable = &self.variables[*variable as usize];
            variable.is_increment && variable.n_readers == 1
        };
        let (increments, mut below): (Vec<u32>, Vec<u32>) = terms.into_iter().partition(can_move);
        if increments.is_empty() {
            return Ok(None);
        }
        let owner = |variable: u32| self.variables[variable as usize].owner;
        let nodes: Vec<u32> = increments.iter().map(|&variable| owner(variable)).collect();
        below.extend(nodes.iter().map(|&increment| {
            let first = self.nodes[increment as usize].first;
            self.places[first as usize].reads
        }));
        if below.contains(&NONE) {
            return Err(Error::Inconsistent("what an increment reads is not known".to_owned()));
        }
        let note = self.note_of(old.output);
        let of = self.notes[note as usize].of;
        let made = self.make(&below, NONE, note)?;
        let mut tip = self.nodes[made as usize].output;
        let mut inputs = Vec::new();
        for (&variable, &increment) in increments.iter().zip(&nodes) {
            let rest = self.note_of(variable);
            let note = self.notes.len() as u32;
            self.notes.push(Note { of, rest });
            let node = self.nodes[increment as usize];
            inputs.clear();
            inputs.push(tip);
            let others = &self.places[self.places_of(node)][1..];
            inputs.extend(others.iter().map(|place| place.reads));
            let repeated = self.make(&inputs, node.repeats, note)?;
            tip = self.nodes[repeated as usize].output;
        }
        self.hand_on(old.output, tip);
        for gone in std::iter::once(sum).chain(nodes) {
            self.take_away(gone)?;
        }
        Ok(Some(made))
    }

    /// Makes the readers of `from` read `to`, which nothing has read.
    fn hand_on(&mut self, from: u32, to: u32) {
        let Variable { first, last, n_readers, .. } = self.variables[from as usize];
        let old = &mut self.variables[from as usize];
        (old.first, old.last, old.n_readers) = (NONE, NONE, 0);
        let new = &mut self.variables[to as usize];
        (new.first, new.last, new.n_readers) = (first, last, n_readers);
        let mut next = first;
        while next != NONE {
            let place = &mut self.places[next as usize];
            place.reads = to;
            next = place.after;
            let reader = &mut self.nodes[place.node as usize];
            if reader.changed_at == 0 {
                self.now += 1;
                reader.changed_at = self.now;
            }
        }
    }

    fn take_away(&mut self, node: u32) -> Result<()> {
        for place in self.places_of(self.nodes[node as usize]) {
            self.let_go(place)?;
        }
        let gone = &mut self.nodes[node as usize];
        gone.is_there = false;
        if node as usize >= self.n_nodes {
            let n_inputs = gone.n_inputs;
            self.spare.entry(n_inputs).or_default().push(node);
        }
        Ok(())
    }

    /// Numbers the remaining nodes and variables.
    pub(super) fn finish(self, mut strung: Strung, budget: &Budget) -> Result<Strung> {
        let (n_nodes, n_variables) = (self.n_nodes, self.n_variables);
        let is_there = |&node: &u32| self.nodes[node as usize].is_there;
        let all = 0..self.nodes.len() as u32;
        strung.gone = (0..n_nodes as u32).filter(|node| !is_there(node)).collect();
        let mut made: Vec<u32> = (n_nodes as u32..all.end).filter(is_there).collect();
        made.sort_unstable_by_key(|&node| self.nodes[node as usize].made_at);
        // Made nodes and their outputs correspond one to one, in the same order.
        let mut rank = vec![NONE; self.nodes.len() - n_nodes];
        for (i, &node) in (0u32..).zip(&made) {
            rank[node as usize - n_nodes] = i;
        }
        let number = |id: u32, n_given: usize| match (id as usize).checked_sub(n_given) {
            Some(made) => n_given as u32 + rank[made],
            None => id,
        };
        let mut changed: Vec<u32> =
            all.filter(is_there).filter(|&node| self.nodes[node as usize].changed_at > 0).collect();
        changed.sort_unstable_by_key(|&node| self.nodes[node as usize].changed_at);
        for &node in &changed {
            let places = &self.places[self.places_of(self.nodes[node as usize])];
            budget.check(8 + places.len())?;
            let inputs = places.iter().map(|place| number(place.reads, n_variables)).collect();
            strung.inputs.push(inputs);
            strung.changed.push(number(node, n_nodes));
        }
        for &node in &made {
            let Node { repeats, output, .. } = self.nodes[node as usize];
            strung.repeats.push(repeats);
            let mut of = Vec::new();
            let mut next = self.variables[output as usize].note;
            while next != NONE {
                let note = self.notes[next as usize];
                of.push(note.of);
                next = note.rest;
            }
            budget.check(8 + of.len())?;
            strung.notes.push(of);
        }
        let outputs = made.iter().map(|&node| self.nodes[node as usize].output);
        for variable in (0..n_variables as u32).chain(outputs) {
            let mut readers = Vec::new();
            let mut next = self.variables[variable as usize].first;
            while next != NONE {
                let place = self.places[next as usize];
                readers.push((number(place.node, n_nodes), place.position));
                next = place.after;
            }
            budget.check(8 + 4 * readers.len())?;
            strung.readers.push(readers);
        }
        Ok(strung)
    }
}
