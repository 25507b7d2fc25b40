//! The fusion problem: its arrays, its possible plans and their costs.
//!
//! Code that answers questions about a problem or a plan of it belongs here, and no code that plans. The
//! modules stand in this order, each importing from those after it only:
//!
//! - [`parts`]: sets of nodes that can be planned by themselves;
//! - `cost`: the kernels of a plan, and the arrays that they read and write;
//! - `partition`: nodes in blocks, a plan for instance;
//! - [`patterns`]: who may share a kernel, by broadcast pattern;
//! - `arrays`: the problem as integer arrays.

mod arrays;
pub(super) mod cost;
mod partition;
pub mod parts;
pub mod patterns;

pub use arrays::{FusionProblem, NONE, ProblemArrays, VarId};
pub use cost::{Cluster, Cost, Interface, lone_cost};
pub use partition::Partition;
