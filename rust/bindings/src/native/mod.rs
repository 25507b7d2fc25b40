//! Calls machine code on NumPy arrays: the one module with `unsafe` but `objects`.
//!
//! # The machine code
//! `i64 entry(ptr inputs, ptr dims, ptr constants, ptr context)`, where `inputs` are the data of
//! C-contiguous, aligned arrays of native byte order, `dims` the lengths of all their axes, one
//! input after the other, `constants` the data of arrays as well, and `context` a
//! [`frame::Frame`], which starts with two functions to call for memory and room for eight numbers
//! about a failure. It returns 0, the number of a failure, or -1 if there is no memory.
//!
//! # Approach
//! What an argument has to be is laid out once, such that a call compares a pointer, two integers
//! and the lengths for each. All that a call needs apart from the results is kept for the next one.
//! The machine code runs with the lock of the interpreter: nothing frees the arguments meanwhile.

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
///     Where the machine code is entered.
/// owner : object
///     Keeps the machine code: it lives as long as the function.
/// inputs : sequence of tuple
///     The dtype of each input and the lengths of its axes, -1 where a length is not known.
/// constants : sequence of ndarray
///     Arrays that the machine code reads.
/// outputs : sequence of tuple
///     For each output ``("fresh", dtype, ndim)``, or ``("input", k)`` if it is the array of that
///     input, or ``("output", j)`` if it is the same object as an earlier output.
/// fail : callable
///     Gets the number of a failure and a tuple of eight numbers about it; returns the exception.
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
///     A parameter makes no sense; a constant is not C-contiguous, aligned and of native byte order.
///
/// Notes
/// -----
/// An array is used where it is if it is C-contiguous, aligned and of native byte order, and, if
/// it is destroyed, writeable; if not, the machine code gets a copy. Other objects than arrays are
/// accepted for inputs of no dimensions: NumPy's and Python's scalars that NumPy makes the right
/// dtype of.
///
/// Small arrays of outputs are given out again by later calls, once nobody else has them.
///
/// A call keeps the lock of the interpreter. Functions may be called while they run.
#[pyclass(frozen, subclass, dict, weakref, module = "pytensor_fuse._core")]
pub(crate) struct NativeFunction {
    /// Nothing while the object is being made: before Python 3.13, its attributes are made when it
    /// is known to the garbage collector already, and empty.
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

    /// Takes the storage cells of a PyTensor function, lists of one entry; once.
    ///
    /// Parameters
    /// ----------
    /// input_cells, output_cells : sequence of list
    ///     One for each input and for each output.
    /// n_arguments : int, optional
    ///     How many of the inputs, the first ones, are arguments of the PyTensor function:
    ///     :meth:`call_checked` then takes so many.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     There are not as many cells as inputs and outputs.
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

    /// Runs with the contents of the input cells.
    ///
    /// Returns
    /// -------
    /// list
    ///     The outputs, which are in the output cells as well.
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

    /// Runs with these arrays.
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
    ///     There are more or fewer arguments than inputs; one has another dtype or number of
    ///     dimensions, or is no array.
    /// ValueError
    ///     An axis has another length than it is known to have.
    /// MemoryError
    ///     There is no memory.
    /// Exception
    ///     What ``fail`` returns.
    fn call<'py>(&self, py: Python<'py>, args: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        self.function()?.call(py, args)
    }

    /// Runs if no argument has to be converted, with nothing put into cells.
    ///
    /// Parameters
    /// ----------
    /// args : tuple
    ///     The first inputs. The others are what the input cells have.
    ///
    /// Returns
    /// -------
    /// list or None
    ///     The outputs. None if the number of arguments is not right or an input is anything else
    ///     than an instance of ``numpy.ndarray`` itself that can be used where it is; nothing has
    ///     been done then.
    ///
    /// Raises
    /// ------
    /// MemoryError
    ///     There is no memory.
    /// Exception
    ///     What ``fail`` returns.
    fn call_checked<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        self.function()?.call_checked(py, args)
    }

    // Nothing is forgotten in `__clear__`, which PyO3 makes for the attributes alone. What a function
    // is made of was there before it, and what it is bound to are lists: whatever leads from these
    // back to the function, the garbage collector can clear.
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
