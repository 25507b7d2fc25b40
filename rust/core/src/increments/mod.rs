//! Moving sums below the increments among their terms, step by step.
//!
//! An increment adds something to a part of its first input. A sum of increments that nothing else
//! reads is the sum of their first inputs, incremented by one after the other. In this way PyTensor
//! chains the increments of one array, one sum at a time. Where the sums are themselves terms of
//! sums, an increment is made anew each time that a sum goes below it, `n^2 / 2` times for `n`
//! increments. This module takes the same steps in the same order on numbers, and reports the final
//! state: the nodes, the readers of each variable in the order in which they came to read it, and
//! the variables whose notes each made variable takes over.
//!
//! # Rejected
//! Computing the final state without the steps: the order in which readers come to read a variable,
//! and the notes, depend on all steps, and a step takes a tenth of a microsecond.
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

mod given;
mod steps;
mod sums;
#[cfg(test)]
mod tests;

pub use sums::{NONE, Strung, Sums};

use std::collections::VecDeque;

use crate::budget::Budget;
use crate::error::Result;
use steps::Steps;

/// Moves sums below increments until none is on top of one.
///
/// # Arguments
/// * `sums`: the nodes and variables.
///
/// A step takes the sum that has waited longest. Its terms that are increments, and that nothing
/// else reads, are `c[1]`, `c[2]`, ... A new sum has its other terms, followed by the variables
/// that these increment; `c[1]`, `c[2]`, ... are made anew, each on top of the last, the first on
/// top of the new sum. Readers of the old sum read the last of them. The new sum waits, too.
///
/// # Errors
/// [`crate::Error::OutOfRange`] and [`crate::Error::Inconsistent`] if the arrays contradict each other;
/// [`crate::Error::Cycle`] with nodes that read each other; [`crate::Error::Interrupted`].
///
/// # Complexity
/// Time in proportion to the inputs of all nodes that are made; memory in proportion to the nodes
/// that exist at any one time, and 8 bytes for each node that is made.
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
