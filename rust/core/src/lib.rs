//! Graph algorithms behind pytensor-fuse, on dense integer ids and nothing else.

#![forbid(unsafe_code)]

pub mod ancestors;
pub mod congruence;
pub mod convex;
pub mod error;
pub mod graph;
pub mod hashcons;
pub mod interrupt;
pub mod layout;
mod order;
pub mod plan;
pub mod quotient;
pub mod rows;
#[cfg(test)]
mod testing;
pub mod toposort;

pub use error::{Error, Result};
pub use graph::{Graph, NodeId};
pub use rows::Rows;
