//! The fuzzing targets: each function interprets any bytes as input for a part of the crate, and
//! panics if the result is wrong. It judges the result from the input alone.

use pytensor_fuse_core::Budget;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::convert::Infallible;

use pytensor_fuse_core::congruence::{self, Congruence, Direction, Presence};
use pytensor_fuse_core::hashcons::{Content, Digest, Handle, HashConsTable, TermId};
use pytensor_fuse_core::plan::{
    Cost, FusionProblem, Partition, ProblemArrays, lower_bound, plan, plan_optimally,
};
use pytensor_fuse_core::{Error, Rows};

/// Bytes that are read one after the other; zeros after their end.
struct Bytes<'a>(std::slice::Iter<'a, u8>);

impl<'a> Bytes<'a> {
    fn new(data: &'a [u8]) -> Self {
        Self(data.iter())
    }

    fn next(&mut self) -> usize {
        self.0.next().copied().unwrap_or_default().into()
    }

    fn below(&mut self, limit: usize) -> usize {
        self.next() % limit.max(1)
    }

    fn is_over(&self) -> bool {
        self.0.len() == 0
    }
}

/// Arrays of a valid problem: nodes of few results, groups, orderings, dead ends.
fn arrays(bytes: &mut Bytes<'_>) -> ProblemArrays {
    let n_roots = 1 + bytes.below(4);
    let n_groups = 1 + bytes.below(3);
    let max_operands = match bytes.below(12) {
        limit @ 2.. if limit < 8 => limit as u32,
        _ => 1024,
    };
    let all_are_read = bytes.below(4) > 0;
    let (mut inputs, mut outputs, mut orderings) = (Rows::empty(), Rows::empty(), Vec::new());
    let mut groups: Vec<i32> = Vec::new();
    let mut links: Vec<i32> = (0..n_roots).map(|_| bytes.below(n_groups + 1) as i32 - 1).collect();
    while !bytes.is_over() && groups.len() < 48 {
        let (kind, known) = (bytes.next(), links.len());
        let reads: Vec<u32> = (0..1 + kind % 3)
            .map(|_| {
                let pick = bytes.next();
                // A recent variable, or any variable.
                (if pick < 160 { known - 1 - pick % known.min(6) } else { pick % known }) as u32
            })
            .collect();
        let group = if kind / 3 % 5 == 0 { -1 } else { ((kind / 15) % n_groups) as i32 };
        let n_results = if group < 0 && kind / 128 == 1 { 2 } else { 1 };
        let made = (known..known + n_results).map(|variable| variable as u32);
        assert_eq!(outputs.push(made), Ok(()));
        assert_eq!(inputs.push(reads), Ok(()));
        if kind % 11 == 0 && !groups.is_empty() {
            orderings.push((bytes.below(groups.len()) as u32, groups.len() as u32));
        }
        groups.push(group);
        links.extend(vec![group; n_results]);
    }
    // Groups are dense: below the number of nodes.
    let n_nodes = groups.len() as i32;
    groups.iter_mut().for_each(|group| *group = (*group).min(n_nodes - 1));
    let read: BTreeSet<u32> = inputs.items().iter().copied().collect();
    let n_variables = links.len();
    let is_result = |variable| variable >= n_roots && !read.contains(&(variable as u32));
    ProblemArrays {
        n_variables,
        inputs,
        outputs,
        groups,
        links,
        constants: (0..n_variables)
            .map(|variable| variable < n_roots && variable % 3 == 2)
            .collect(),
        results: (0..n_variables).map(|v| all_are_read && is_result(v)).collect(),
        orderings,
        max_operands,
    }
}

