//! Long work that Ctrl-C ends.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pytensor_fuse_core::Result;
use pytensor_fuse_core::interrupt::interruptible;

use crate::errors::to_py;

/// How long a signal may wait for its handler.
const PATIENCE: Duration = Duration::from_millis(50);

/// Runs `work` without the interpreter, but for the handlers of signals that come meanwhile, if
/// this is the thread that runs them. If a handler raises, the work ends, and that is the error.
///
/// Work that takes less than [`PATIENCE`] never waits for the interpreter. What `work` has locked
/// must not be asked for by a handler: of what other calls lock, it may hold nothing while it asks.
pub(crate) fn detach<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T> + Send,
) -> PyResult<T> {
    py.detach(|| {
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
        let result = interruptible(Rc::new(may_go_on), work);
        match raised.take() {
            Some(error) => Err(error),
            None => result.map_err(to_py),
        }
    })
}

/// Counts what is done with the interpreter, and has the handlers of signals run now and then:
/// Python runs none while it runs no code of its own.
#[derive(Default)]
pub(crate) struct Signals(u32);

impl Signals {
    /// Notes one step of about a microsecond.
    pub(crate) fn check(&mut self, py: Python<'_>) -> PyResult<()> {
        const STEPS: u32 = 1 << 12;
        self.0 = (self.0 + 1) % STEPS;
        if self.0 == 0 { py.check_signals() } else { Ok(()) }
    }
}
