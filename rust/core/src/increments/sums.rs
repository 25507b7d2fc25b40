//! The question, nodes and variables around sums by number, and the answer to it.

/// No node, variable, or place.
pub const NONE: u32 = u32::MAX;

/// Nodes and variables around sums, by number.
#[derive(Debug, Clone, Default)]
pub struct Sums {
    /// What each node reads; nothing where that cannot matter.
    pub inputs: Vec<Vec<u32>>,
    /// The output of each node that reads something, of those with one that can matter.
    pub outputs: Vec<u32>,
    /// The node that makes a variable, or [`NONE`].
    pub owners: Vec<u32>,
    /// Whether a variable is an increment that sums can go below. Its node reads first what is
    /// incremented.
    pub is_increment: Vec<bool>,
    /// Who reads each variable: nodes and positions among what they read.
    pub readers: Vec<Vec<(u32, u32)>>,
    /// The sums, in the order in which they are looked at.
    pub sums: Vec<u32>,
}

/// What is left when no sum is on top of an increment that nothing else reads.
///
/// Nodes that steps have made, and that are left, have numbers that follow those of the given, in
/// the order in which they were made; so have their outputs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Strung {
    /// How many times a sum has gone below increments.
    pub n_steps: usize,
    /// The given sums that have, in this order.
    pub moved: Vec<u32>,
    /// The given nodes that nothing reads any more, in their order.
    pub gone: Vec<u32>,
    /// The nodes that are left and are new, or read something else, each when it was first so.
    pub changed: Vec<u32>,
    /// What these read, in the same order.
    pub inputs: Vec<Vec<u32>>,
    /// For each node that was made, the increment that it repeats; [`NONE`] if it is a sum.
    pub repeats: Vec<u32>,
    /// For each node that was made, the given variables whose notes its output takes over.
    pub notes: Vec<Vec<u32>>,
    /// Who reads each variable, in the order in which they came to.
    pub readers: Vec<Vec<(u32, u32)>>,
}
