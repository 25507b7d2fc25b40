//! The kernels that a node may go to, and the nodes that have to come along, by the order of the kernels.

use super::mover::{Mover, TRIED};
use crate::error::Result;
use crate::graph::NodeId;
use crate::plan::problem::NONE;

/// Limit on the nodes that go together.
pub(super) const TOGETHER: usize = 16;

impl<'a> Mover<'a> {
    /// Collects in `targets` the other kernels that the node is connected with and that are not
    /// beyond any other kernel that it reads from or that reads it.
    pub(super) fn find_targets(&mut self, node: NodeId) -> Result<()> {
        self.targets.clear();
        let (problem, from) = (self.problem, self.block[node as usize]);
        let (graph, here) = (problem.graph(), self.place_of(node));
        let (reads, mut n_asked) = (problem.reads(node), 0);
        let n_near = graph.predecessors(node).len() + graph.successors(node).len();
        self.budget.work(1 + n_near)?;
        let places = |nodes: &'a [NodeId]| nodes.iter().map(|&other| self.place_of(other));
        let earlier = places(graph.predecessors(node)).filter(|&place| place != here);
        let later = places(graph.successors(node)).filter(|&place| place != here);
        let (first, last) = (earlier.max().unwrap_or(0), later.min().unwrap_or(NONE));
        let group = problem.group(node);
        let owners = reads.iter().map(|&variable| problem.owner(variable));
        let siblings = reads
            .iter()
            .filter(|&&variable| problem.link(variable) == group)
            .flat_map(|&variable| problem.clients(variable).iter().take(TRIED));
        let clients = problem.clients(problem.output(node)).iter().take(TRIED);
        for other in owners.filter(|&owner| owner != NONE).chain(clients.chain(siblings).copied()) {
            let to = self.block[other as usize];
            n_asked += 1;
            if to != from
                && (first..=last).contains(&self.place[to as usize])
                && problem.group(other) == group
                && !self.targets.contains(&to)
            {
                self.targets.push(to);
                if self.targets.len() == TRIED {
                    break;
                }
            }
        }
        self.budget.work(n_asked.max(reads.len()))
    }

    /// Collects in `set` the node and the nodes that must come along to the kernel `to`. Returns
    /// whether these may go, as far as the order decides.
    pub(super) fn collect(&mut self, node: NodeId, to: NodeId) -> Result<bool> {
        let graph = self.problem.graph();
        let (here, there) = (self.place_of(node), self.place[to as usize]);
        self.set.clear();
        self.set.push(node);
        let mut n_done = 0;
        while let Some(&next) = self.set.get(n_done) {
            n_done += 1;
            let others =
                if there > here { graph.successors(next) } else { graph.predecessors(next) };
            for &other in others {
                self.budget.work(1)?;
                let place = self.place_of(other);
                if place == here && !self.set.contains(&other) {
                    self.set.push(other);
                }
                let is_in_the_way =
                    place != here && if there > here { place < there } else { place > there };
                if is_in_the_way || self.set.len() > TOGETHER {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
