//! Which apply nodes compute the same thing, kept up as a graph changes.
//!
//! # Problem
//! Two nodes are *congruent* if their ops are equal and their inputs are, or will be once congruent
//! nodes are merged. A compiler merges them hundreds of times while it rewrites a graph, each time
//! after few nodes have changed, so that the work must be in proportion to what changed.
//!
//! # Approach
//! A table finds nodes by op and inputs. [`Congruence::look_up`] takes the nodes that came or
//! changed, each once, and each variable for the one that will replace it. Where a node is found
//! equal to another, one of the two is to be merged into the other: its outputs are replaced, and
//! what reads them waits to be looked up (again). Nothing is changed while looking up; the caller
//! makes all merges of the plan at once, which is safe: since congruent nodes have congruent inputs,
//! a cycle among the nodes that stay would be an infinite descent in the graph before.
//!
//! The table is never kept up to date. What it gives is checked against the graph: a node that is
//! gone or has other inputs by now is no longer an answer under that key.
//!
//! Hashing an op may be slow, so that nodes are found by a *label* that equal ops share (the class,
//! say) and their inputs; only where different ops meet under one key are ops told apart by number.
//!
//! # Rejected
//! - Union-find over equivalence classes: the graph has a place for each class, the one node that
//!   stays; chains of replacements within one plan are short.
//! - Looking among the clients of an input, without a table: takes time in proportion to the clients
//!   at each event, which is quadratic where many nodes read one variable.
//! - Keeping the table exact at each event: most events concern nodes that change again before
//!   anyone asks.
//!
//! # Source
//! P. J. Downey, R. Sethi and R. E. Tarjan, "Variations on the common subexpression problem",
//! JACM 27(4), 1980.
//!
//! # Example
//! ```
//! use std::convert::Infallible;
//! use pytensor_fuse_core::congruence::{Congruence, Direction, Graph, Presence};
//!
//! /// Nodes 0 and 1 are `exp(x)`; 2 and 3 the sine of these. Node i computes variable i; x is 9.
//! struct Sines;
//!
//! impl Graph for Sines {
//!     type Error = Infallible;
//!     fn presence(&mut self, _: u32) -> Result<Presence, Infallible> {
//!         Ok(Presence::Present)
//!     }
//!     fn inputs(&mut self, node: u32, row: &mut Vec<u32>) -> Result<(), Infallible> {
//!         row.push([9, 9, 0, 1][node as usize]);
//!         Ok(())
//!     }
//!     fn outputs(&mut self, node: u32, row: &mut Vec<u32>) -> Result<(), Infallible> {
//!         row.push(node);
//!         Ok(())
//!     }
//!     fn clients(&mut self, variable: u32, row: &mut Vec<u32>) -> Result<(), Infallible> {
//!         row.extend(match variable { 0 => Some(2), 1 => Some(3), _ => None });
//!         Ok(())
//!     }
//!     fn constant(&mut self, _: u32) -> Result<Option<u32>, Infallible> {
//!         Ok(None)
//!     }
//!     fn label(&mut self, node: u32) -> Result<u32, Infallible> {
//!         Ok(node / 2)
//!     }
//!     fn op(&mut self, node: u32) -> Result<u32, Infallible> {
//!         Ok(node / 2)
//!     }
//!     fn same_op(&mut self, node: u32, other: u32) -> Result<bool, Infallible> {
//!         Ok(node / 2 == other / 2)
//!     }
//!     fn n_outputs(&mut self, _: u32) -> Result<usize, Infallible> {
//!         Ok(1)
//!     }
//!     fn same_types(&mut self, _: u32, _: u32) -> Result<bool, Infallible> {
//!         Ok(true)
//!     }
//!     fn may_merge(&mut self, _: u32, _: u32) -> Result<bool, Infallible> {
//!         Ok(true)
//!     }
//!     fn direction(&mut self, _: u32, _: u32) -> Result<Direction, Infallible> {
//!         Ok(Direction::Forward)
//!     }
//! }
//!
//! let plan = Congruence::new().look_up(&mut Sines, vec![0, 1, 2, 3], false)?;
//! assert_eq!(plan.replacements, [(1, 0), (3, 2)]);
//! # Ok::<(), Infallible>(())
//! ```

