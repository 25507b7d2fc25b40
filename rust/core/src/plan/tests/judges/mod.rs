//! Judges of plans: `definition` uses the methods of the problem, the others only its arrays.

pub(in crate::plan) mod definition;
pub(in crate::plan) mod exhaustive;
pub(in crate::plan) mod linear;
