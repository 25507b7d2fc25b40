//! Calls of machine code on NumPy arrays, the only module with `unsafe` besides `walk::objects`.
//!
//! # The machine code
//! `i64 entry(ptr inputs, ptr dims, ptr constants, ptr context)`: `inputs` are the data of
//! C-contiguous, aligned arrays of native byte order, `dims` the lengths of all their axes, input
//! by input, `constants` the data of further arrays, and `context` a [`frame::Frame`], which starts
//! with two functions that allocate memory and eight numbers that describe a failure. The code
//! returns 0, the number of a failure, or -1 if memory runs out.
//!
//! # Approach
//! The requirements on the arguments are prepared once, so that a call compares a pointer, two
//! integers and the lengths of each argument. The workspace of a call is kept for the next call.
//! The machine code runs with the interpreter's lock, so that nothing frees the arguments.

mod arguments;
mod frame;
mod function;
mod memory;
mod program;
mod results;

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use function::Function;
use program::{Program, constant_array};

/// Machine code to be called with NumPy arrays.
///
/// Parameters
/// ----------
/// address : int
///     The entry point of the machine code.
/// owner : object
///     Owns the machine code; the function keeps it alive.
/// inputs : sequence of tuple
///     The dtype of each input and the lengths of its axes, -1 for an unknown length.
/// constants : sequence of ndarray
///     Arrays that the machine code reads.
/// outputs : sequence of tuple
///     For each output ``("fresh", dtype, ndim)``, or ``("input", k)`` if it is the array of that
///     input, or ``("output", j)`` if it is the same object as an earlier output.
/// fail : callable
///     Returns the exception for the number of a failure and a tuple of eight numbers about it.
/// destroyed : sequence of int, optional
///     The inputs that the machine code writes into.
///
/// Attributes
/// ----------
/// address, n_inputs, n_outputs : int
///
/// Raises
/// ------
/// ValueError
///     A parameter is invalid, or a constant is not C-contiguous, aligned and of native byte order.
///
/// Notes
/// -----
/// An array is used in place if it is C-contiguous, aligned and of native byte order, and, if it is
/// destroyed, writeable; otherwise the machine code gets a copy. Inputs without dimensions may also be
/// scalars of NumPy or Python that NumPy converts to the right dtype.
///
/// Later calls reuse small output arrays that have no other references.
///
/// A call holds the interpreter's lock. Functions are reentrant.
#[pyclass(frozen, subclass, dict, weakref, module = "pytensor_fuse._core")]
pub(crate) struct NativeFunction {
    /// None while the object is being made: before Python 3.13, the garbage collector can already see
    /// the object when its attributes are made.
    function: Option<Box<Function>>,
}

#[pymethods]
impl NativeFunction {
    #[new]
    #[pyo3(signature = (address, owner, inputs, constants, outputs, fail, destroyed = vec![]))]
    #[allow(clippy::too_many_arguments, reason = "they are those of the Python class")]
    fn new(
        py: Python<'_>,
        address: usize,
        owner: Py<PyAny>,
        inputs: Vec<(Bound<'_, PyAny>, Vec<i64>)>,
        constants: Vec<Bound<'_, PyAny>>,
        outputs: Vec<Bound<'_, PyTuple>>,
        fail: Py<PyAny>,
        destroyed: Vec<usize>,
    ) -> PyResult<Self> {
        if !fail.bind(py).is_callable() {
            return Err(PyTypeError::new_err("fail must be callable"));
        }
        let constants = constants
            .into_iter()
            .enumerate()
            .map(|(position, constant)| constant_array(position, constant))
            .collect::<PyResult<Vec<_>>>()?;
        let program = Program::new(py, address, inputs, &constants, &outputs, &destroyed)?;
        let function = Function::new(program, owner, constants, fail);
        Ok(Self { function: Some(Box::new(function)) })
    }

    #[getter]
    fn address(&self) -> PyResult<usize> {
        Ok(self.function()?.program.entry as usize)
    }

    #[getter]
    fn n_inputs(&self) -> PyResult<usize> {
        Ok(self.function()?.n_inputs())
    }

    #[getter]
    fn n_outputs(&self) -> PyResult<usize> {
        Ok(self.function()?.n_outputs())
    }

    /// Set the storage cells of a PyTensor function, lists of one entry; only once.
    ///
    /// Parameters
    /// ----------
    /// input_cells, output_cells : sequence of list
    ///     One for each input and for each output.
    /// n_arguments : int, optional
    ///     The number of inputs, from the first on, that are arguments of the PyTensor function,
    ///     which :meth:`call_checked` then takes.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     The numbers of cells differ from those of inputs and outputs.
    /// RuntimeError
    ///     The function has cells already.
    #[pyo3(signature = (input_cells, output_cells, n_arguments = None))]
    fn bind(
        &self,
        input_cells: Vec<Py<PyList>>,
        output_cells: Vec<Py<PyList>>,
        n_arguments: Option<usize>,
    ) -> PyResult<()> {
        self.function()?.bind(input_cells, output_cells, n_arguments)
    }

    /// Run with the contents of the input cells.
    ///
    /// Returns
    /// -------
    /// list
    ///     The outputs, which are also in the output cells.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     The function has no cells.
    /// TypeError, ValueError, MemoryError, Exception
    ///     As :meth:`call` does.
    fn __call__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.function()?.call_cells(py)
    }

    /// Run with these arrays.
    ///
    /// Parameters
    /// ----------
    /// args : tuple or list
    ///     One array for each input.
    ///
    /// Returns
    /// -------
    /// list
    ///     The outputs.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     The number of arguments is wrong, or one has another dtype or number of dimensions, or is
    ///     not an array.
    /// ValueError
    ///     An axis differs from its known length.
    /// MemoryError
    ///     There is no memory.
    /// Exception
    ///     The exception that ``fail`` returns.
    fn call<'py>(&self, py: Python<'py>, args: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        self.function()?.call(py, args)
    }

    /// Run if no argument needs a conversion. The output cells stay as they are.
    ///
    /// Parameters
    /// ----------
    /// args : tuple
    ///     The first inputs. The others come from the input cells.
    ///
    /// Returns
    /// -------
    /// list or None
    ///     The outputs. None, without any effect, if the number of arguments is wrong, or if an input
    ///     is not an instance of ``numpy.ndarray`` itself that can be used in place.
    ///
    /// Raises
    /// ------
    /// MemoryError
    ///     There is no memory.
    /// Exception
    ///     The exception that ``fail`` returns.
    fn call_checked<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        self.function()?.call_checked(py, args)
    }

    // PyO3's `__clear__` clears the attributes only. The parts of a function are older than the function,
    // and its cells are lists: the garbage collector can clear any path from these back to the function.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.function.as_ref().map_or(Ok(()), |function| function.traverse(&visit))
    }
}

impl NativeFunction {
    #[inline(always)]
    fn function(&self) -> PyResult<&Function> {
        let is_new = || PyRuntimeError::new_err("the function is still being made");
        self.function.as_deref().ok_or_else(is_new)
    }
}
