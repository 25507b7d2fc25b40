//! Detection of congruent apply nodes in a graph that changes.
//!
//! # Problem
//! Two nodes are *congruent* if their ops are equal and their inputs are, or will be once congruent
//! nodes are merged. A compiler merges nodes hundreds of times while it rewrites a graph, each time
//! after a few changes, so the work must be proportional to the changes.
//!
//! # Approach
//! A table finds nodes by op and inputs. [`Congruence::look_up`] looks up each new or changed node
//! once, and identifies each variable with its replacement. If a node is equal to another, the plan
//! merges one into the other: its outputs are replaced, and their readers are queued for another
//! look-up. A look-up changes nothing; the caller makes all merges of the plan at once. This is safe:
//! since congruent nodes have congruent inputs, a cycle among the remaining nodes would imply an
//! infinite descent in the original graph.
//!
//! The table is not updated when the graph changes. Instead, its answers are checked against the
//! graph: a node that is gone or has other inputs is not an answer.
//!
//! Hashing an op may be slow, so nodes are found by their inputs and a *label* that equal ops
//! share, such as their class; only if different ops meet under one key, their numbers distinguish
//! them.
//!
//! # Rejected
//! - Union-find over equivalence classes: the remaining node represents each class in the graph, and
//!   chains of replacements within one plan are short.
//! - A search among the clients of an input, without a table: each event takes time proportional to
//!   the clients, which is quadratic if many nodes read one variable.
//! - A table that is exact after each event: most events concern nodes that change again before the
//!   next look-up.
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
//!     fn inputs(&mut self, node: u32) -> Result<Vec<u32>, Infallible> {
//!         Ok(vec![[9, 9, 0, 1][node as usize]])
//!     }
//!     fn outputs(&mut self, node: u32) -> Result<Vec<u32>, Infallible> {
//!         Ok(vec![node])
//!     }
//!     fn clients(&mut self, variable: u32) -> Result<Vec<u32>, Infallible> {
//!         Ok(match variable { 0 => vec![2], 1 => vec![3], _ => vec![] })
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

/// The queries of a look-up to a graph. Nodes and variables are dense ids, below `u32::MAX`.
pub trait Graph {
    /// The error of a failed query.
    type Error;

    /// Whether `node` is in the graph now.
    fn presence(&mut self, node: u32) -> Result<Presence, Self::Error>;
    /// The variables that `node` reads.
    fn inputs(&mut self, node: u32) -> Result<Vec<u32>, Self::Error>;
    /// The variables that `node` computes.
    fn outputs(&mut self, node: u32) -> Result<Vec<u32>, Self::Error>;
    /// The nodes that read `variable`, in a fixed order.
    fn clients(&mut self, variable: u32) -> Result<Vec<u32>, Self::Error>;
    /// The representative of the constants that are equal to `variable`; none if it is not a constant.
    fn constant(&mut self, variable: u32) -> Result<Option<u32>, Self::Error>;
    /// A number below 2^31 that nodes of equal ops share.
    fn label(&mut self, node: u32) -> Result<u32, Self::Error>;
    /// A number below 2^31 that two nodes share if and only if their ops are equal.
    fn op(&mut self, node: u32) -> Result<u32, Self::Error>;
    /// Whether the ops of two nodes are equal.
    fn same_op(&mut self, node: u32, other: u32) -> Result<bool, Self::Error>;
    /// Whether two nodes of equal ops and inputs may be merged.
    fn may_merge(&mut self, node: u32, other: u32) -> Result<bool, Self::Error>;
    /// Which of two equal nodes can replace the other.
    fn direction(&mut self, node: u32, other: u32) -> Result<Direction, Self::Error>;
}

/// See [`Graph::presence`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// The node is in the graph.
    Present,
    /// The node represents a result of the graph: it has an input, but is never merged.
    Result,
    /// The node is not in the graph.
    Gone,
}

/// See [`Graph::direction`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The other node can replace the first.
    Forward,
    /// Only the first node can replace the other.
    Backward,
    /// Neither can replace the other.
    Neither,
}

/// The merges to make. See [`Congruence::look_up`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Variables, each with its replacement, which stays.
    pub replacements: Vec<(u32, u32)>,
    /// Merged nodes, each with an equal one that stays or is itself merged.
    pub dying: Vec<(u32, u32)>,
    /// Equal nodes neither of which can replace the other.
    pub incomparable: Vec<(u32, u32)>,
    /// The nodes that were or still have to be looked up; some occur twice.
    pub queue: Vec<u32>,
    /// The number of nodes of the queue that were looked up: all unless a single merge was
    /// requested.
    pub n_done: usize,
}

/// A label or op, and the inputs.
type Key = SmallVec<[u32; 4]>;

