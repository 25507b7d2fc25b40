//! Legality of a move: both kernels keep the operand limit and are connected afterwards.
//!
//! The order of the kernels, which `targets` checks, excludes cycles.

use rustc_hash::FxHashSet;

use super::mover::Mover;
use crate::error::Result;
use crate::graph::NodeId;
use crate::plan::problem::cost::Interfaces;
use crate::plan::problem::{NONE, VarId};

impl Mover<'_> {
    /// Whether both kernels are within the operand limit and connected after `set` has moved.
    pub(super) fn may_go(&mut self, from: NodeId, to: NodeId) -> Result<bool> {
        Ok(self.keeps_limit(from, to)?
            && self.leaves_connected(from)?
            && self.is_connected_with(to)?)
    }

    pub(super) fn keeps_limit(&mut self, from: NodeId, to: NodeId) -> Result<bool> {
        let (problem, limit) = (self.problem, self.problem.max_operands());
        let (source, target) = (self.members(from), self.members(to));
        self.budget.work(source.len() + target.len())?;
        // A kernel has at most as many operands as its members have separately.
        let most = |nodes: &[NodeId]| -> usize {
            nodes.iter().map(|&node| problem.reads(node).len() + 1).sum()
        };
        let mut uncertain: Vec<Vec<NodeId>> = Vec::new();
        if most(source) > limit {
            let stays = |node: &NodeId| !self.set.contains(node);
            uncertain.push(source.iter().copied().filter(stays).collect());
        }
        if most(target) + most(&self.set) > limit {
            uncertain.push(target.iter().chain(&self.set).copied().collect());
        }
        for members in uncertain.iter().filter(|members| members.len() > 1) {
            let budget = self.budget;
            let interfaces =
                self.interfaces.get_or_insert_with(|| Interfaces::new(problem, budget));
            budget.spend(most(members) as u64);
            if interfaces.of(members)?.operands() > limit {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the nodes that `set` leaves behind are connected. The kernel was connected, so this
    /// holds if the neighbors of `set` among them are connected.
    pub(super) fn leaves_connected(&mut self, from: NodeId) -> Result<bool> {
        let problem = self.problem;
        let stays = |node: &NodeId| self.block[*node as usize] == from && !self.set.contains(node);
        let (mut touched, mut n_read) = (Vec::new(), 0);
        for &node in &self.set {
            n_read += problem.reads(node).len();
            for &variable in problem.reads(node) {
                let owner = problem.owner(variable);
                touched.extend(Some(owner).filter(|owner| *owner != NONE && stays(owner)));
                if problem.link(variable) == problem.group(node) {
                    // Readers of the same operand are connected: one is enough.
                    let readers = problem.clients(variable);
                    let first = readers.iter().position(stays);
                    touched.extend(first.map(|position| readers[position]));
                    n_read += first.unwrap_or(readers.len());
                }
            }
            let readers = problem.clients(problem.output(node));
            touched.extend(readers.iter().copied().filter(stays));
            n_read += readers.len();
        }
        self.budget.work(n_read)?;
        touched.sort_unstable();
        touched.dedup();
        let Some(&first) = touched.first() else { return Ok(true) };
        self.reaches(first, &touched, |mover, node| {
            mover.block[node as usize] == from && !mover.set.contains(&node)
        })
    }

    /// Whether all of `set` is connected with the kernel `to`, given that its first node is.
    pub(super) fn is_connected_with(&mut self, to: NodeId) -> Result<bool> {
        // Without orderings, data connects the nodes that come along.
        if !self.problem.has_orderings() {
            return Ok(true);
        }
        let set = self.set.clone();
        self.reaches(set[0], &set, |mover, node| {
            mover.block[node as usize] == to || mover.set.contains(&node)
        })
    }

    /// Whether connections lead from `start` to all of `goals` through nodes that are `within`.
    fn reaches(
        &mut self,
        start: NodeId,
        goals: &[NodeId],
        within: impl Fn(&Self, NodeId) -> bool,
    ) -> Result<bool> {
        let problem = self.problem;
        let mut reached = std::mem::take(&mut self.reached);
        reached.resize(problem.n_nodes(), 0);
        self.n_searches += 1;
        reached[start as usize] = self.n_searches;
        let mut missing: FxHashSet<NodeId> = goals.iter().copied().collect();
        let mut shared: FxHashSet<VarId> = FxHashSet::default();
        let mut stack = vec![start];
        while !missing.is_empty()
            && let Some(node) = stack.pop()
        {
            missing.remove(&node);
            let mut n_read = problem.reads(node).len();
            let mut reach = |other: NodeId| {
                n_read += 1;
                if reached[other as usize] != self.n_searches && within(self, other) {
                    reached[other as usize] = self.n_searches;
                    stack.push(other);
                }
            };
            for &variable in problem.reads(node) {
                let owner = problem.owner(variable);
                if owner != NONE {
                    reach(owner);
                }
                if problem.link(variable) == problem.group(node) && shared.insert(variable) {
                    problem.clients(variable).iter().for_each(|&other| reach(other));
                }
            }
            problem.clients(problem.output(node)).iter().for_each(|&other| reach(other));
            self.budget.work(n_read)?;
        }
        self.reached = reached;
        Ok(missing.is_empty())
    }
}
