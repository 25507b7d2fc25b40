//! The arrays that a move saves: how often its two kernels read and write each variable, before and after.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::mover::Mover;
use crate::error::Result;
use crate::graph::NodeId;
use crate::plan::problem::{NONE, VarId};

/// For variables with more readers than this, the readers in each kernel are counted once and
/// cached.
const FEW_READERS: usize = 16;

impl Mover<'_> {
    /// The number of readers of a variable in each of two kernels.
    fn n_readers(&mut self, variable: VarId, kernels: [NodeId; 2]) -> Result<[usize; 2]> {
        let Self { problem, block, readers, budget, .. } = self;
        let clients = problem.clients(variable);
        let label = |client: &NodeId| block[*client as usize];
        if clients.len() <= FEW_READERS {
            budget.work(clients.len())?;
            return Ok(
                kernels.map(|own| clients.iter().filter(|&client| label(client) == own).count())
            );
        }
        let counts = match readers.entry(variable) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                budget.work(clients.len())?;
                let mut counts = FxHashMap::default();
                clients.iter().for_each(|client| *counts.entry(label(client)).or_insert(0) += 1);
                place.insert(counts)
            }
        };
        Ok(kernels.map(|own| counts.get(&own).copied().unwrap_or(0)))
    }

    /// The arrays saved when `set` goes to another kernel; None if the move adds arrays.
    pub(super) fn saved(&mut self, from: NodeId, to: NodeId) -> Result<Option<usize>> {
        let problem = self.problem;
        let mut variables = std::mem::take(&mut self.variables);
        variables.clear();
        for &node in &self.set {
            let read = problem.reads(node).iter().filter(|&&v| !problem.is_constant(v));
            variables.extend(read.map(|&variable| (variable, 1)));
            variables.push((problem.output(node), 0));
        }
        self.budget.work(variables.len())?;
        variables.sort_unstable();
        let (mut before, mut after) = (0, 0);
        for entries in variables.chunk_by(|a, b| a.0 == b.0) {
            let variable = entries[0].0;
            let n_readers = problem.clients(variable).len();
            let [here, there] = self.n_readers(variable, [from, to])?;
            let n_moved = entries.iter().map(|&(_, reads)| reads as usize).sum::<usize>();
            // How often the two read and write the variable, given the number of its readers in
            // each.
            let n_arrays = |home: NodeId, here: usize, there: usize| {
                let is_read = [here > 0 && home != from, there > 0 && home != to];
                let n_inside = if home == from { here } else { there };
                let is_written = (home == from || home == to)
                    && (problem.is_result(variable) || n_readers > n_inside);
                is_read.into_iter().chain([is_written]).filter(|&is_one| is_one).count()
            };
            let owner = problem.owner(variable);
            let home = if owner == NONE { NONE } else { self.block[owner as usize] };
            before += n_arrays(home, here, there);
            let home = if self.set.contains(&owner) { to } else { home };
            after += n_arrays(home, here - n_moved, there + n_moved);
        }
        self.variables = variables;
        Ok(before.checked_sub(after))
    }
}
