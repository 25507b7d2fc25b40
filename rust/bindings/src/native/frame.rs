//! The context of a call that the machine code receives, and the functions that it calls.

use numpy::npyffi::{self, PY_ARRAY_API, npy_intp};
use pyo3::ffi;
use pyo3::prelude::*;

use super::memory::Workspace;
use super::program::{Program, Source};

/// The context of a call that the machine code receives. The first three fields are the interface.
#[repr(C)]
pub(super) struct Frame {
    pub(super) allocate: unsafe extern "C" fn(*mut Frame, i64, *const i64) -> *mut u8,
    pub(super) scratch: unsafe extern "C" fn(*mut Frame, i64) -> *mut u8,
    pub(super) details: [i64; 8],
    pub(super) program: *const Program,
    pub(super) workspace: *mut Workspace,
    pub(super) fault: Fault,
}

/// The reason why a request of the machine code was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    /// A Python exception is set.
    Raised,
    /// Out of memory for the arena.
    NoArena,
    /// An invalid request.
    Wrong(&'static str),
}

/// Allocates the array of an output; returns its data, or null on failure.
///
/// # Safety
/// Only the machine code may call this, with the frame that it received and one length for each
/// dimension of the output.
pub(super) unsafe extern "C" fn allocate(
    frame: *mut Frame,
    output: i64,
    dims: *const i64,
) -> *mut u8 {
    // SAFETY: `execute` created the frame, and does not use it before the machine code returns.
    let frame = unsafe { &mut *frame };
    // SAFETY: `execute` borrows the program, and does not touch the workspace meanwhile.
    let (program, workspace) = unsafe { (&*frame.program, &mut *frame.workspace) };
    // SAFETY: `execute` runs with the interpreter attached.
    let py = unsafe { Python::assume_attached() };
    let position = usize::try_from(output).unwrap_or(usize::MAX);
    let (Some(Source::Fresh { descr, ndim }), Some(result), Some(spares)) = (
        program.outputs.get(position),
        workspace.results.get_mut(position),
        workspace.spares.get_mut(position),
    ) else {
        return frame.refuse(Fault::Wrong("allocated an output that is none of its own"));
    };
    if !result.is_null() {
        return frame.refuse(Fault::Wrong("allocated an output twice"));
    }
    if frame.fault != Fault::None {
        // An exception may be set, and no Python function may be called while it is.
        return std::ptr::null_mut();
    }
    let lengths = &mut workspace.lengths[..*ndim as usize];
    for (axis, length) in lengths.iter_mut().enumerate() {
        // SAFETY: there is one length for each dimension. A length that does not fit becomes the
        // largest that does, which NumPy refuses.
        *length = npy_intp::try_from(unsafe { *dims.add(axis) }).unwrap_or(npy_intp::MAX);
    }
    for spare in spares.iter().flatten() {
        *result = spare.again(py, descr, lengths);
        if !result.is_null() {
            break;
        }
    }
    if result.is_null() {
        // SAFETY: the function steals a reference to the dtype, and returns one to an array, or
        // null with an exception set.
        *result = unsafe {
            PY_ARRAY_API.PyArray_NewFromDescr(
                py,
                program.array_type,
                ffi::Py_NewRef(descr.as_ptr()).cast(),
                *ndim,
                lengths.as_mut_ptr(),
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                0,
                std::ptr::null_mut(),
            )
        };
        if result.is_null() {
            return frame.refuse(Fault::Raised);
        }
        workspace.has_new = true;
    }
    // SAFETY: it is an array.
    unsafe { (*npyffi::_PyArray_GET_ITEM_DATA(result.cast())).data.cast() }
}

/// Returns memory for the machine code's use until it returns, or null if there is none.
///
/// # Safety
/// Only the machine code may call this, with the frame that it received.
pub(super) unsafe extern "C" fn scratch(frame: *mut Frame, bytes: i64) -> *mut u8 {
    // SAFETY: `execute` created the frame, and does not use it before the machine code returns.
    let frame = unsafe { &mut *frame };
    // SAFETY: `execute` does not touch the workspace meanwhile.
    let arena = unsafe { &mut (*frame.workspace).arena };
    let start = usize::try_from(bytes).map_or(std::ptr::null_mut(), |bytes| arena.take(bytes));
    if start.is_null() { frame.refuse(Fault::NoArena) } else { start }
}

impl Frame {
    /// Records the first reason for a refusal.
    #[cold]
    fn refuse(&mut self, fault: Fault) -> *mut u8 {
        if self.fault == Fault::None {
            self.fault = fault;
        }
        std::ptr::null_mut()
    }
}
