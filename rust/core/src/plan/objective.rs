//! What is to be small.
//!
//! # Problem
//! A kernel costs what it takes to start it, and what it reads and writes. How much one is worth of the
//! other, and whether an array is as much as another, depends on the machine and on shapes.
//!
//! # Approach
//! A total for each plan, of which less is better, that is a sum over its kernels: each counts a fixed
//! number, and each of its arrays the weight of the variable. Kernels first is such a sum too: a kernel
//! counts more than all arrays together, and each array 1. Whatever weights there are, none is negative,
//! so that what is merged reads, writes and counts no more than before: all that the planner knows of
//! fewest kernels with fewest arrays ([`super::parts`], `exact`) holds for every objective.
//!
//! Weights are integers, and their sums are known to fit: [`super::problem::MOST_TRAFFIC`] limits what a
//! plan reads and writes, and a component has no more than `masks::MOST` kernels of 32 bits.
//!
//! # Rejected
//! Weights as a part of the objective: they belong to variables, as being a constant does.

use super::cost::{Cost, Interfaces, cost};
use super::partition::Partition;
use super::problem::{FusionProblem, VarId};
use crate::budget::Budget;
use crate::error::Result;
use crate::graph::NodeId;

/// What is to be small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Objective {
    /// The number of kernels; among plans with as many, that of arrays. The order of [`Cost`].
    KernelsFirst,
    /// What is read and written, each variable with its [`FusionProblem::weight`], and something for each
    /// kernel: bytes for instance, or arrays where nothing is known of shapes.
    Traffic {
        /// How much traffic takes as long as it takes to start a kernel.
        launch: u32,
    },
}

impl Cost {
    /// The total of a plan of this cost under [`Objective::KernelsFirst`].
    #[must_use]
    pub fn total(self) -> u128 {
        Objective::KernelsFirst.total(self.kernels, self.arrays)
    }

    /// The cost whose total is this under [`Objective::KernelsFirst`].
    #[must_use]
    pub fn of_total(total: u128) -> Self {
        Self { kernels: (total >> 64) as u64, arrays: total as u64 }
    }
}

impl Objective {
    /// The total of so many kernels with these arrays, each counted as [`Objective::weight`] says: less
    /// for the better plan. For [`Objective::KernelsFirst`] it has the kernels above its lower 64 bits.
    pub(super) fn total(self, kernels: u64, arrays: u64) -> u128 {
        let kernel = match self {
            Self::KernelsFirst => 1 << 64,
            Self::Traffic { launch } => u128::from(launch),
        };
        kernel * u128::from(kernels) + u128::from(arrays)
    }

    /// The total of a plan. O(n + m).
    ///
    /// # Errors
    /// [`crate::Error::LengthMismatch`] if `partition` is one of other nodes;
    /// [`crate::Error::Interrupted`].
    pub fn of(
        self,
        problem: &FusionProblem,
        partition: &Partition,
        budget: &Budget,
    ) -> Result<u128> {
        partition.check_nodes_of(problem)?;
        Ok(match self {
            Self::KernelsFirst => cost(problem, partition, budget)?.total(),
            Self::Traffic { .. } => {
                let mut interfaces = Interfaces::new(problem, budget);
                let blocks = partition.names().filter(|&name| problem.group(name).is_some());
                let kernel = |block| self.of_kernel(&mut interfaces, partition.members(block));
                blocks.map(kernel).sum::<Result<u128>>()?
            }
        })
    }

    /// The total of one kernel.
    pub(super) fn of_kernel(
        self,
        interfaces: &mut Interfaces<'_>,
        members: &[NodeId],
    ) -> Result<u128> {
        Ok(self.total(1, self.arrays(interfaces, members)?))
    }

    /// What a kernel reads and writes, each array with its weight.
    pub(super) fn arrays(self, interfaces: &mut Interfaces<'_>, members: &[NodeId]) -> Result<u64> {
        match self {
            Self::KernelsFirst => Ok(interfaces.n_arrays(members)? as u64),
            Self::Traffic { .. } => interfaces.traffic(members),
        }
    }

    /// What an array counts.
    pub(super) fn weight(self, problem: &FusionProblem, variable: VarId) -> u64 {
        match self {
            Self::KernelsFirst => 1,
            Self::Traffic { .. } => problem.weight(variable),
        }
    }

    /// What a kernel counts within one component, whose totals fit 64 bits: it has few kernels, and
    /// fewer arrays than there are ids.
    pub(super) fn launch(self) -> u64 {
        match self {
            Self::KernelsFirst => 1 << 32,
            Self::Traffic { launch } => u64::from(launch),
        }
    }

    /// A total by [`Objective::launch`] as one by [`Objective::total`].
    pub(super) fn widened(self, total: u64) -> u128 {
        match self {
            Self::KernelsFirst => self.total(total / self.launch(), total % self.launch()),
            Self::Traffic { .. } => u128::from(total),
        }
    }
}