/// The cost of a partition from the definition; panics unless it is a legal plan.
fn judged(arrays: &ProblemArrays, partition: &Partition) -> Cost {
    let nodes = 0..arrays.groups.len() as u32;
    let reads = |node: u32| arrays.inputs.row(node);
    let makes = |node: u32| arrays.outputs.row(node);
    let mut cost = Cost::default();
    let mut blocks: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for node in nodes.clone() {
        blocks.entry(partition.block(node)).or_default().insert(node);
    }
    for members in blocks.values() {
        let groups: BTreeSet<i32> =
            members.iter().map(|&node| arrays.groups[node as usize]).collect();
        assert!(groups.len() == 1, "{members:?} are of several groups");
        let Some(&group @ 0..) = groups.first() else {
            assert!(members.len() == 1, "{members:?} cannot be fused");
            continue;
        };
        let made: BTreeSet<u32> = members.iter().flat_map(|&node| makes(node)).copied().collect();
        let read: BTreeSet<u32> = members.iter().flat_map(|&node| reads(node)).copied().collect();
        let read: BTreeSet<u32> = read.difference(&made).copied().collect();
        let is_needed = |v: &&u32| {
            arrays.results[**v as usize]
                || nodes.clone().any(|node| !members.contains(&node) && reads(node).contains(v))
        };
        let n_written = made.iter().filter(is_needed).count();
        let n_constants = read.iter().filter(|&&v| arrays.constants[v as usize]).count();
        cost.kernels += 1;
        cost.arrays += (read.len() - n_constants + n_written) as u64;
        if members.len() > 1 {
            assert!(read.len() + n_written <= arrays.max_operands as usize, "{members:?}");
        }
        let mut reached: BTreeSet<u32> = members.iter().take(1).copied().collect();
        let touches = |a: u32, b: u32| {
            reads(b).iter().any(|v| makes(a).contains(v))
                || reads(a).iter().any(|v| makes(b).contains(v))
                || reads(a)
                    .iter()
                    .any(|v| reads(b).contains(v) && arrays.links[*v as usize] == group)
        };
        while let Some(&next) = members
            .iter()
            .find(|&&node| !reached.contains(&node) && reached.iter().any(|&a| touches(a, node)))
        {
            reached.insert(next);
        }
        assert_eq!(reached.len(), members.len(), "{members:?} are not connected");
    }
    let mut edges: BTreeSet<(u32, u32)> = arrays.orderings.iter().copied().collect();
    for (a, b) in nodes.clone().flat_map(|a| nodes.clone().map(move |b| (a, b))) {
        if reads(b).iter().any(|v| makes(a).contains(v)) {
            edges.insert((a, b));
        }
    }
    let edges: BTreeSet<(u32, u32)> = edges
        .into_iter()
        .map(|(a, b)| (partition.block(a), partition.block(b)))
        .filter(|(a, b)| a != b)
        .collect();
    let mut left: BTreeSet<u32> = blocks.keys().copied().collect();
    while !left.is_empty() {
        let waits = |block: u32| edges.iter().any(|&(a, b)| b == block && left.contains(&a));
        let free: Vec<u32> = left.iter().copied().filter(|&block| !waits(block)).collect();
        assert!(!free.is_empty(), "the kernels make a cycle");
        left.retain(|block| !free.contains(block));
    }
    cost
}

/// Plans are legal, cost what they say, and are consistent with the bound.
pub(crate) fn planner(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let arrays = arrays(&mut bytes);
    let problem = FusionProblem::new(arrays.clone(), &Budget::unlimited())
        .expect("arrays that are as they should be");
    let fast = plan(&problem, None, &Budget::unlimited()).expect("a plan");
    assert_eq!(judged(&arrays, &fast.partition), fast.after, "{arrays:?}");
    let (best, proof) =
        plan_optimally(&problem, None, &Budget::unlimited().with_effort(2000)).expect("a plan");
    let proven = proof.bound;
    assert_eq!(judged(&arrays, &best.partition), best.after, "{arrays:?}");
    let bound = lower_bound(&problem, &Budget::unlimited()).expect("a bound");
    assert!(bound <= proven && proven <= best.after && best.after <= fast.after, "{arrays:?}");
    assert!(fast.after <= fast.before);
    let strict: Vec<bool> = arrays.groups.iter().map(|_| bytes.below(4) > 0).collect();
    let other = plan(&problem, Some(&strict), &Budget::unlimited()).expect("a plan");
    assert_eq!(judged(&arrays, &other.partition), other.after, "{arrays:?}");
}

