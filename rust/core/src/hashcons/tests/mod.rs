//! Tests of the table, most of them of the inner table, whose handles are counted explicitly.

#![allow(clippy::unwrap_used)]

mod damage;
mod digests;
mod handles;
mod lifetime;
mod meanings;
mod rows;
