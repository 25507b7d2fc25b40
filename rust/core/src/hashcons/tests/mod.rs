//! Tests of the table, most of them of its inner one, which counts handles by hand.

#![allow(clippy::unwrap_used)]

mod damage;
mod digests;
mod handles;
mod lifetime;
mod meanings;
mod rows;
