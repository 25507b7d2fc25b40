//! Graph algorithms of pytensor-fuse, which use only dense integer ids.

#![forbid(unsafe_code)]

pub mod ancestors;
pub mod budget;
pub mod buffers;
pub mod congruence;
pub mod convex;
pub mod error;
pub mod graph;
pub mod hashcons;
mod ids;
pub mod increments;
pub mod loops;
mod order;
pub mod plan;
pub mod quotient;
pub mod regions;
pub mod rows;
pub mod scc;
#[cfg(test)]
mod testing;
pub mod toposort;
mod union_find;

pub use budget::Budget;
pub use error::{Error, Result};
pub use graph::{Graph, NodeId};
pub use rows::Rows;
