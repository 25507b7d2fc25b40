//! Sums that go below the increments among their terms, step by step.
//!
//! An increment adds something to a part of its first input. A sum of increments that nothing else
//! reads is the sum of their first inputs, incremented by the one after the other: so PyTensor
//! strings together the increments of one array, one sum at a time. Where the sums are themselves
//! terms of sums, an increment is made anew each time that a sum goes below it, `n^2 / 2` times for
//! `n` increments. Here these steps are taken on numbers, in the same order, and what is left at
//! the end is told: nodes, who reads them in the order in which they came to, and of what nodes
//! each made variable is to have the notes.
//!
//! # Rejected
//! Working out the end without the steps: the order in which readers come to read a variable, and
//! the notes, hang on all of them, and a step takes a tenth of a microsecond.
//!
//! # Example
//! ```
//! use pytensor_fuse_core::Budget;
//! use pytensor_fuse_core::increments::{NONE, Sums, string_together};
//!
//! // 0: a = z[0] + .., 1: b = z[1] + .., 2: c = a + b, 3: reads c; z is variable 3
//! let sums = Sums {
//!     inputs: vec![vec![3], vec![3], vec![0, 1], vec![2]],
//!     outputs: vec![0, 1, 2, NONE],
//!     owners: vec![0, 1, 2, NONE],
//!     is_increment: vec![true, true, false, false],
//!     readers: vec![vec![(2, 0)], vec![(2, 1)], vec![(3, 0)], vec![(0, 0), (1, 0)]],
//!     sums: vec![2],
//! };
//! let strung = string_together(&sums, &Budget::unlimited())?;
//! // 4: z + z, 5: that incremented as by 0, 6: as by 1
//! assert_eq!(strung.gone, [0, 1, 2]);
//! assert_eq!(strung.changed, [4, 5, 6, 3]);
//! assert_eq!(strung.inputs, [vec![3, 3], vec![4], vec![5], vec![6]]);
//! assert_eq!(strung.repeats, [NONE, 0, 1]);
//! # Ok::<(), pytensor_fuse_core::Error>(())
//! ```

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::toposort::toposort;

/// No node, variable, or place.
pub const NONE: u32 = u32::MAX;

/// Nodes and variables around sums, by number.
#[derive(Debug, Clone, Default)]
pub struct Sums {
    /// What each node reads; nothing where that cannot matter.
    pub inputs: Vec<Vec<u32>>,
    /// The output of each node that reads something, of those with one that can matter.
    pub outputs: Vec<u32>,
    /// The node that makes a variable, or [`NONE`].
    pub owners: Vec<u32>,
    /// Whether a variable is an increment that sums can go below. Its node reads first what is
    /// incremented.
    pub is_increment: Vec<bool>,
    /// Who reads each variable: nodes and positions among what they read.
    pub readers: Vec<Vec<(u32, u32)>>,
    /// The sums, in the order in which they are looked at.
    pub sums: Vec<u32>,
}

/// What is left when no sum is on top of an increment that nothing else reads.
///
/// Nodes that steps have made, and that are left, have numbers that follow those of the given, in
/// the order in which they were made; so have their outputs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Strung {
    /// How many times a sum has gone below increments.
    pub n_steps: usize,
    /// The given sums that have, in this order.
    pub moved: Vec<u32>,
    /// The given nodes that nothing reads any more, in their order.
    pub gone: Vec<u32>,
    /// The nodes that are left and are new, or read something else, each when it was first so.
    pub changed: Vec<u32>,
    /// What these read, in the same order.
    pub inputs: Vec<Vec<u32>>,
    /// For each node that was made, the increment that it repeats; [`NONE`] if it is a sum.
    pub repeats: Vec<u32>,
    /// For each node that was made, the given variables whose notes its output takes over.
    pub notes: Vec<Vec<u32>>,
    /// Who reads each variable, in the order in which they came to.
    pub readers: Vec<Vec<(u32, u32)>>,
}

