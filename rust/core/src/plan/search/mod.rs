//! The search for a good plan in near-linear time.
//!
//! Code that makes or improves a plan without a proof belongs here. Each module imports only from
//! those after it in this order; a bound comes from [`super::proof`]:
//!
//! - `portfolio`: the strategies, and the choice of the cheapest of their plans;
//! - `sinks`, `typed`: greedy orders, which give starting plans;
//! - [`closure`]: the sets of ancestors that growth from the sinks compares;
//! - `split`: cutting clusters that have too many operands;
//! - `improve`: further merges of clusters;
//! - `moves`: moves of nodes from one kernel to another.

pub mod closure;
pub(super) mod improve;
pub(super) mod moves;
pub(super) mod portfolio;
pub(super) mod sinks;
pub(super) mod split;
pub(super) mod typed;
