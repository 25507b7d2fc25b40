//! Tests of the planner as a whole, and comparisons of its pieces with their definitions.
//!
//! `problems` has the problems to plan, `judges` the judges of the plans, and `steps` single steps
//! of the planner.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod adversarial;
mod bounds;
mod component;
mod examples;
mod growth;
pub(in crate::plan) mod judges;
mod polish;
mod portfolio;
pub(in crate::plan) mod problems;
mod proof;
mod properties;
mod quality;
mod refusals;
pub(in crate::plan) mod steps;
