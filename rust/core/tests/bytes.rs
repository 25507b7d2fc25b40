//! The targets of fuzzing with bytes from a generator: few that are the same each time, or many.
//!
//! libFuzzer runs the same functions: see `rust/fuzz`. Here is nothing that looks at what the bytes
//! reach; they are bytes of all lengths, some of few values.

#![allow(missing_docs, clippy::expect_used, clippy::panic)]

#[path = "bytes/mod.rs"]
mod targets;

/// A target: any bytes.
type Target = fn(&[u8]);

/// Bytes from a seed: SplitMix64.
fn bytes(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    };
    let length = next() % [8, 40, 150, 300][(next() % 4) as usize];
    // Few values make structures that repeat.
    let n_values = [256, 256, 16, 4][(next() % 4) as usize];
    (0..length).map(|_| (next() % n_values * (256 / n_values)) as u8).collect()
}

fn run(target: Target, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        if std::panic::catch_unwind(|| target(&bytes(seed))).is_err() {
            panic!("seed {seed}: {:?}", bytes(seed));
        }
    }
}

/// Runs a target for as many minutes as `FUZZ_MINUTES` says, one if it does not.
fn run_long(target: Target) {
    let minutes = std::env::var("FUZZ_MINUTES").ok().and_then(|text| text.parse().ok());
    let clock = std::time::Instant::now();
    let mut seed = 1 << 32;
    while clock.elapsed().as_secs() < 60 * minutes.unwrap_or(1) {
        run(target, seed..seed + 256);
        seed += 256;
    }
    println!("{} inputs in {:?}", seed - (1 << 32), clock.elapsed());
}

macro_rules! targets {
    ($($name:ident, $n_seeds:expr;)*) => {
        $(mod $name {
            #[test]
            fn short() {
                super::run(super::targets::$name, 0..$n_seeds);
            }

            #[test]
            #[ignore = "minutes: FUZZ_MINUTES=20 cargo test --release --test bytes -- --ignored"]
            fn long() {
                super::run_long(super::targets::$name);
            }
        })*
    };
}

targets! {
    construction, 1000;
    planner, 300;
    table, 1500;
    merging, 2000;
}
