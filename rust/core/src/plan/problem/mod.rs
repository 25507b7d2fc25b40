//! The fusion problem: its arrays, its possible plans and their costs.
//!
//! Code that answers questions about a problem or its plans belongs here; code that plans does not.
//! Each module imports only from those after it in this order:
//!
//! - [`parts`]: sets of nodes that can be planned independently;
//! - `cost`: the kernels of a plan, and the arrays that they read and write;
//! - `partition`: nodes in blocks, for instance a plan;
//! - [`patterns`]: fusion compatibility by broadcast pattern;
//! - `arrays`: the problem as integer arrays.

mod arrays;
pub(super) mod cost;
mod partition;
pub mod parts;
pub mod patterns;

pub use arrays::{FusionProblem, NONE, ProblemArrays, VarId};
pub use cost::{Cluster, Cost, Interface, lone_cost};
pub use partition::Partition;
