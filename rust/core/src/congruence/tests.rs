use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::{Congruence, Direction, Graph, Plan, Presence};

/// The source of a variable: unknown, the value of a constant, or the node that computes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Free(u32),
    Constant(u32),
    Node(u32),
}

#[derive(Debug, Clone)]
struct Node {
    op: u32,
    inputs: Vec<u32>,
    output: u32,
    /// A node of a larger, more specific kind can replace an equal node. Neither of two equal
    /// nodes of different odd kinds can.
    kind: u32,
    is_present: bool,
}

/// A graph with one output per node. Ops `2 k` and `2 k + 1` share a label.
#[derive(Debug, Clone, Default)]
struct Toy {
    sources: Vec<Source>,
    nodes: Vec<Node>,
    results: Vec<u32>,
    firsts: BTreeMap<u32, u32>,
    refused: BTreeSet<(u32, u32)>,
}

/// The value of a variable, for comparison.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    Free(u32),
    Constant(u32),
    Applied(u32, Vec<Value>),
}

impl Toy {
    fn variable(&mut self, source: Source) -> u32 {
        self.sources.push(source);
        self.sources.len() as u32 - 1
    }

    fn node(&mut self, op: u32, kind: u32, inputs: Vec<u32>) -> u32 {
        let id = self.nodes.len() as u32;
        let output = self.variable(Source::Node(id));
        self.nodes.push(Node { op, inputs, output, kind, is_present: true });
        id
    }

    fn value(&self, variable: u32) -> Value {
        match self.sources[variable as usize] {
            Source::Free(i) => Value::Free(i),
            Source::Constant(i) => Value::Constant(i),
            Source::Node(id) => {
                let node = &self.nodes[id as usize];
                Value::Applied(node.op, node.inputs.iter().map(|&v| self.value(v)).collect())
            }
        }
    }

    fn present(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.is_present)
    }

    fn values(&self) -> BTreeSet<Value> {
        self.present().map(|node| self.value(node.output)).collect()
    }

    fn is_read(&self, variable: u32) -> bool {
        self.results.contains(&variable)
            || self.present().any(|node| node.inputs.contains(&variable))
    }

    /// Makes the merges of a plan, and returns the nodes whose inputs changed.
    fn apply(&mut self, plan: &Plan) -> Vec<u32> {
        let replacement_of: BTreeMap<u32, u32> = plan.replacements.iter().copied().collect();
        let mut changed = Vec::new();
        for &(old, _) in &plan.dying {
            self.nodes[old as usize].is_present = false;
        }
        for (id, node) in self.nodes.iter_mut().enumerate().filter(|(_, node)| node.is_present) {
            let before = node.inputs.clone();
            for variable in &mut node.inputs {
                *variable = replacement_of.get(variable).copied().unwrap_or(*variable);
            }
            if node.inputs != before {
                changed.push(id as u32);
            }
        }
        for variable in &mut self.results {
            *variable = replacement_of.get(variable).copied().unwrap_or(*variable);
        }
        changed
    }

    /// Merges until nothing is left to look up.
    fn merge(&mut self, table: &mut Congruence, mut pending: Vec<u32>, one_at_a_time: bool) {
        while !pending.is_empty() {
            let Ok(plan) = table.look_up(self, pending, one_at_a_time);
            assert_is_sound(self, &plan);
            let mut rest: Vec<u32> = plan.queue[plan.n_done..].to_vec();
            for node in self.apply(&plan) {
                // With one merge at a time, the edit reports the nodes that it changes.
                if one_at_a_time && !rest.contains(&node) {
                    rest.push(node);
                }
            }
            pending = rest;
            for &(node, other) in &plan.incomparable {
                self.refused.insert((node, other));
            }
            assert_finds_others(table);
        }
    }
}

/// Asserts that each node occurs once among the others of the entry that `besides` names.
fn assert_finds_others(table: &Congruence) {
    for (&entry, node) in
        table.besides.iter().zip(0u32..).filter(|&(&entry, _)| entry != super::NONE)
    {
        let others = &table.entries[entry as usize].others;
        assert_eq!(others.iter().filter(|&&other| other == node).count(), 1);
    }
}

impl Graph for Toy {
    type Error = Infallible;

    fn presence(&mut self, node: u32) -> Result<Presence, Infallible> {
        let is_present = self.nodes[node as usize].is_present;
        Ok(if is_present { Presence::Present } else { Presence::Gone })
    }

    fn inputs(&mut self, node: u32) -> Result<Vec<u32>, Infallible> {
        Ok(self.nodes[node as usize].inputs.clone())
    }

