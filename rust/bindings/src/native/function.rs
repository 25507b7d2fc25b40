//! Calls of one function.

use std::sync::{Mutex, OnceLock};

use numpy::PyUntypedArray;
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PySystemError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::arguments::Arguments;
use super::frame::{Fault, Frame, allocate, scratch};
use super::memory::Workspace;
use super::program::Program;
use super::results::empty_list;

/// The status that the machine code returns if memory runs out.
const NO_MEMORY: i64 = -1;

/// The storage cells of a PyTensor function.
struct Cells {
    inputs: Vec<Py<PyList>>,
    outputs: Vec<Py<PyList>>,
    n_arguments: Option<usize>,
}

/// A program with the objects that it keeps alive and the state of its calls.
pub(super) struct Function {
    pub(super) program: Program,
    owner: Py<PyAny>,
    constants: Vec<Py<PyUntypedArray>>,
    fail: Py<PyAny>,
    cells: OnceLock<Cells>,
    workspace: Mutex<Workspace>,
}

impl Function {
    /// `constants` are those of the program.
    pub(super) fn new(
        program: Program,
        owner: Py<PyAny>,
        constants: Vec<Bound<'_, PyUntypedArray>>,
        fail: Py<PyAny>,
    ) -> Self {
        Self {
            workspace: Mutex::new(Workspace::new(&program)),
            program,
            owner,
            constants: constants.into_iter().map(Bound::unbind).collect(),
            fail,
            cells: OnceLock::new(),
        }
    }

    pub(super) fn n_inputs(&self) -> usize {
        self.program.inputs.len()
    }

    pub(super) fn n_outputs(&self) -> usize {
        self.program.outputs.len()
    }

    pub(super) fn bind(
        &self,
        input_cells: Vec<Py<PyList>>,
        output_cells: Vec<Py<PyList>>,
        n_arguments: Option<usize>,
    ) -> PyResult<()> {
        let expected = [self.n_inputs(), self.n_outputs()];
        let found = [input_cells.len(), output_cells.len()];
        for ((what, expected), found) in ["input", "output"].iter().zip(expected).zip(found) {
            if expected != found {
                return Err(PyValueError::new_err(format!(
                    "{found} {what} cells for {expected} {what}s"
                )));
            }
        }
        if let Some(n_arguments) = n_arguments.filter(|&n_arguments| n_arguments > expected[0]) {
            return Err(PyValueError::new_err(format!(
                "n_arguments is {n_arguments}, of {} inputs",
                expected[0]
            )));
        }
        let cells = Cells { inputs: input_cells, outputs: output_cells, n_arguments };
        self.cells.set(cells).map_err(|_| PyRuntimeError::new_err("the function has cells already"))
    }