/// Moves sums below increments until none is on top of one.
///
/// # Arguments
/// * `sums`: the nodes and variables.
///
/// A step takes the sum that has waited longest. Its terms that are increments, and that nothing
/// else reads, are `c[1]`, `c[2]`, ... A new sum has its other terms, and then what these
/// increment; `c[1]`, `c[2]`, ... are made anew, each on top of the last, the first on top of the
/// new sum. Who has read the old sum reads the last of them. The new sum waits, too.
///
/// # Errors
/// [`Error::OutOfRange`] and [`Error::Inconsistent`] if the arrays contradict each other;
/// [`Error::Cycle`] with nodes that read each other; [`Error::Interrupted`].
///
/// # Complexity
/// Time in proportion to the inputs of all nodes that are made, memory to what is there at any one
/// time, but for 8 bytes for each node that is made.
pub fn string_together(sums: &Sums, budget: &Budget) -> Result<Strung> {
    let mut steps = Steps::new(sums, budget)?;
    let mut waiting: VecDeque<u32> = sums.sums.iter().copied().collect();
    let mut strung = Strung::default();
    while let Some(sum) = waiting.pop_front() {
        budget.check(8 + 8 * steps.nodes[sum as usize].n_inputs as usize)?;
        if !steps.nodes[sum as usize].is_there {
            continue;
        }
        if let Some(made) = steps.step(sum)? {
            strung.n_steps += 1;
            if (sum as usize) < steps.n_nodes {
                strung.moved.push(sum);
            }
            waiting.push_back(made);
        }
    }
    steps.finish(strung, budget)
}

/// Refuses cycles, whose sums could go below each other without end.
fn require_acyclic(given: &Sums, budget: &Budget) -> Result<()> {
    let made = (0u32..).zip(&given.outputs).map(|(node, &output)| (node, output));
    let owned = given.owners.iter().copied().zip(0u32..);
    let (mut sources, mut targets) = (Vec::new(), Vec::new());
    for (node, variable) in made.chain(owned).filter(|&pair| pair.0 != NONE && pair.1 != NONE) {
        let readers = &given.readers[variable as usize];
        budget.check(1 + readers.len())?;
        sources.resize(sources.len() + readers.len(), node);
        targets.extend(readers.iter().map(|&(reader, _)| reader));
    }
    let graph = Graph::new(given.inputs.len(), &sources, &targets, budget)?;
    toposort(&graph, None, budget).map(drop)
}

#[derive(Debug, Clone, Copy)]
struct Node {
    /// Where its places begin.
    first: u32,
    n_inputs: u32,
    output: u32,
    repeats: u32,
    is_there: bool,
    /// When it was made, if it was.
    made_at: u64,
    /// When it was made or first read something else; 0 if never.
    changed_at: u64,
}

#[derive(Debug, Clone, Copy)]
struct Variable {
    owner: u32,
    is_increment: bool,
    /// A note of `Steps::notes`.
    note: u32,
    /// The places that read it, first to last.
    first: u32,
    last: u32,
    n_readers: u32,
}

/// A position among the inputs of a node: it stands in the list of those that read a variable.
#[derive(Debug, Clone, Copy)]
struct Place {
    node: u32,
    position: u32,
    reads: u32,
    before: u32,
    after: u32,
}

/// A given variable whose notes are taken over, and what comes after them.
#[derive(Debug, Clone, Copy)]
struct Note {
    of: u32,
    rest: u32,
}

struct Steps {
    n_nodes: usize,
    n_variables: usize,
    nodes: Vec<Node>,
    variables: Vec<Variable>,
    places: Vec<Place>,
    notes: Vec<Note>,
    /// Nodes that were made and are gone, by the number of their inputs. Those that are made next
    /// get their numbers, places and outputs.
    spare: FxHashMap<u32, Vec<u32>>,
    now: u64,
}