    fn outputs(&mut self, node: u32) -> Result<Vec<u32>, Infallible> {
        Ok(vec![self.nodes[node as usize].output])
    }

    fn clients(&mut self, variable: u32) -> Result<Vec<u32>, Infallible> {
        let nodes = self.nodes.iter().enumerate();
        let clients = nodes.filter(|(_, n)| n.is_present && n.inputs.contains(&variable));
        Ok(clients.map(|(id, _)| id as u32).collect())
    }

    fn constant(&mut self, variable: u32) -> Result<Option<u32>, Infallible> {
        let Source::Constant(value) = self.sources[variable as usize] else { return Ok(None) };
        let first = self.firsts.get(&value).copied().filter(|&first| self.is_read(first));
        let first = first.unwrap_or(variable);
        self.firsts.insert(value, first);
        Ok(Some(first))
    }

    fn label(&mut self, node: u32) -> Result<u32, Infallible> {
        Ok(self.nodes[node as usize].op / 2)
    }

    fn op(&mut self, node: u32) -> Result<u32, Infallible> {
        Ok(self.nodes[node as usize].op)
    }

    fn same_op(&mut self, node: u32, other: u32) -> Result<bool, Infallible> {
        Ok(self.nodes[node as usize].op == self.nodes[other as usize].op)
    }

    fn may_merge(&mut self, node: u32, other: u32) -> Result<bool, Infallible> {
        Ok(!self.refused.contains(&(node, other)) && !self.refused.contains(&(other, node)))
    }

    fn direction(&mut self, node: u32, other: u32) -> Result<Direction, Infallible> {
        let (kind, others) = (self.nodes[node as usize].kind, self.nodes[other as usize].kind);
        Ok(if kind != others && kind % 2 == 1 && others % 2 == 1 {
            Direction::Neither
        } else if others >= kind {
            Direction::Forward
        } else {
            Direction::Backward
        })
    }
}

fn assert_is_sound(toy: &Toy, plan: &Plan) {
    let dying: BTreeSet<u32> = plan.dying.iter().map(|&(old, _)| old).collect();
    assert_eq!(dying.len(), plan.dying.len(), "a node dies once");
    for &(old, new) in &plan.replacements {
        assert_eq!(toy.value(old), toy.value(new), "{old} and {new} are not the same");
        if let Source::Node(node) = toy.sources[new as usize] {
            assert!(!dying.contains(&node), "{new} is computed by a node that dies");
            assert!(
                toy.nodes[node as usize].is_present,
                "{new} is computed by a node that is gone"
            );
        }
    }
    for &(node, other) in &plan.incomparable {
        let output = |node: u32| toy.nodes[node as usize].output;
        assert_eq!(toy.value(output(node)), toy.value(output(other)));
    }
}

/// One node: its op, its kind and its inputs.
type Step = (u32, u32, Vec<Index>);

fn steps(kinds: u32, max: usize) -> impl Strategy<Value = Vec<Step>> {
    vec((0..4u32, 0..kinds, vec(any::<Index>(), 0..3)), 0..max)
}

fn toy(steps: &[Step]) -> Toy {
    let mut toy = Toy::default();
    for i in 0..2 {
        toy.variable(Source::Free(i));
    }
    for i in 0..4 {
        toy.variable(Source::Constant(i % 2));
    }
    grow(&mut toy, steps);
    toy
}

/// Adds nodes that read the present variables, and returns them.
fn grow(toy: &mut Toy, steps: &[Step]) -> Vec<u32> {
    let mut added = Vec::new();
    for (op, kind, picks) in steps {
        let gone: BTreeSet<u32> =
            toy.nodes.iter().filter(|node| !node.is_present).map(|node| node.output).collect();
        let there: Vec<u32> =
            (0..toy.sources.len() as u32).filter(|variable| !gone.contains(variable)).collect();
        // Nodes read few variables, so that many nodes are equal.
        let near: Vec<u32> =
            there.iter().take(9).chain(there.iter().rev().take(3)).copied().collect();
        let inputs = picks.iter().map(|pick| near[pick.index(near.len())]).collect();
        let node = toy.node(*op, *kind, inputs);
        toy.results.push(toy.nodes[node as usize].output);
        added.push(node);
    }
    added
}

fn keep_first_of_each(nodes: &mut Vec<u32>) {
    let mut seen = BTreeSet::new();
    nodes.retain(|&node| seen.insert(node));
}

fn all(toy: &Toy) -> Vec<u32> {
    (0..toy.nodes.len() as u32).filter(|&node| toy.nodes[node as usize].is_present).collect()
}

