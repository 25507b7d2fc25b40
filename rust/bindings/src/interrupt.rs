//! Long work that can be interrupted with Ctrl-C.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pytensor_fuse_core::{Budget, Result};

use crate::errors::to_py;

/// The time for which a signal may wait for its handler.
const PATIENCE: Duration = Duration::from_millis(50);

/// Runs `work` without the interpreter, except for the handlers of signals, if this is the thread that
/// runs them. If a handler raises, the work ends with that exception. The budget that `work` gets checks
/// for signals, and its effort is unlimited.
///
/// Work that takes less than [`PATIENCE`] never waits for the interpreter. While `work` checks its
/// budget, it must not hold a lock that other calls take, since a handler may make such a call.
pub(crate) fn detach<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Budget) -> Result<T> + Send,
) -> PyResult<T> {
    py.detach(|| asking(work))
}

/// [`detach`] for work that needs the interpreter.
pub(crate) fn attached<T>(_py: Python<'_>, work: impl FnOnce(&Budget) -> Result<T>) -> PyResult<T> {
    asking(work)
}

fn asking<T>(work: impl FnOnce(&Budget) -> Result<T>) -> PyResult<T> {
    let raised: Rc<RefCell<Option<PyErr>>> = Rc::default();
    let may_go_on = {
        let raised = Rc::clone(&raised);
        let last = Cell::new(Instant::now());
        move || {
            if last.get().elapsed() < PATIENCE {
                return true;
            }
            let answer = Python::attach(|py| py.check_signals());
            last.set(Instant::now());
            answer.map_err(|error| raised.replace(Some(error))).is_ok()
        }
    };
    let result = work(&Budget::asking(Rc::new(may_go_on)));
    match raised.take() {
        Some(error) => Err(error),
        None => result.map_err(to_py),
    }
}

/// Counts steps of work that holds the interpreter, and runs the handlers of signals from time to
/// time: Python runs none while it executes no Python code.
#[derive(Default)]
pub(crate) struct Signals(usize);

impl Signals {
    /// Notes one step of about a microsecond.
    pub(crate) fn check(&mut self, py: Python<'_>) -> PyResult<()> {
        self.check_many(py, 1)
    }

    /// Notes some steps of about a microsecond each.
    pub(crate) fn check_many(&mut self, py: Python<'_>, n_steps: usize) -> PyResult<()> {
        const STEPS: usize = 1 << 12;
        self.0 = self.0.saturating_add(n_steps);
        if self.0 < STEPS {
            return Ok(());
        }
        self.0 = 0;
        py.check_signals()
    }
}