#[derive(Debug, Clone)]
struct Entry {
    key: Key,
    /// The first node under this key; [`NONE`] if nodes of several ops share the key. These are
    /// then found by op.
    node: u32,
    /// Other nodes that could not be merged with the first.
    others: Vec<u32>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Congruence {
    index: HashTable<u32>,
    entries: Vec<Entry>,
    /// The replacement of each variable, and whether each node will be merged or is queued: [`NONE`]
    /// and false between plans.
    replacement_of: Vec<u32>,
    is_dying: Vec<bool>,
    is_waiting: Vec<bool>,
    /// The entry that has each node among its `others`; [`NONE`] for most nodes. A search in an
    /// entry would take too long, since it may have thousands of others.
    besides: Vec<u32>,
    /// The variables that each replacement replaces, directly or through others. Empty between plans.
    replaced_by: FxHashMap<u32, Vec<u32>>,
}

impl Congruence {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The nodes in the table. Some may be gone, and some occur twice.
    pub fn nodes(&self) -> impl Iterator<Item = u32> {
        let first = |entry: &Entry| Some(entry.node).filter(|&node| node != NONE);
        self.entries
            .iter()
            .flat_map(move |entry| first(entry).into_iter().chain(entry.others.iter().copied()))
    }

    /// Plans the merges of the nodes of `pending` with equal nodes of the table, and of nodes that
    /// become equal by these merges. The other nodes are added to the table.
    ///
    /// `pending` names each node once. The first of several equal nodes to be looked up stays, unless
    /// [`Graph::direction`] forbids it. If `one_at_a_time` is true, the plan ends with its first merge,
    /// or with the first node whose constants are replaced.
    ///
    /// If a plan is not carried out, its `queue` has to be looked up again.
    ///
    /// Expected O(inputs of the nodes looked up + clients of the replaced variables).
    ///
    /// # Errors
    /// Those of `graph`; the table then contains some of `pending`, which is harmless.
    pub fn look_up<G: Graph>(
        &mut self,
        graph: &mut G,
        pending: Vec<u32>,
        one_at_a_time: bool,
    ) -> Result<Plan, G::Error> {
        for &node in &pending {
            set(&mut self.is_waiting, node, true, false);
        }
        let plan = Plan { queue: pending, ..Plan::default() };
        let mut look_up = LookUp { table: self, graph, one_at_a_time, plan };
        let result = look_up.run();
        let mut plan = look_up.plan;
        for (old, new) in &mut plan.replacements {
            *new = self.resolved(*old);
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

    /// Adds `node`, which an earlier table contained, to the table, beside the nodes equal to it.
    ///
    /// # Errors
    /// Those of `graph`.
    pub fn keep<G: Graph>(&mut self, graph: &mut G, node: u32) -> Result<(), G::Error> {
        let mut key = Key::from_slice(&[0]);
        for variable in graph.inputs(node)? {
            key.push(graph.constant(variable)?.unwrap_or(variable));
        }
        if let Some(entry) = self.entry(graph, node, &mut key)? {
            self.keep_besides(entry, node);
        }
        Ok(())
    }

    /// The entry that `node` shares with other nodes, if any. `key` lacks the label of `node`.
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
            self.entries[entry].node = NONE;
            let others = self.take_others(entry);
            let exact = self.find_or_insert(key, known);
            for other in std::iter::once(known).chain(others) {
                self.keep_besides(exact, other);
            }
        }
        key[0] = 2 * graph.op(node)? + 1;
        let entry = self.find_or_insert(key, node);
        Ok(if self.entries[entry].node == node { self.shared(entry) } else { Some(entry) })
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
                // There is at most one entry for each node and each key of several, whose ids are
                // dense.
                slot.insert(entries.len() as u32);
                entries.push(Entry { key: key.clone(), node, others: Vec::new() });
                entries.len() - 1
            }
        }
    }

    fn keep_besides(&mut self, entry: usize, node: u32) {
        let Entry { node: first, others, .. } = &mut self.entries[entry];
        if *first != node && get(&self.besides, node, NONE) != entry as u32 {
            others.push(node);
            set(&mut self.besides, node, entry as u32, NONE);
        }
    }

    fn take_others(&mut self, entry: usize) -> Vec<u32> {
        let others = std::mem::take(&mut self.entries[entry].others);
        for &other in &others {
            self.besides[other as usize] = NONE;
        }
        others
    }

    /// The variable that finally replaces `variable`; `variable` itself if it stays.
    fn resolved(&self, mut variable: u32) -> u32 {
        loop {
            match get(&self.replacement_of, variable, NONE) {
                NONE => return variable,
                new => variable = new,
            }
        }
    }
}

