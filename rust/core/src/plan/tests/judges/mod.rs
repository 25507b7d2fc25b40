//! Judges of plans: `definition` asks the problem what it means, and the others have its arrays alone.

pub(in crate::plan) mod definition;
pub(in crate::plan) mod exhaustive;
pub(in crate::plan) mod linear;