#[cfg(test)]
mod tests;

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Slot;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

const NONE: u32 = u32::MAX;

/// What the look-up asks of a graph. Nodes and variables are dense ids, below `u32::MAX`.
pub trait Graph {
    /// Why a question could not be answered.
    type Error;

    /// What there is of `node` at this time.
    fn presence(&mut self, node: u32) -> Result<Presence, Self::Error>;
    /// Appends what `node` reads to `row`.
    fn inputs(&mut self, node: u32, row: &mut Vec<u32>) -> Result<(), Self::Error>;
    /// Appends what `node` computes to `row`.
    fn outputs(&mut self, node: u32, row: &mut Vec<u32>) -> Result<(), Self::Error>;
    /// Appends the nodes that read `variable` to `row`, in a fixed order.
    fn clients(&mut self, variable: u32, row: &mut Vec<u32>) -> Result<(), Self::Error>;
    /// The constant to take for `variable`; none if it is not a constant.
    fn constant(&mut self, variable: u32) -> Result<Option<u32>, Self::Error>;
    /// A number below 2^31 that nodes of equal ops share.
    fn label(&mut self, node: u32) -> Result<u32, Self::Error>;
    /// A number below 2^31 that nodes share exactly if their ops are equal.
    fn op(&mut self, node: u32) -> Result<u32, Self::Error>;
    /// Whether the ops of two nodes are equal.
    fn same_op(&mut self, node: u32, other: u32) -> Result<bool, Self::Error>;
    /// Whether two nodes that are equal may be merged.
    fn may_merge(&mut self, node: u32, other: u32) -> Result<bool, Self::Error>;
    /// How many variables `node` computes.
    fn n_outputs(&mut self, node: u32) -> Result<usize, Self::Error>;
    /// Whether what two nodes compute has the same types, one by one.
    fn same_types(&mut self, node: u32, other: u32) -> Result<bool, Self::Error>;
    /// Which of two equal nodes can take the place of the other.
    /// Asked of those whose types differ; of others, each can.
    fn direction(&mut self, node: u32, other: u32) -> Result<Direction, Self::Error>;
}

/// See [`Graph::presence`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It is in the graph.
    Present,
    /// It stands for a result of the graph: it reads, but is never merged.
    Result,
    /// It is not in the graph.
    Gone,
}

/// See [`Graph::direction`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The other can replace the node.
    Forward,
    /// Only the node can replace the other.
    Backward,
    /// Neither.
    Neither,
}

/// What to merge. See [`Congruence::look_up`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Variables to be replaced, each with one that stays.
    pub replacements: Vec<(u32, u32)>,
    /// Nodes to be merged, each with one that stays or is to be merged itself.
    pub dying: Vec<(u32, u32)>,
    /// Equal nodes neither of which can replace the other.
    pub incomparable: Vec<(u32, u32)>,
    /// The nodes that were looked up or are still to be, some of them twice.
    pub queue: Vec<u32>,
    /// How many of the queue were looked up; all but where one merge was asked for.
    pub n_done: usize,
}

/// A label or op, and the inputs.
type Key = SmallVec<[u32; 4]>;