/// One call of [`Congruence::look_up`].
struct LookUp<'a, G> {
    table: &'a mut Congruence,
    graph: &'a mut G,
    one_at_a_time: bool,
    plan: Plan,
}

impl<G: Graph> LookUp<'_, G> {
    fn run(&mut self) -> Result<(), G::Error> {
        while let Some(&node) = self.plan.queue.get(self.plan.n_done) {
            self.plan.n_done += 1;
            self.table.is_waiting[node as usize] = false;
            let presence = self.graph.presence(node)?;
            if presence == Presence::Gone || get(&self.table.is_dying, node, false) {
                continue;
            }
            let mut key = self.key(node)?;
            if self.one_at_a_time && !self.plan.replacements.is_empty() {
                break;
            }
            if presence == Presence::Result {
                continue;
            }
            let Some(entry) = self.table.entry(self.graph, node, &mut key)? else { continue };
            let Some(other) = self.equal_of(node, entry)? else { continue };
            let (old, new) = match self.graph.direction(node, other)? {
                Direction::Neither => {
                    self.plan.incomparable.push((node, other));
                    self.table.keep_besides(entry, node);
                    continue;
                }
                Direction::Forward => (node, other),
                Direction::Backward => {
                    // `node` joins the entry without replacing the other, which is still found if
                    // the plan is dropped.
                    self.table.keep_besides(entry, node);
                    (other, node)
                }
            };
            set(&mut self.table.is_dying, old, true, false);
            self.plan.dying.push((old, new));
            let (olds, news) = (self.graph.outputs(old)?, self.graph.outputs(new)?);
            for (old, new) in olds.into_iter().zip(news) {
                self.replace(old, new)?;
            }
            if self.one_at_a_time {
                break;
            }
        }
        Ok(())
    }

    /// The key of `node` without its label. Plans the replacement of its constants.
    fn key(&mut self, node: u32) -> Result<Key, G::Error> {
        let mut key = Key::from_slice(&[0]);
        for variable in self.graph.inputs(node)? {
            let Some(first) = self.graph.constant(variable)? else {
                key.push(self.table.resolved(variable));
                continue;
            };
            key.push(first);
            if first != variable && get(&self.table.replacement_of, variable, NONE) == NONE {
                self.replace(variable, first)?;
            }
        }
        Ok(key)
    }

    fn replace(&mut self, old: u32, new: u32) -> Result<(), G::Error> {
        let Congruence { replacement_of, is_dying, is_waiting, replaced_by, .. } = self.table;
        set(replacement_of, old, new, NONE);
        self.plan.replacements.push((old, new));
        if self.one_at_a_time {
            // The edit reports the clients.
            return Ok(());
        }
        // The keys of nodes that read a variable replaced by `old` contain `old`, too.
        let mut renamed = replaced_by.remove(&old).unwrap_or_default();
        renamed.push(old);
        for &variable in &renamed {
            for client in self.graph.clients(variable)? {
                if !get(is_waiting, client, false) && !get(is_dying, client, false) {
                    set(is_waiting, client, true, false);
                    self.plan.queue.push(client);
                }
            }
        }
        replaced_by.entry(new).or_default().append(&mut renamed);
        Ok(())
    }

    /// A node of the entry to merge with `node`; if there is none, `node` is added to the entry.
    fn equal_of(&mut self, node: u32, entry: usize) -> Result<Option<u32>, G::Error> {
        let (mut valid, mut dying) = (Vec::new(), Vec::new());
        for i in 0..=self.table.entries[entry].others.len() {
            let Entry { node: first, others, .. } = &self.table.entries[entry];
            let candidate = if i == 0 { *first } else { others[i - 1] };
            if candidate == node {
                continue;
            }
            if get(&self.table.is_dying, candidate, false) {
                dying.push(candidate);
            } else if self.will_read(candidate, entry)? {
                if self.graph.may_merge(node, candidate)? {
                    return Ok(Some(candidate));
                }
                valid.push(candidate);
            }
        }
        // The other candidates are gone, or have an entry elsewhere, or will get one. Dying nodes stay
        // until the plan is carried out.
        valid.push(node);
        valid.append(&mut dying);
        self.table.take_others(entry);
        self.table.entries[entry].node = valid.remove(0);
        for other in valid {
            self.table.keep_besides(entry, other);
        }
        Ok(None)
    }

    /// Whether `node`, which is not dying, is in the graph and will read the inputs in the key of
    /// `entry`.
    fn will_read(&mut self, node: u32, entry: usize) -> Result<bool, G::Error> {
        if self.graph.presence(node)? != Presence::Present {
            return Ok(false);
        }
        let inputs = self.graph.inputs(node)?.into_iter();
        let read = inputs.map(|variable| self.table.resolved(variable));
        Ok(read.eq(self.table.entries[entry].key[1..].iter().copied()))
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
