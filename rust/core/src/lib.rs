//! Graph algorithms behind pytensor-fuse, on dense integer ids and nothing else.

#![forbid(unsafe_code)]

pub mod error;
pub mod graph;
pub mod plan;

pub use error::{Error, Result};
pub use graph::{Graph, NodeId};