    /// Runs with the contents of the input cells, and fills the output cells.
    pub(super) fn call_cells<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let Some(cells) = self.cells.get() else {
            return Err(PyRuntimeError::new_err("the function has no cells: call bind first"));
        };
        let arguments = Arguments { tuple: None, n_in_tuple: 0, cells: &cells.inputs };
        let results = self.run(py, arguments)?;
        for (position, cell) in cells.outputs.iter().enumerate() {
            cell.bind(py).set_item(0, results.get_item(position)?)?;
        }
        Ok(results)
    }

    /// Runs with these arguments.
    pub(super) fn call<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let copied;
        let tuple = if let Ok(tuple) = args.cast::<PyTuple>() {
            tuple
        } else {
            // No other thread can change a tuple.
            copied = args.cast::<PyList>()?.to_tuple();
            &copied
        };
        let (expected, found) = (self.n_inputs(), tuple.len());
        if found != expected {
            return Err(PyTypeError::new_err(format!(
                "{found} arguments for a function of {expected} inputs"
            )));
        }
        self.run(py, Arguments::of_tuple(tuple))
    }

    /// Runs with these arguments and the contents of the other inputs' cells, if none needs a
    /// conversion.
    pub(super) fn call_checked<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let n_in_tuple = args.len();
        let cells = self.cells.get();
        let n_arguments = cells.and_then(|cells| cells.n_arguments).unwrap_or(n_in_tuple);
        if n_in_tuple > self.n_inputs() || n_in_tuple != n_arguments {
            return Ok(None);
        }
        let cells = cells.map_or(&[][..], |cells| &cells.inputs);
        if n_in_tuple < self.n_inputs() && cells.is_empty() {
            return Ok(None);
        }
        let arguments = Arguments { tuple: Some(args), n_in_tuple, cells };
        let list = empty_list(py, self.n_outputs())?;
        self.with_workspace(|workspace| {
            if !self.program.gather::<true>(arguments, workspace) {
                return Ok(None);
            }
            self.execute(py, workspace, list, n_in_tuple).map(Some)
        })
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.owner)?;
        visit.call(&self.fail)?;
        self.constants.iter().try_for_each(|constant| visit.call(constant))?;
        let Some(cells) = self.cells.get() else { return Ok(()) };
        cells.inputs.iter().chain(&cells.outputs).try_for_each(|cell| visit.call(cell))
    }

    /// Runs `work` with the workspace of the function, or with a new one while another call uses
    /// it: a nested call, or one of another thread.
    fn with_workspace<T>(&self, work: impl FnOnce(&mut Workspace) -> T) -> T {
        match self.workspace.try_lock() {
            Ok(mut workspace) => work(&mut workspace),
            Err(_) => work(&mut Workspace::new(&self.program)),
        }
    }

    /// Runs with arguments that may need a conversion.
    fn run<'py>(
        &self,
        py: Python<'py>,
        arguments: Arguments<'_, 'py>,
    ) -> PyResult<Bound<'py, PyList>> {
        // The list is created first: on Python 3.11, a new list may trigger the garbage collector,
        // which runs other code.
        let list = empty_list(py, self.n_outputs())?;
        self.with_workspace(|workspace| {
            if self.program.gather::<false>(arguments, workspace) {
                return self.execute(py, workspace, list, arguments.n_in_tuple);
            }
            drop(list);
            let converted = self.program.convert(py, arguments)?;
            let list = empty_list(py, self.n_outputs())?;
            // All arguments are checked again, since a later conversion may have run Python code.
            let arguments = Arguments::of_tuple(&converted);
            if self.program.gather::<false>(arguments, workspace) {
                return self.execute(py, workspace, list, arguments.n_in_tuple);
            }
            Err(PyRuntimeError::new_err("an argument has changed while others were converted"))
        })
    }

    /// Runs with the gathered arguments, and stores the outputs in `list`. The first `n_safe`
    /// arguments are in a tuple.
    fn execute<'py>(
        &self,
        py: Python<'py>,
        workspace: &mut Workspace,
        list: Bound<'py, PyList>,
        n_safe: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        // Python code may replace the contents of cells: it runs if NumPy raises an exception for
        // an array that it cannot allocate.
        for &array in &workspace.arrays[n_safe..] {
            // SAFETY: `gather` found it in a cell.
            unsafe { ffi::Py_INCREF(array) };
        }
        let mut frame = Frame {
            allocate,
            scratch,
            details: [0; 8],
            program: &raw const self.program,
            workspace: &raw mut *workspace,
            fault: Fault::None,
        };
        // SAFETY: `gather` found an array for each input that meets the requirements of the machine
        // code, and no Python code has run since. Nothing frees the data that the machine code
        // reads: arguments are in a tuple, which is immutable, or references to them were taken
        // above; constants are in `self`, which keeps the code alive through `owner`. Nothing else
        // writes to the data while the interpreter is attached, except when NumPy raises an
        // exception in `allocate`, after which the machine code returns.
        let code = unsafe {
            (self.program.entry)(
                workspace.data.as_ptr(),
                workspace.dims.as_ptr(),
                self.program.constants.as_ptr(),
                &raw mut frame,
            )
        };
        let (fault, details) = (frame.fault, frame.details);
        // The exception is fetched before anything is freed, since freeing may run Python code.
        let raised = (fault == Fault::Raised).then(|| PyErr::fetch(py));
        workspace.arena.give_back();
        let mut missing = None;
        if code == 0 && fault == Fault::None {
            missing = self.program.hand_over(workspace, &list);
        }
        for &array in &workspace.arrays[n_safe..] {
            // SAFETY: the reference taken above.
            unsafe { ffi::Py_DECREF(array) };
        }
        if code == 0 && fault == Fault::None && missing.is_none() {
            if std::mem::take(&mut workspace.has_new) {
                self.program.keep_spares(workspace, &list)?;
            }
            return Ok(list);
        }
        for result in &mut workspace.results {
            let result = std::mem::replace(result, std::ptr::null_mut());
            // SAFETY: an array of `allocate`, or null; this was the only reference to it.
            drop(unsafe { Bound::from_owned_ptr_or_opt(py, result) });
        }
        if let Some(error) = raised {
            return Err(error);
        }
        if let Some(position) = missing {
            return Err(PySystemError::new_err(format!(
                "machine code has returned without output {position}"
            )));
        }
        Err(match fault {
            Fault::NoArena => PyMemoryError::new_err("there is no memory for intermediate results"),
            Fault::Wrong(what) => PySystemError::new_err(format!("machine code has {what}")),
            _ if code > 0 => self.failure(py, code, details)?,
            _ if code == NO_MEMORY => PyMemoryError::new_err("there is no memory"),
            _ => PySystemError::new_err(format!("machine code has returned {code}")),
        })
    }

    /// Returns the exception for a failure of the program.
    #[cold]
    fn failure(&self, py: Python<'_>, number: i64, details: [i64; 8]) -> PyResult<PyErr> {
        let details = PyTuple::new(py, details)?;
        Ok(PyErr::from_value(self.fail.bind(py).call1((number, details))?))
    }
}
