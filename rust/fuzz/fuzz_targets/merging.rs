#![no_main]
#![allow(dead_code)]

#[path = "../../core/tests/bytes/mod.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::merging(data));