proptest! {
    #[test]
    fn one_node_is_left_of_each_value(steps in steps(1, 24), one_at_a_time: bool) {
        let mut toy = toy(&steps);
        let expected = toy.values();
        let results: Vec<Value> = toy.results.iter().map(|&v| toy.value(v)).collect();
        let pending = all(&toy);
        toy.merge(&mut Congruence::new(), pending, one_at_a_time);
        prop_assert_eq!(toy.present().count(), expected.len());
        prop_assert_eq!(toy.values(), expected);
        let after: Vec<Value> = toy.results.iter().map(|&v| toy.value(v)).collect();
        prop_assert_eq!(after, results);
        let constants: BTreeSet<u32> = toy
            .present()
            .flat_map(|node| &node.inputs)
            .filter(|&&v| matches!(toy.sources[v as usize], Source::Constant(_)))
            .copied()
            .collect();
        prop_assert!(constants.len() <= 2);
    }

    #[test]
    fn the_more_specific_stays(steps in steps(3, 16)) {
        let mut toy = toy(&steps.into_iter().map(|(op, kind, i)| (op, 2 * kind, i)).collect::<Vec<_>>());
        let mut best: BTreeMap<Value, u32> = BTreeMap::new();
        for node in toy.present() {
            let known = best.entry(toy.value(node.output)).or_default();
            *known = node.kind.max(*known);
        }
        let pending = all(&toy);
        toy.merge(&mut Congruence::new(), pending, false);
        for node in toy.present() {
            prop_assert_eq!(best[&toy.value(node.output)], node.kind);
        }
        prop_assert_eq!(toy.present().count(), best.len());
    }

    #[test]
    fn few_changes_at_a_time(
        rounds in vec((steps(1, 6), vec((any::<Index>(), any::<Index>(), any::<bool>()), 0..3)), 1..12),
        tidies: bool,
    ) {
        let mut toy = toy(&[]);
        let mut table = Congruence::new();
        for (steps, edits) in rounds {
            let mut pending = grow(&mut toy, &steps);
            for (which, instead, stays) in edits {
                // The clients of a node read a variable that does not depend on it.
                let present = all(&toy);
                if present.is_empty() {
                    continue;
                }
                let node = present[which.index(present.len().min(3))];
                let old = toy.nodes[node as usize].output;
                let new = instead.index(6) as u32;
                toy.nodes[node as usize].is_present = stays;
                let plan = Plan { replacements: vec![(old, new)], ..Plan::default() };
                pending.extend(toy.apply(&plan));
            }
            keep_first_of_each(&mut pending);
            let expected = toy.values();
            toy.merge(&mut table, pending, false);
            prop_assert_eq!(toy.present().count(), expected.len());
            prop_assert_eq!(toy.values(), expected);
            if tidies {
                let mut tidy = Congruence::new();
                for node in table.nodes().collect::<Vec<_>>() {
                    if toy.nodes[node as usize].is_present {
                        let Ok(()) = tidy.keep(&mut toy, node);
                    }
                }
                table = tidy;
            }
        }
    }

    #[test]
    fn equals_that_cannot_replace_each_other_are_told(steps in steps(4, 16)) {
        let mut toy = toy(&steps);
        let pending = all(&toy);
        let Ok(plan) = Congruence::new().look_up(&mut toy, pending, false);
        assert_is_sound(&toy, &plan);
        toy.apply(&plan);
        // Among remaining equal nodes, all but at most one were found incomparable with another.
        let incomparable: BTreeSet<u32> = plan.incomparable.iter().flat_map(|&(a, b)| [a, b]).collect();
        let mut by_key: BTreeMap<(u32, Vec<u32>), Vec<u32>> = BTreeMap::new();
        for id in all(&toy) {
            let node = &toy.nodes[id as usize];
            by_key.entry((node.op, node.inputs.clone())).or_default().push(id);
        }
        for equal in by_key.values().filter(|equal| equal.len() > 1) {
            prop_assert!(equal.iter().filter(|id| !incomparable.contains(id)).count() <= 1);
        }
    }
}

proptest! {
    #[test]
    fn a_plan_may_be_dropped(rounds in vec((steps(3, 6), any::<bool>()), 1..6), one_at_a_time: bool) {
        let mut toy = toy(&[]);
        let mut table = Congruence::new();
        for (steps, drops) in rounds {
            let steps: Vec<Step> = steps.into_iter().map(|(op, kind, i)| (op, 2 * kind, i)).collect();
            let mut pending = grow(&mut toy, &steps);
            if drops {
                let Ok(plan) = table.look_up(&mut toy, pending, one_at_a_time);
                pending = plan.queue;
                keep_first_of_each(&mut pending);
            }
            let expected = toy.values();
            toy.merge(&mut table, pending, false);
            prop_assert_eq!(toy.present().count(), expected.len());
            prop_assert_eq!(toy.values(), expected);
        }
    }
}

