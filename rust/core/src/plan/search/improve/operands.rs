//! The operands of a cluster, and the overlap of two clusters.

use crate::plan::problem::VarId;

/// Inputs and outputs of a cluster.
#[derive(Debug, Clone, Default)]
pub(super) struct Operands {
    /// Variables read from outside, ascending, each with the number of members that read it.
    pub(super) inputs: Vec<(VarId, u32)>,
    /// Members' results that are read outside, in any order.
    pub(super) outputs: Vec<VarId>,
}

/// The arrays and operands that merging two clusters saves.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Overlap {
    pub(super) arrays: u32,
    pub(super) operands: usize,
}

impl Operands {
    pub(super) fn count(&self) -> usize {
        self.inputs.len() + self.outputs.len()
    }

    /// The number of members that read the input `variable`, if it is one.
    pub(super) fn readers_of(&self, variable: VarId) -> Option<u32> {
        let position = self.inputs.binary_search_by_key(&variable, |&(input, _)| input).ok()?;
        Some(self.inputs[position].1)
    }
}

/// The union of two ascending lists; counts of equal entries are added.
pub(super) fn union<'a>(
    first: &'a [(VarId, u32)],
    second: &'a [(VarId, u32)],
) -> impl Iterator<Item = (VarId, u32)> + 'a {
    let (mut i, mut j) = (0, 0);
    std::iter::from_fn(move || match (first.get(i), second.get(j)) {
        (Some(&a), Some(&b)) if a.0 == b.0 => {
            (i, j) = (i + 1, j + 1);
            Some((a.0, a.1 + b.1))
        }
        (Some(&a), b) if b.is_none_or(|b| a.0 < b.0) => {
            i += 1;
            Some(a)
        }
        (_, Some(&b)) => {
            j += 1;
            Some(b)
        }
        _ => None,
    })
}
