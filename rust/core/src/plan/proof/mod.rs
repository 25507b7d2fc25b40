//! Bounds for the costs of all plans, and the search for the best plan.
//!
//! Code that proves something about plans belongs here. The modules stand in this order, each importing
//! from those after it only:
//!
//! - `prover`: comparing a plan with bounds, component by component, and improving it by a search;
//! - `exact`: the best plan of a component, by search;
//! - `bounds`: bounds for the plans of a component;
//! - `component`: a component as a small problem of its own;
//! - `relations`: the nodes of a component that may move, and the relations between them;
//! - `least_closed`: the smallest choice of sets that a plan may begin with;
//! - `floor`: a bound for the plans of a small problem, found before there is a plan;
//! - `masks`: sets of nodes as bits.

pub(super) mod bounds;
pub(super) mod component;
mod exact;
pub(super) mod floor;
pub(super) mod least_closed;
pub(super) mod masks;
mod prover;
pub(super) mod relations;

pub use prover::{EFFORT, GLANCE, Proof, lower_bound, prove};