#[derive(Debug, Clone)]
struct Entry {
    key: Key,
    /// The first node that was found under this key; [`NONE`] if nodes of several ops were, which
    /// are found by op.
    node: u32,
    /// Others that could not be merged with it.
    others: Vec<u32>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Congruence {
    index: HashTable<u32>,
    entries: Vec<Entry>,
    /// What is to replace each variable, and which nodes are to be merged or looked up. Between plans
    /// these say [`NONE`] and false everywhere.
    replacement_of: Vec<u32>,
    is_dying: Vec<bool>,
    is_waiting: Vec<bool>,
    /// The entry among whose others each node is; [`NONE`] for most. Asked instead of these, of which
    /// there may be thousands.
    besides: Vec<u32>,
    /// For each variable that is to stay, those that it is to replace, also by way of others. Empty
    /// between plans.
    replaced_by: FxHashMap<u32, Vec<u32>>,
    rows: Scratch,
}

#[derive(Debug, Default)]
struct Scratch {
    key: Key,
    inputs: Vec<u32>,
    row: Vec<u32>,
}

impl Congruence {
    /// A table that knows no node.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The nodes that were looked up and not found equal to others; some may be gone by now, and
    /// some come twice.
    pub fn nodes(&self) -> impl Iterator<Item = u32> {
        let first = |entry: &Entry| Some(entry.node).filter(|&node| node != NONE);
        self.entries
            .iter()
            .flat_map(move |entry| first(entry).into_iter().chain(entry.others.iter().copied()))
    }

    /// Plans to merge the nodes of `pending` with those of the table that are equal, and what this
    /// makes equal in turn. The others are put into the table.
    ///
    /// `pending` names each node once. Of equal nodes the one that was looked up first stays, but
    /// for what [`Graph::direction`] says. If `one_at_a_time` is true, the plan ends with its first
    /// merge, or with the first node whose constants are to be replaced.
    ///
    /// A plan may be dropped: then what it named in `queue` is to be looked up again.
    ///
    /// Expected O(inputs of the nodes looked up + clients of the variables to be replaced).
    ///
    /// # Errors
    /// Those of `graph`; the table then knows some of `pending` already, which does no harm.
    pub fn look_up<G: Graph>(
        &mut self,
        graph: &mut G,
        pending: Vec<u32>,
        one_at_a_time: bool,
    ) -> Result<Plan, G::Error> {
        for &node in &pending {
            set(&mut self.is_waiting, node, true, false);
        }
        let mut plan = Plan { queue: pending, ..Plan::default() };
        let result = self.run(graph, one_at_a_time, &mut plan);
        for (old, new) in &mut plan.replacements {
            *new = resolved(&self.replacement_of, *old);
        }
        for &node in &plan.queue {
            self.is_waiting[node as usize] = false;
        }
        for &(node, _) in &plan.dying {
            self.is_dying[node as usize] = false;
        }
        for &(old, _) in &plan.replacements {
            self.replacement_of[old as usize] = NONE;
        }
        self.replaced_by.clear();
        result.map(|()| plan)
    }

    /// Puts `node` into the table beside its equals. For nodes known to an earlier table.
    ///
    /// # Errors
    /// Those of `graph`.
    pub fn keep<G: Graph>(&mut self, graph: &mut G, node: u32) -> Result<(), G::Error> {
        let mut scratch = std::mem::take(&mut self.rows);
        scratch.inputs.clear();
        scratch.key.clear();
        scratch.key.push(0);
        graph.inputs(node, &mut scratch.inputs)?;
        for &variable in &scratch.inputs {
            scratch.key.push(graph.constant(variable)?.unwrap_or(variable));
        }
        if let Some(entry) = self.entry(graph, node, &mut scratch.key)? {
            self.keep_besides(entry, node);
        }
        self.rows = scratch;
        Ok(())
    }

