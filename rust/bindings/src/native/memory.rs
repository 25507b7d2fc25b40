//! The memory of a call apart from its results, kept for the next call.

use std::alloc::{Layout, alloc, dealloc};

use numpy::npyffi::npy_intp;
use pyo3::ffi;

use super::program::{DIMENSION_LIMIT, Program};
use super::results::Spare;

/// An arena of at most this many bytes is kept for the next call.
const KEPT_BYTES: usize = 1 << 26;

/// The alignment of arenas, which suits cache lines and the widest vectors.
const ARENA_ALIGNMENT: usize = 64;

/// Memory for the intermediate results of a call.
pub(super) struct Arena {
    start: *mut u8,
    bytes: usize,
    is_taken: bool,
    /// Further memory that a call has requested; it is freed when the call ends.
    more: Vec<(*mut u8, Layout)>,
}

impl Arena {
    const EMPTY: Self =
        Self { start: std::ptr::null_mut(), bytes: 0, is_taken: false, more: Vec::new() };

    /// Returns at least this many bytes, valid until the call ends, or null.
    pub(super) fn take(&mut self, bytes: usize) -> *mut u8 {
        if self.is_taken {
            return self.take_more(bytes);
        }
        if bytes > self.bytes || self.start.is_null() {
            self.free();
            let Ok(layout) = Layout::from_size_align(bytes.max(1), ARENA_ALIGNMENT) else {
                return std::ptr::null_mut();
            };
            // SAFETY: the size is not 0.
            self.start = unsafe { alloc(layout) };
            if self.start.is_null() {
                return self.start;
            }
            self.bytes = layout.size();
        }
        self.is_taken = true;
        self.start
    }

    fn take_more(&mut self, bytes: usize) -> *mut u8 {
        let Ok(layout) = Layout::from_size_align(bytes.max(1), ARENA_ALIGNMENT) else {
            return std::ptr::null_mut();
        };
        if self.more.try_reserve(1).is_err() {
            return std::ptr::null_mut();
        }
        // SAFETY: the size is not 0.
        let start = unsafe { alloc(layout) };
        if !start.is_null() {
            self.more.push((start, layout));
        }
        start
    }

    /// Frees further memory, and the arena if it is large.
    pub(super) fn give_back(&mut self) {
        self.is_taken = false;
        for (start, layout) in self.more.drain(..) {
            // SAFETY: `take_more` allocated it with this layout.
            unsafe { dealloc(start, layout) };
        }
        if self.bytes > KEPT_BYTES {
            self.free();
        }
    }

    fn free(&mut self) {
        if let (false, Ok(layout)) =
            (self.start.is_null(), Layout::from_size_align(self.bytes, ARENA_ALIGNMENT))
        {
            // SAFETY: `take` allocated it with this layout, and the pointer is dropped below.
            unsafe { dealloc(self.start, layout) };
        }
        (self.start, self.bytes) = (std::ptr::null_mut(), 0);
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        self.give_back();
        self.free();
    }
}

/// The memory of a call apart from its results.
pub(super) struct Workspace {
    /// The arrays, borrowed from the arguments.
    pub(super) arrays: Vec<*mut ffi::PyObject>,
    pub(super) data: Vec<*mut u8>,
    pub(super) dims: Vec<i64>,
    /// The arrays of `allocate`, or null; each is an owned reference.
    pub(super) results: Vec<*mut ffi::PyObject>,
    /// For each output, the last arrays that were allocated for it and may be reused. There are
    /// two, since the last result may be in an output cell while the next one is computed.
    pub(super) spares: Vec<[Option<Spare>; 2]>,
    /// The lengths of the array that `allocate` creates.
    pub(super) lengths: Vec<npy_intp>,
    /// Whether `allocate` has created an array instead of reusing one.
    pub(super) has_new: bool,
    pub(super) arena: Arena,
}

// SAFETY: between calls, all pointers but that of the arena are stale and never read; the memory of
// the arena is not bound to a thread.
unsafe impl Send for Workspace {}

impl Workspace {
    pub(super) fn new(program: &Program) -> Self {
        Self {
            arrays: vec![std::ptr::null_mut(); program.inputs.len()],
            data: vec![std::ptr::null_mut(); program.inputs.len()],
            dims: vec![0; program.lengths.len()],
            results: vec![std::ptr::null_mut(); program.outputs.len()],
            spares: program.outputs.iter().map(|_| [None, None]).collect(),
            lengths: vec![0; DIMENSION_LIMIT],
            has_new: false,
            arena: Arena::EMPTY,
        }
    }
}
