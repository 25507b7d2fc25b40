//! The input, nodes and variables around sums by number, and the result.

/// No node, variable, or place.
pub const NONE: u32 = u32::MAX;

/// Nodes and variables around sums, by number.
#[derive(Debug, Clone, Default)]
pub struct Sums {
    /// The inputs of each node; empty where they cannot matter.
    pub inputs: Vec<Vec<u32>>,
    /// The output of each node that has inputs, if it can matter; [`NONE`] for other nodes.
    pub outputs: Vec<u32>,
    /// The node that makes a variable, or [`NONE`].
    pub owners: Vec<u32>,
    /// Whether a variable is an increment that sums can go below. The first input of its node is
    /// the incremented variable.
    pub is_increment: Vec<bool>,
    /// The readers of each variable: nodes and positions among their inputs.
    pub readers: Vec<Vec<(u32, u32)>>,
    /// The sums, in the order in which they are processed.
    pub sums: Vec<u32>,
}

/// The final state, in which no sum is on top of an increment that nothing else reads.
///
/// Nodes that steps have made, and that remain, are numbered after the given ones, in the order in
/// which they were made; so are their outputs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Strung {
    /// The number of times that a sum has gone below increments.
    pub n_steps: usize,
    /// The given sums that have gone below increments, in the order in which they did.
    pub moved: Vec<u32>,
    /// The given nodes that nothing reads any more, ascending.
    pub gone: Vec<u32>,
    /// The remaining nodes that are new or have changed inputs, in the order of their first
    /// changes.
    pub changed: Vec<u32>,
    /// The inputs of the nodes in `changed`, in the same order.
    pub inputs: Vec<Vec<u32>>,
    /// For each node that was made, the increment that it repeats; [`NONE`] if it is a sum.
    pub repeats: Vec<u32>,
    /// For each node that was made, the given variables whose notes its output takes over.
    pub notes: Vec<Vec<u32>>,
    /// The readers of each variable, in the order in which they came to read it.
    pub readers: Vec<Vec<(u32, u32)>>,
}