    fn run<G: Graph>(
        &mut self,
        graph: &mut G,
        one_at_a_time: bool,
        plan: &mut Plan,
    ) -> Result<(), G::Error> {
        let mut scratch = std::mem::take(&mut self.rows);
        while let Some(&node) = plan.queue.get(plan.n_done) {
            plan.n_done += 1;
            self.is_waiting[node as usize] = false;
            let presence = graph.presence(node)?;
            if presence == Presence::Gone || get(&self.is_dying, node, false) {
                continue;
            }
            self.read(graph, one_at_a_time, node, &mut scratch, plan)?;
            if one_at_a_time && !plan.replacements.is_empty() {
                break;
            }
            if presence == Presence::Result {
                continue;
            }
            let Some(entry) = self.entry(graph, node, &mut scratch.key)? else { continue };
            let Some(other) = self.equal_of(graph, node, entry, &mut scratch.row)? else {
                continue;
            };
            let direction = if graph.same_types(node, other)? {
                Direction::Forward
            } else {
                graph.direction(node, other)?
            };
            let (old, new) = match direction {
                Direction::Neither => {
                    plan.incomparable.push((node, other));
                    self.keep_besides(entry, node);
                    continue;
                }
                Direction::Forward => (node, other),
                Direction::Backward => {
                    // The other is still found if the plan is dropped.
                    self.keep_besides(entry, node);
                    (other, node)
                }
            };
            set(&mut self.is_dying, old, true, false);
            plan.dying.push((old, new));
            let (mut olds, mut news) = (Vec::new(), Vec::new());
            graph.outputs(old, &mut olds)?;
            graph.outputs(new, &mut news)?;
            for (&old, &new) in olds.iter().zip(&news) {
                self.replace(graph, one_at_a_time, old, new, &mut scratch.row, plan)?;
            }
            if one_at_a_time {
                break;
            }
        }
        self.rows = scratch;
        Ok(())
    }

    /// Writes the key of `node`, but for its label, and notes what is to replace its constants.
    fn read<G: Graph>(
        &mut self,
        graph: &mut G,
        one_at_a_time: bool,
        node: u32,
        scratch: &mut Scratch,
        plan: &mut Plan,
    ) -> Result<(), G::Error> {
        let Scratch { key, inputs, row } = scratch;
        inputs.clear();
        graph.inputs(node, inputs)?;
        key.clear();
        key.push(0);
        for &variable in &*inputs {
            let Some(first) = graph.constant(variable)? else {
                key.push(resolved(&self.replacement_of, variable));
                continue;
            };
            key.push(first);
            if first != variable && get(&self.replacement_of, variable, NONE) == NONE {
                self.replace(graph, one_at_a_time, variable, first, row, plan)?;
            }
        }
        Ok(())
    }

    fn replace<G: Graph>(
        &mut self,
        graph: &mut G,
        one_at_a_time: bool,
        old: u32,
        new: u32,
        row: &mut Vec<u32>,
        plan: &mut Plan,
    ) -> Result<(), G::Error> {
        set(&mut self.replacement_of, old, new, NONE);
        plan.replacements.push((old, new));
        if one_at_a_time {
            // Making the one merge tells of its clients.
            return Ok(());
        }
        // What reads a variable that `old` was to replace is known by `old`, too.
        let mut renamed = self.replaced_by.remove(&old).unwrap_or_default();
        renamed.push(old);
        for &variable in &renamed {
            row.clear();
            graph.clients(variable, row)?;
            for &client in &*row {
                if !get(&self.is_waiting, client, false) && !get(&self.is_dying, client, false) {
                    set(&mut self.is_waiting, client, true, false);
                    plan.queue.push(client);
                }
            }
        }
        self.replaced_by.entry(new).or_default().append(&mut renamed);
        Ok(())
    }

    /// The entry that `node` shares with others; none if it has one of its own. `key` lacks its
    /// label.
    fn entry<G: Graph>(
        &mut self,
        graph: &mut G,
        node: u32,
        key: &mut Key,
    ) -> Result<Option<usize>, G::Error> {
        key[0] = 2 * graph.label(node)?;
        let entry = self.find_or_insert(key, node);
        let known = self.entries[entry].node;
        if known == node {
            return Ok(self.shared(entry));
        }
        if known != NONE {
            if graph.same_op(known, node)? {
                return Ok(Some(entry));
            }
            key[0] = 2 * graph.op(known)? + 1;
            let others = std::mem::take(&mut self.entries[entry].others);
            self.entries[entry].node = NONE;
            let exact = self.find_or_insert(key, known);
            for &other in &others {
                set(&mut self.besides, other, NONE, NONE);
            }
            for other in std::iter::once(known).chain(others) {
                self.keep_besides(exact, other);
            }
        }
        key[0] = 2 * graph.op(node)? + 1;
        let entry = self.find_or_insert(key, node);
        if self.entries[entry].node == node {
            return Ok(self.shared(entry));
        }
        Ok(Some(entry))
    }