/// Any arrays are rejected with an error that says why, or can be planned.
pub(crate) fn construction(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let mut good = arrays(&mut Bytes::new(&data[data.len() / 2..]));
    let number = |bytes: &mut Bytes<'_>| match bytes.next() {
        255 => u32::MAX,
        other => other as u32 % 24,
    };
    for _ in 0..bytes.below(4) {
        let at = bytes.next();
        match bytes.below(10) {
            0 => good.groups.push(number(&mut bytes) as i32),
            1 => good.links.truncate(at),
            2 => good.n_variables = at,
            3 if !good.groups.is_empty() => {
                let n_nodes = good.groups.len();
                good.groups[at % n_nodes] = number(&mut bytes) as i32;
            }
            4 => good.orderings.push((number(&mut bytes), number(&mut bytes))),
            5 => assert_eq!(good.inputs.push([number(&mut bytes), number(&mut bytes)]), Ok(())),
            6 => assert_eq!(good.outputs.push([number(&mut bytes)]), Ok(())),
            7 => good.max_operands = number(&mut bytes),
            8 => good.results.resize(at, true),
            _ => {
                let offsets = (0..bytes.below(6)).map(|_| number(&mut bytes)).collect();
                let items = (0..bytes.below(6)).map(|_| number(&mut bytes)).collect();
                if let Ok(rows) = Rows::new("inputs", offsets, items) {
                    assert!(
                        rows.items().len()
                            == (0..rows.len() as u32).map(|i| rows.row(i).len()).sum()
                    );
                    good.inputs = rows;
                }
            }
        }
    }
    match FusionProblem::new(good.clone(), &Budget::unlimited()) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(problem) => {
            let found = plan(&problem, None, &Budget::unlimited()).expect("a plan");
            assert_eq!(judged(&good, &found.partition), found.after, "{good:?}");
        }
    }
}

/// Terms are equal exactly if their meanings are, ids of dropped terms are rejected, and all terms
/// are dropped in the end.
pub(crate) fn table(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let table = HashConsTable::new();
    let mut held: Vec<(Handle, String)> = Vec::new();
    let mut dropped: BTreeSet<TermId> = BTreeSet::new();
    let mut n_opaque = 0;
    while !bytes.is_over() {
        let call = bytes.next();
        let picks: Vec<usize> = (0..call / 8 % 4)
            .filter(|_| !held.is_empty())
            .map(|_| bytes.next() % held.len())
            .collect();
        let ids: Vec<TermId> = picks.iter().map(|&pick| held[pick].0.id()).collect();
        let texts: Vec<&str> = picks.iter().map(|&pick| held[pick].1.as_str()).collect();
        let first = texts.first().map(|&text| text.to_owned()).unwrap_or_default();
        let texts = texts.join(",");
        let made = match call % 8 {
            0 | 1 => {
                let content = bytes.below(3);
                let term = table.compound(Content::of(&[content as u8]), &ids);
                (term.expect("a term"), format!("compound({content}|{texts})"))
            }
            2 => {
                n_opaque += 1;
                (table.opaque().expect("a term"), format!("opaque{n_opaque}"))
            }
            3 | 4 if ids.len() > 1 => {
                let n_types = 1 + bytes.below(ids.len() - 1);
                let term = table.apply(ids[0], &ids[1..=n_types], &ids[1 + n_types..]);
                (term.expect("a term"), format!("apply({n_types}|{texts})"))
            }
            5 if !ids.is_empty() => (table.handle(ids[0]).expect("a term"), first),
            6 if !ids.is_empty() => {
                let digest = table.digest(ids[0]).expect("a term");
                assert_eq!(digest.is_some(), !first.contains("opaque"), "{first}");
                continue;
            }
            _ if !held.is_empty() => {
                let (handle, _) = held.swap_remove(bytes.next() % held.len());
                dropped.insert(handle.id());
                continue;
            }
            _ => {
                let unknown = TermId::from_bits(bytes.next() as u64 + 1000);
                assert!(matches!(table.digest(unknown), Err(Error::NoTerm { .. })));
                continue;
            }
        };
        held.push(made);
        let mut by_text: HashMap<&str, TermId> = HashMap::new();
        let mut by_id: HashMap<TermId, &str> = HashMap::new();
        let mut by_digest: HashMap<Digest, TermId> = HashMap::new();
        for (handle, text) in &held {
            let id = handle.id();
            assert_eq!(*by_text.entry(text).or_insert(id), id, "two terms for {text}");
            assert_eq!(by_id.entry(id).or_insert(text), text, "one term for two");
            if call.is_multiple_of(16)
                && let Some(digest) = handle.digest()
            {
                assert_eq!(*by_digest.entry(digest).or_insert(id), id, "one digest for two");
            }
        }
    }
    drop(held);
    assert_eq!(table.stats().live, 0);
    assert_eq!(table.check(), Ok(()));
    for id in dropped {
        assert!(matches!(table.handle(id), Err(Error::NoTerm { .. })));
    }
}

