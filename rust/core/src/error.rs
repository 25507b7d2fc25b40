//! The error type of the crate.

use thiserror::Error;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason for the failure of a call. Variants name the offending arguments or objects.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// More nodes than a dense `u32` id can name.
    #[error("{what} has {count} entries, more than the {limit} that fit a 32-bit id")]
    TooLarge {
        /// The counted entries.
        what: &'static str,
        /// Their number.
        count: usize,
        /// The largest allowed number.
        limit: usize,
    },
    /// Two arrays that must be equally long differ in length.
    #[error("{left} has {left_len} entries but {right} has {right_len}; they must be equally long")]
    LengthMismatch {
        /// Name of the first array.
        left: &'static str,
        /// Its length.
        left_len: usize,
        /// Name of the second array.
        right: &'static str,
        /// Its length.
        right_len: usize,
    },
    /// An edge that names a node outside `0..n_nodes`.
    #[error("edge {edge} ({source_id} -> {target_id}) names a node outside 0..{n_nodes}")]
    EdgeOutOfRange {
        /// Position of the edge in the arrays.
        edge: usize,
        /// Its source.
        source_id: i64,
        /// Its target.
        target_id: i64,
        /// Number of nodes in the graph.
        n_nodes: usize,
    },
    /// An edge from a node to itself.
    #[error("edge {edge} is a self-loop on node {node}")]
    SelfLoop {
        /// Position of the edge in the arrays.
        edge: usize,
        /// The node.
        node: u32,
    },
    /// An edge from a later to an earlier item, where items are in a topological order.
    #[error(
        "edge {edge} ({source_id} -> {target_id}) goes backward; edges go from earlier to later items"
    )]
    BackwardEdge {
        /// Position of the edge in the arrays.
        edge: usize,
        /// Its source.
        source_id: u32,
        /// Its target.
        target_id: u32,
    },
    /// An id outside the range it indexes.
    #[error("{what} {id} is outside 0..{limit}")]
    OutOfRange {
        /// The kind of the id.
        what: &'static str,
        /// The id.
        id: i64,
        /// One past the largest valid id.
        limit: usize,
    },
    /// The graph is not acyclic.
    #[error("the graph has a cycle through the nodes {}", join(.nodes))]
    Cycle {
        /// The nodes of one cycle, in edge order, starting from its smallest id.
        nodes: Vec<u32>,
    },
    /// Dense rows would need more memory than was allowed.
    #[error(
        "ancestor sets of {n_nodes} nodes need {needed} bytes of dense rows, more than the limit \
         of {limit}; raise the limit or use a sparse method"
    )]
    MemoryLimit {
        /// Number of nodes.
        n_nodes: usize,
        /// Bytes that would be needed.
        needed: u64,
        /// Bytes that were allowed.
        limit: u64,
    },
    /// A contraction that would put a cycle into the quotient graph.
    #[error("contracting these nodes would make a cycle through {through}")]
    Contraction {
        /// A node (or block) outside the contracted ones that lies on a path between two of them.
        through: u32,
    },
    /// A term that is not in a hash-cons table.
    #[error(
        "there is no term {id} in the hash-cons table: it was freed when nothing held it any longer, or \
         it never existed"
    )]
    NoTerm {
        /// The bits of its id.
        id: u64,
        /// Number of slots of the table.
        limit: usize,
    },
    /// The caller interrupted the work; see [`crate::Budget`].
    #[error("interrupted")]
    Interrupted,
    /// Integer arrays that contradict each other.
    #[error("{0}")]
    Inconsistent(String),
}

macro_rules! kinds {
    ($($variant:ident => $kind:literal,)*) => {
        impl Error {
            /// The kinds of error, one for each variant.
            pub const KINDS: &[&str] = &[$($kind),*];

            /// One of [`Error::KINDS`], which stays the same if the message changes.
            #[must_use]
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$variant { .. } => $kind),* }
            }
        }
    };
}

kinds! {
    TooLarge => "too-large",
    LengthMismatch => "length-mismatch",
    EdgeOutOfRange => "edge-out-of-range",
    SelfLoop => "self-loop",
    BackwardEdge => "backward-edge",
    OutOfRange => "out-of-range",
    Cycle => "cycle",
    MemoryLimit => "memory-limit",
    Contraction => "contraction",
    NoTerm => "no-term",
    Interrupted => "interrupted",
    Inconsistent => "inconsistent",
}

fn join(nodes: &[u32]) -> String {
    const SHOWN: usize = 50;
    let mut text = nodes.iter().take(SHOWN).map(u32::to_string).collect::<Vec<_>>().join(" -> ");
    if nodes.len() > SHOWN {
        text.push_str(&format!(" -> ... ({} more)", nodes.len() - SHOWN));
    }
    text
}