    fn shared(&self, entry: usize) -> Option<usize> {
        (!self.entries[entry].others.is_empty()).then_some(entry)
    }

    fn find_or_insert(&mut self, key: &Key, node: u32) -> usize {
        let hash = |key: &[u32]| FixedState::default().hash_one(key);
        let entries = &mut self.entries;
        let slot = self.index.entry(
            hash(key),
            |&entry| entries[entry as usize].key == *key,
            |&entry| hash(&entries[entry as usize].key),
        );
        match slot {
            Slot::Occupied(slot) => *slot.get() as usize,
            Slot::Vacant(slot) => {
                // Entries are no more than nodes and keys of several, whose ids are dense.
                slot.insert(entries.len() as u32);
                entries.push(Entry { key: key.clone(), node, others: Vec::new() });
                entries.len() - 1
            }
        }
    }

    /// A node of the entry to merge with `node`; if there is none, `node` is put into it.
    fn equal_of<G: Graph>(
        &mut self,
        graph: &mut G,
        node: u32,
        entry: usize,
        row: &mut Vec<u32>,
    ) -> Result<Option<u32>, G::Error> {
        let (mut valid, mut dying) = (Vec::new(), Vec::new());
        for i in 0..=self.entries[entry].others.len() {
            let Entry { node: first, others, .. } = &self.entries[entry];
            let candidate = if i == 0 { *first } else { others[i - 1] };
            if candidate == node {
                continue;
            }
            if get(&self.is_dying, candidate, false) {
                dying.push(candidate);
            } else if self.will_read(graph, candidate, entry, row)? {
                let pairs_up = graph.n_outputs(node)? == graph.n_outputs(candidate)?;
                if pairs_up && graph.may_merge(node, candidate)? {
                    return Ok(Some(candidate));
                }
                valid.push(candidate);
            }
        }
        // Those that are neither are in the table elsewhere, will be, or are gone. Those that die in
        // this plan stay until it has been carried out.
        valid.push(node);
        valid.append(&mut dying);
        for &other in &self.entries[entry].others {
            set(&mut self.besides, other, NONE, NONE);
        }
        self.entries[entry].node = valid.remove(0);
        self.entries[entry].others.clear();
        for other in valid {
            self.keep_besides(entry, other);
        }
        Ok(None)
    }

    /// Whether `node`, which does not die, is in the graph and will read what the key of `entry` says.
    fn will_read<G: Graph>(
        &self,
        graph: &mut G,
        node: u32,
        entry: usize,
        row: &mut Vec<u32>,
    ) -> Result<bool, G::Error> {
        if graph.presence(node)? != Presence::Present {
            return Ok(false);
        }
        row.clear();
        graph.inputs(node, row)?;
        let read = row.iter().map(|&variable| resolved(&self.replacement_of, variable));
        Ok(read.eq(self.entries[entry].key[1..].iter().copied()))
    }

    fn keep_besides(&mut self, entry: usize, node: u32) {
        let Entry { node: first, others, .. } = &mut self.entries[entry];
        if *first != node && get(&self.besides, node, NONE) != entry as u32 {
            others.push(node);
            set(&mut self.besides, node, entry as u32, NONE);
        }
    }
}

fn get<T: Copy>(values: &[T], id: u32, missing: T) -> T {
    values.get(id as usize).copied().unwrap_or(missing)
}

fn set<T: Copy>(values: &mut Vec<T>, id: u32, value: T, missing: T) {
    if values.len() <= id as usize {
        values.resize(id as usize + 1, missing);
    }
    values[id as usize] = value;
}

fn resolved(replacement_of: &[u32], mut variable: u32) -> u32 {
    loop {
        match get(replacement_of, variable, NONE) {
            NONE => return variable,
            new => variable = new,
        }
    }
}
