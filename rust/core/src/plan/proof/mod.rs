//! Lower bounds on the costs of all plans, and the search for the best plan.
//!
//! Code that proves something about plans belongs here. Each module imports only from those after
//! it in this order:
//!
//! - `prover`: comparing a plan with bounds, component by component, and improving it by a search;
//! - `exact`: exact search for the best plan of a component;
//! - `bounds`: lower bounds for the plans of a component;
//! - `component`: a component as a small problem of its own;
//! - `relations`: the nodes of a component that may move, and the relations between them;
//! - `least_closed`: the smallest choice of sets that a plan may begin with;
//! - `floor`: a lower bound for the plans of a small problem, found before there is a plan;
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
