//! Dense ids, and checks of arrays that hold them or are indexed by them.

use crate::error::{Error, Result};

/// Node counts stay below this, so that `u32::MAX` can mean "none".
pub const MAX_NODES: usize = u32::MAX as usize - 1;

/// Refuses more entries than dense ids can name.
pub(crate) fn check_count(what: &'static str, count: usize) -> Result<()> {
    if count > MAX_NODES {
        return Err(Error::TooLarge { what, count, limit: MAX_NODES });
    }
    Ok(())
}

/// Refuses two arrays, each given by name and length, that are not equally long.
pub(crate) fn check_same_length(
    (left, left_len): (&'static str, usize),
    (right, right_len): (&'static str, usize),
) -> Result<()> {
    if left_len != right_len {
        return Err(Error::LengthMismatch { left, left_len, right, right_len });
    }
    Ok(())
}

/// Refuses an id outside `0..limit`.
pub(crate) fn check_id(what: &'static str, id: u32, limit: usize) -> Result<()> {
    if id as usize >= limit {
        return Err(Error::OutOfRange { what, id: id.into(), limit });
    }
    Ok(())
}

/// Refuses the first id outside `0..limit`.
pub(crate) fn check_ids(what: &'static str, ids: &[u32], limit: usize) -> Result<()> {
    ids.iter().try_for_each(|&id| check_id(what, id, limit))
}
