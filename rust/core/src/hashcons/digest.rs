//! Structural digests: what a term is, in 128 bits that every process computes alike.

use std::fmt;

/// Number of bytes in a [`Digest`].
const LEN: usize = 16;

/// Leads every hashed key, so that digests of another layout, or for another purpose, are others.
const DOMAIN: &[u8; 16] = b"pytensor-fuse v1";

/// The first 128 bits of a BLAKE3 hash.
///
/// Two of `n` different terms share a digest with a probability of about n² / 2¹²⁹: for 10⁹ terms
/// some 10⁻²¹. The hash does not depend on the platform, the process or a seed, only on what is
/// hashed; it is not meant to withstand someone who looks for collisions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; LEN]);

impl Digest {
    /// The digest of a term from its kind, its number and what it is made of.
    ///
    /// The kind, the number and the length of `parts` are BLAKE3's key, so that no parts of one
    /// kind of term can be taken for those of another, and the parts of a node with one input or
    /// two still fit one block.
    pub(super) fn of(kind: u8, number: u32, parts: &[u8]) -> Self {
        let mut key = [0; blake3::KEY_LEN];
        key[..16].copy_from_slice(DOMAIN);
        key[16] = kind;
        key[17..21].copy_from_slice(&number.to_le_bytes());
        key[21..29].copy_from_slice(&(parts.len() as u64).to_le_bytes());
        let hash = blake3::keyed_hash(&key, parts);
        let mut bytes = [0; LEN];
        bytes.copy_from_slice(&hash.as_bytes()[..LEN]);
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; LEN] {
        &self.0
    }

    /// Some 64 of its bits, for hash tables.
    pub(super) fn low(self) -> u64 {
        let mut low = [0; 8];
        low.copy_from_slice(&self.0[..8]);
        u64::from_le_bytes(low)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// What a compound term says by itself, hashed; made without the table, since it may be long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content(pub(super) [u8; blake3::OUT_LEN]);

impl Content {
    /// Hashes `bytes`. O(their number), about a gigabyte per second.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
}
