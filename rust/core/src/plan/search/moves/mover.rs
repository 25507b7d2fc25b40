//! The kernels while nodes move between them: the kernel of each node, the nodes to try, and the
//! move itself.

use rustc_hash::FxHashMap;

use crate::budget::Budget;
use crate::error::Result;
use crate::graph::NodeId;
use crate::plan::problem::cost::Interfaces;
use crate::plan::problem::{FusionProblem, NONE, Partition, VarId};

/// Limit on the kernels that a node is tried in, and on the readers of each operand that are
/// examined.
pub(super) const TRIED: usize = 8;

/// The kernels of a plan, and the move that is tried.
pub(super) struct Mover<'a> {
    pub(super) problem: &'a FusionProblem,
    partition: &'a Partition,
    /// The label of the kernel of each node: initially its smallest member.
    pub(super) block: Vec<NodeId>,
    /// Members of the kernels that differ from the partition, by label.
    pub(super) changed: FxHashMap<NodeId, Vec<NodeId>>,
    /// The place of each label in a topological order.
    pub(super) place: Vec<u32>,
    /// Nodes that have somewhere to go without loss, as far as is known.
    pub(super) can_go: Vec<bool>,
    /// Nodes to try.
    pub(super) due: Vec<bool>,
    /// Whether nodes go to an earlier kernel although that saves nothing.
    pub(super) ties_go_earlier: bool,
    /// Whether anything was saved.
    pub(super) is_cheaper: bool,
    /// For variables with many readers, the number of readers in each kernel, by label.
    pub(super) readers: FxHashMap<VarId, FxHashMap<NodeId, usize>>,
    /// Created when the operand limit has to be checked.
    pub(super) interfaces: Option<Interfaces<'a>>,
    /// The number of the last search that reached each node.
    pub(super) reached: Vec<u32>,
    pub(super) n_searches: u32,
    /// The move that is tried: kernels, nodes that would go, and the variables that these read and
    /// make.
    pub(super) targets: Vec<NodeId>,
    pub(super) set: Vec<NodeId>,
    /// Each variable as often as it is read, with 1, or made, with 0.
    pub(super) variables: Vec<(VarId, u32)>,
    pub(super) budget: &'a Budget,
}

impl<'a> Mover<'a> {
    pub(super) fn new(
        problem: &'a FusionProblem,
        partition: &'a Partition,
        order: &[NodeId],
        edge: Vec<bool>,
        budget: &'a Budget,
    ) -> Self {
        let mut place = vec![NONE; problem.n_nodes()];
        for (&block, position) in order.iter().zip(0u32..) {
            place[block as usize] = position;
        }
        Self {
            problem,
            partition,
            block: partition.blocks().to_vec(),
            changed: FxHashMap::default(),
            place,
            can_go: edge,
            due: vec![false; problem.n_nodes()],
            ties_go_earlier: false,
            is_cheaper: false,
            readers: FxHashMap::default(),
            interfaces: None,
            reached: Vec::new(),
            n_searches: 0,
            targets: Vec::new(),
            set: Vec::new(),
            variables: Vec::new(),
            budget,
        }
    }

    pub(super) fn members(&self, label: NodeId) -> &[NodeId] {
        self.changed.get(&label).map_or_else(|| self.partition.members(label), Vec::as_slice)
    }

    /// The place of the kernel of a node.
    pub(super) fn place_of(&self, node: NodeId) -> u32 {
        self.place[self.block[node as usize] as usize]
    }

    pub(super) fn carry_out(&mut self, from: NodeId, to: NodeId) -> Result<()> {
        let set = std::mem::take(&mut self.set);
        self.budget.work(self.members(from).len() + self.members(to).len())?;
        let stays = |node: &NodeId| !set.contains(node);
        let rest = self.members(from).iter().copied().filter(stays).collect();
        let grown = self.members(to).iter().chain(&set).copied().collect();
        self.changed.insert(from, rest);
        self.changed.insert(to, grown);
        for &node in &set {
            self.block[node as usize] = to;
            for variable in self.problem.reads(node) {
                if let Some(counts) = self.readers.get_mut(variable) {
                    *counts.entry(to).or_insert(0) += 1;
                    counts.entry(from).and_modify(|count| *count -= 1);
                }
            }
            self.wake_neighbors(node)?;
        }
        self.set = set;
        Ok(())
    }

    /// Marks the nodes that are connected with a moved node: they are tried again.
    fn wake_neighbors(&mut self, node: NodeId) -> Result<()> {
        let problem = self.problem;
        let mut n_woken = 0;
        let near = problem.reads(node).iter().flat_map(|&variable| {
            let owner = Some(problem.owner(variable)).filter(|&owner| owner != NONE);
            owner.into_iter().chain(problem.clients(variable).iter().copied().take(TRIED))
        });
        let clients = problem.clients(problem.output(node)).iter().copied().take(TRIED);
        for other in near.chain(clients) {
            n_woken += 1;
            if problem.group(other) == problem.group(node) {
                self.can_go[other as usize] = true;
                self.due[other as usize] = true;
            }
        }
        self.budget.work(n_woken)
    }
}