/// Thousands of equal nodes cannot replace one another: each is reported once, and stays in the
/// table.
#[test]
fn many_that_are_incomparable() {
    let mut toy = toy(&[]);
    let nodes: Vec<u32> = (0..5000).map(|i| toy.node(0, 1 + 2 * i, vec![0])).collect();
    let mut table = Congruence::new();
    let Ok(plan) = table.look_up(&mut toy, nodes.clone(), false);
    assert_finds_others(&table);
    let told: BTreeSet<u32> = plan.incomparable.iter().map(|&(node, _)| node).collect();
    let dying: BTreeSet<u32> = plan.dying.iter().map(|&(node, _)| node).collect();
    assert_eq!(told.len() + dying.len(), nodes.len() - 1);
    let mut known: Vec<u32> = table.nodes().collect();
    known.sort_unstable();
    assert!(nodes.iter().filter(|node| !dying.contains(node)).eq(&known));
}

#[test]
fn a_node_that_changes_away_and_back_is_merged() {
    let mut toy = toy(&[]);
    let nodes: Vec<u32> = (0..2).map(|_| toy.node(0, 0, vec![0])).collect();
    toy.refused.insert((nodes[1], nodes[0]));
    let mut table = Congruence::new();
    toy.merge(&mut table, nodes.clone(), false);
    toy.refused.clear();
    for input in [1, 0] {
        toy.nodes[nodes[0] as usize].inputs = vec![input];
        toy.merge(&mut table, vec![nodes[0]], false);
    }
    assert_eq!(toy.present().count(), 1);
}

#[test]
fn a_cascade_is_one_plan() {
    let mut toy = toy(&[]);
    let (a, b) = (toy.node(0, 0, vec![0]), toy.node(0, 0, vec![0]));
    let outputs = [a, b].map(|node| toy.nodes[node as usize].output);
    let [c, d] = outputs.map(|variable| toy.node(2, 0, vec![variable]));
    let Ok(plan) = Congruence::new().look_up(&mut toy, vec![a, d, c, b], false);
    assert_eq!(plan.dying, [(b, a), (d, c)]);
}

/// A variable whose replacement is planned may get another replacement later in the same plan.
#[test]
fn who_reads_what_is_replaced_twice_is_looked_up_again() {
    let mut toy = toy(&[]);
    let output = |toy: &Toy, node: u32| toy.nodes[node as usize].output;
    // `first`, `poor` and `rich` are equal; `rich` is the most specific, then `first`.
    let first = toy.node(3, 2, vec![]);
    let poor = toy.node(3, 0, vec![]);
    let reads_poor = toy.node(1, 0, vec![output(&toy, poor)]);
    let rich = toy.node(3, 4, vec![]);
    let reads_rich = toy.node(1, 0, vec![output(&toy, rich)]);
    for node in [reads_poor, reads_rich] {
        let result = output(&toy, node);
        toy.results.push(result);
    }
    let pending = vec![first, poor, reads_poor, rich, reads_rich];
    let Ok(plan) = Congruence::new().look_up(&mut toy, pending, false);
    assert_eq!(plan.dying, [(poor, first), (first, rich), (reads_poor, reads_rich)]);
}

#[test]
fn one_merge_at_a_time() {
    let mut toy = toy(&[]);
    let nodes: Vec<u32> = (0..3).map(|_| toy.node(0, 0, vec![0])).collect();
    let Ok(plan) = Congruence::new().look_up(&mut toy, nodes.clone(), true);
    assert_eq!(plan.dying, [(nodes[1], nodes[0])]);
    assert_eq!(plan.queue[plan.n_done..], [nodes[2]]);
}

#[test]
fn a_refused_merge_is_not_planned_again() {
    let mut toy = toy(&[]);
    let nodes: Vec<u32> = (0..3).map(|_| toy.node(0, 0, vec![0])).collect();
    toy.refused.insert((nodes[1], nodes[0]));
    let mut table = Congruence::new();
    let Ok(plan) = table.look_up(&mut toy, nodes.clone(), false);
    assert_eq!(plan.dying, [(nodes[2], nodes[0])]);
    assert_eq!(table.nodes().collect::<Vec<_>>(), nodes[..2]);
}
