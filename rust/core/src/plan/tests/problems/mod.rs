//! The problems that the tests plan.

pub(in crate::plan) mod arrays;
pub(in crate::plan) mod families;
pub(in crate::plan) mod generated;
pub(in crate::plan) mod random;