/// A graph of nodes of one output each: node `i` computes variable `4 + i`.
struct Toy {
    ops: Vec<u32>,
    inputs: Vec<Vec<u32>>,
    is_present: Vec<bool>,
}

impl congruence::Graph for Toy {
    type Error = Infallible;

    fn presence(&mut self, node: u32) -> Result<Presence, Infallible> {
        let is_present = self.is_present[node as usize];
        Ok(if is_present { Presence::Present } else { Presence::Gone })
    }

    fn inputs(&mut self, node: u32) -> Result<Vec<u32>, Infallible> {
        Ok(self.inputs[node as usize].clone())
    }

    fn outputs(&mut self, node: u32) -> Result<Vec<u32>, Infallible> {
        Ok(vec![4 + node])
    }

    fn clients(&mut self, variable: u32) -> Result<Vec<u32>, Infallible> {
        let reads = |node: &u32| self.inputs[*node as usize].contains(&variable);
        let nodes = 0..self.ops.len() as u32;
        Ok(nodes.filter(|&node| self.is_present[node as usize]).filter(reads).collect())
    }

    fn constant(&mut self, _: u32) -> Result<Option<u32>, Infallible> {
        Ok(None)
    }

    fn label(&mut self, node: u32) -> Result<u32, Infallible> {
        Ok(self.ops[node as usize] / 2)
    }

    fn op(&mut self, node: u32) -> Result<u32, Infallible> {
        Ok(self.ops[node as usize])
    }

    fn same_op(&mut self, node: u32, other: u32) -> Result<bool, Infallible> {
        Ok(self.ops[node as usize] == self.ops[other as usize])
    }

    fn may_merge(&mut self, _: u32, _: u32) -> Result<bool, Infallible> {
        Ok(true)
    }

    fn direction(&mut self, _: u32, _: u32) -> Result<Direction, Infallible> {
        Ok(Direction::Forward)
    }
}

/// Nodes that are added in batches are merged exactly with those that compute the same.
pub(crate) fn merging(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let mut toy = Toy { ops: Vec::new(), inputs: Vec::new(), is_present: Vec::new() };
    let mut table = Congruence::new();
    // The value of each node: equal numbers for equal values, which merging does not change.
    let mut values: Vec<usize> = Vec::new();
    let mut known: HashMap<(u32, Vec<usize>), usize> = HashMap::new();
    while !bytes.is_over() && toy.ops.len() < 200 {
        let first = toy.ops.len();
        for _ in 0..1 + bytes.below(12) {
            let n_variables = 4 + toy.ops.len();
            let reads = (0..bytes.below(3)).map(|_| {
                let pick = bytes.next() % n_variables;
                // Removed nodes have no readers.
                let node = pick.checked_sub(4);
                if node.is_some_and(|node| !toy.is_present[node]) { 0 } else { pick as u32 }
            });
            let reads: Vec<u32> = reads.collect();
            let op = bytes.below(4) as u32;
            let value =
                |&v: &u32| (v as usize).checked_sub(4).map_or(v as usize, |n| 4 + values[n]);
            let key = (op, reads.iter().map(value).collect());
            let next = known.len();
            values.push(*known.entry(key).or_insert(next));
            toy.ops.push(op);
            toy.inputs.push(reads);
            toy.is_present.push(true);
        }
        let mut pending: Vec<u32> = (first as u32..toy.ops.len() as u32).collect();
        if bytes.below(2) > 0 {
            pending.reverse();
        }
        let Ok(plan) = table.look_up(&mut toy, pending, false);
        assert_eq!(plan.n_done, plan.queue.len());
        let replacements: HashMap<u32, u32> = plan.replacements.iter().copied().collect();
        for (&old, &new) in &replacements {
            assert_eq!(values[old as usize - 4], values[new as usize - 4]);
            assert!(!replacements.contains_key(&new));
        }
        for &(old, _) in &plan.dying {
            assert!(std::mem::replace(&mut toy.is_present[old as usize], false));
        }
        for inputs in &mut toy.inputs {
            inputs.iter_mut().for_each(|v| *v = replacements.get(v).copied().unwrap_or(*v));
        }
        let present = || (0..toy.ops.len()).filter(|&node| toy.is_present[node]);
        let distinct: BTreeSet<usize> = present().map(|node| values[node]).collect();
        assert_eq!(distinct.len(), present().count(), "equal nodes are left");
        assert_eq!(distinct.len(), values.iter().collect::<BTreeSet<_>>().len());
    }
}
