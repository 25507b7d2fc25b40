//! Structural digests: 128-bit hashes of terms, the same in every process.

use std::fmt;

use super::Slot;
use super::table::Table;

/// Number of bytes in a [`Digest`].
const LEN: usize = 16;

/// The start of every hash key, so that digests of another layout, or for another purpose, differ.
const DOMAIN: &[u8; 16] = b"pytensor-fuse v1";

/// The first 128 bits of a BLAKE3 hash.
///
/// Two of `n` different terms share a digest with a probability of about n² / 2¹²⁹: some 10⁻²¹ for
/// 10⁹ terms. The hash depends only on the hashed bytes, not on the platform, the process or a
/// seed. It is not meant to withstand deliberate collisions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; LEN]);

impl Digest {
    /// The digest of a term from its kind, its number and its parts.
    ///
    /// The kind, the number and the length of `parts` are BLAKE3's key, so that the parts of one
    /// kind of term cannot be mistaken for those of another, and the parts of a node with one or
    /// two inputs still fit one block.
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

/// The hashed content of a compound term. It is hashed without the table, since it may be long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Content(pub(super) [u8; blake3::OUT_LEN]);

impl Content {
    /// Hashes `bytes`. O(their number), about a gigabyte per second.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// Some of its bits, for hash tables.
    pub(super) fn low(&self) -> u32 {
        let mut low = [0; 4];
        low.copy_from_slice(&self.0[..4]);
        u32::from_le_bytes(low)
    }
}

impl Table {
    /// Computes at most `n_most` digests, and returns whether there are more to compute.
    ///
    /// `pending` are terms that have digests and that handles keep, each above the terms that wait for
    /// it: an explicit stack, since graphs may be deep. O(terms + their children).
    pub(super) fn compute_digests(&mut self, pending: &mut Vec<Slot>, n_most: usize) -> bool {
        let mut parts = Vec::new();
        let mut n_computed = 0;
        while let Some(&slot) = pending.last() {
            let term = self.term(slot);
            if term.digest.is_some() {
                pending.pop();
                continue;
            }
            if n_computed == n_most {
                return true;
            }
            let n_pending = pending.len();
            let unknown = |child: &Slot| self.term(*child).digest.is_none();
            pending.extend(term.children.iter().copied().filter(unknown));
            if pending.len() > n_pending {
                continue;
            }
            let digest = self.digest_from_children(slot, &mut parts);
            self.terms[slot as usize].digest = Some(digest);
            pending.pop();
            n_computed += 1;
        }
        false
    }

    /// The digest of a term whose children's digests are known; `parts` is scratch space.
    pub(super) fn digest_from_children(&self, slot: Slot, parts: &mut Vec<u8>) -> Digest {
        let term = self.term(slot);
        parts.clear();
        let mut number = term.number;
        if let Some(content) = self.contents.get(&slot) {
            parts.extend_from_slice(&content.0);
            number = 0;
        }
        let known = term.children.iter().filter_map(|&child| self.term(child).digest.as_ref());
        known.for_each(|digest| parts.extend_from_slice(digest.as_bytes()));
        Digest::of(term.kind as u8, number, parts)
    }
}
