//! A table that threads share, and handles that give themselves back.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Content, Digest, HashConsTable, TermId};
use crate::error::Result;

/// A [`HashConsTable`] behind a lock, shared by its clones.
#[derive(Debug, Clone, Default)]
pub struct SharedTable(Arc<Mutex<HashConsTable>>);

/// One handle on a term of a [`SharedTable`], given back when it is dropped.
///
/// Equal handles are on the same term of the same table, as long as both live.
#[derive(Debug)]
pub struct Handle {
    table: SharedTable,
    id: TermId,
}

impl SharedTable {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Locks the table. Handles on it must not be dropped meanwhile by the same thread.
    pub fn lock(&self) -> MutexGuard<'_, HashConsTable> {
        // Whoever panicked did so between two changes of the table: there is no unwinding out of
        // the middle of one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// [`HashConsTable::compound`]
    ///
    /// # Errors
    /// The same.
    pub fn compound(&self, content: Content, children: &[TermId]) -> Result<Handle> {
        let id = self.lock().compound(content, children)?;
        Ok(self.own(id))
    }

    /// Whether `other` is this table, not another with equal terms.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A handle that the caller has from a method of the table, as an object.
    #[must_use]
    pub fn own(&self, id: TermId) -> Handle {
        Handle { table: self.clone(), id }
    }
}

impl Handle {
    /// The id of the term.
    #[must_use]
    pub fn id(&self) -> TermId {
        self.id
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &SharedTable {
        &self.table
    }

    /// [`HashConsTable::digest`]
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        self.table.lock().digest(self.id).ok().flatten()
    }
}

impl PartialEq for Handle {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.table.is(&other.table)
    }
}

impl Eq for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        let released = self.table.lock().release(self.id);
        debug_assert!(released.is_ok(), "a handle is given back once");
    }
}