impl Steps {
    fn new(given: &Sums, budget: &Budget) -> Result<Self> {
        let (n_nodes, n_variables) = (given.inputs.len(), given.owners.len());
        let lengths = [
            ("outputs", given.outputs.len(), n_nodes),
            ("is_increment", given.is_increment.len(), n_variables),
            ("readers", given.readers.len(), n_variables),
        ];
        for (left, left_len, right_len) in lengths {
            if left_len != right_len {
                let right = if right_len == n_nodes { "inputs" } else { "owners" };
                return Err(Error::LengthMismatch { left, left_len, right, right_len });
            }
        }
        let node = |id: u32| in_range("node", id, n_nodes);
        let variable = |id: u32| in_range("variable", id, n_variables);
        let mut places = Vec::new();
        let mut nodes = Vec::new();
        for (number, inputs) in (0u32..).zip(&given.inputs) {
            budget.check(8 + 8 * inputs.len())?;
            let output = given.outputs[number as usize];
            if output != NONE {
                variable(output)?;
            }
            nodes.push(Node {
                first: places.len() as u32,
                n_inputs: inputs.len() as u32,
                output,
                repeats: number,
                is_there: true,
                made_at: 0,
                changed_at: 0,
            });
            for (position, &reads) in (0u32..).zip(inputs) {
                variable(reads)?;
                places.push(Place {
                    node: number,
                    position,
                    reads: NONE,
                    before: NONE,
                    after: NONE,
                });
            }
        }
        let mut variables = Vec::new();
        for (&owner, &is_increment) in given.owners.iter().zip(&given.is_increment) {
            if owner != NONE {
                node(owner)?;
            }
            if is_increment && (owner == NONE || given.inputs[owner as usize].is_empty()) {
                return Err(Error::Inconsistent("an increment reads nothing".to_owned()));
            }
            variables.push(Variable {
                owner,
                is_increment,
                note: NONE,
                first: NONE,
                last: NONE,
                n_readers: 0,
            });
        }
        let mut steps = Self {
            n_nodes,
            n_variables,
            nodes,
            variables,
            places,
            notes: Vec::new(),
            spare: FxHashMap::default(),
            now: 0,
        };
        for (number, readers) in (0u32..).zip(&given.readers) {
            budget.check(8 + 8 * readers.len())?;
            for &(reader, position) in readers {
                node(reader)?;
                let inputs = &given.inputs[reader as usize];
                let place = if inputs.is_empty() {
                    let place =
                        Place { node: reader, position, reads: NONE, before: NONE, after: NONE };
                    steps.places.push(place);
                    steps.places.len() as u32 - 1
                } else {
                    if inputs.get(position as usize) != Some(&number) {
                        let message = format!("node {reader} does not read {number} at {position}");
                        return Err(Error::Inconsistent(message));
                    }
                    steps.nodes[reader as usize].first + position
                };
                if steps.places[place as usize].reads != NONE {
                    let message = format!("node {reader} reads {number} at {position} twice");
                    return Err(Error::Inconsistent(message));
                }
                steps.read(place, number);
            }
        }
        require_acyclic(given, budget)?;
        for &sum in &given.sums {
            node(sum)?;
            let node = steps.nodes[sum as usize];
            let places = steps.places_of(node);
            if node.output == NONE || steps.places[places].iter().any(|place| place.reads == NONE) {
                return Err(Error::Inconsistent(format!("node {sum} is not a sum that is known")));
            }
        }
        Ok(steps)
    }

    fn places_of(&self, node: Node) -> std::ops::Range<usize> {
        node.first as usize..(node.first + node.n_inputs) as usize
    }

    /// Lets a place that reads nothing be the last that reads a variable.
    fn read(&mut self, place: u32, variable: u32) {
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

    /// Lets a place read nothing.
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

    /// The note of a variable, made if it is a given one that has none yet.
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

    /// Lets a sum go below the increments among its terms, if there are any; returns the new sum.
    fn step(&mut self, sum: u32) -> Result<Option<u32>> {
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

    /// Lets those who read `from` read `to`, which nothing has read.
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

    /// Numbers what is left.
    fn finish(self, mut strung: Strung, budget: &Budget) -> Result<Strung> {
        let (n_nodes, n_variables) = (self.n_nodes, self.n_variables);
        let is_there = |&node: &u32| self.nodes[node as usize].is_there;
        let all = 0..self.nodes.len() as u32;
        strung.gone = (0..n_nodes as u32).filter(|node| !is_there(node)).collect();
        let mut made: Vec<u32> = (n_nodes as u32..all.end).filter(is_there).collect();
        made.sort_unstable_by_key(|&node| self.nodes[node as usize].made_at);
        // Made nodes and their outputs are as many, in the same order.
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

fn in_range(what: &'static str, id: u32, limit: usize) -> Result<()> {
    if (id as usize) < limit {
        Ok(())
    } else {
        Err(Error::OutOfRange { what, id: id.into(), limit })
    }
}

#[cfg(test)]
#[path = "increments_tests.rs"]
mod tests;
