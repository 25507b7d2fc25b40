//! Calls the features of a PyTensor graph that listen to an event, as the graph does. Who listens is
//! for the Python package to say.

use std::time::Instant;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PyList, PyString, PyTuple};

/// Calls the method `name` of each of `listeners` that says that it listens to it, in this order,
/// and adds the seconds that each call takes to those of the listener in `seconds`.
///
/// `arguments` and `keywords` are what the methods are called with. `features` is the list of all
/// features of the graph, and `expected` what it was: after a call that has left another list, no
/// other listener is called, and the position of the one that was called last is returned.
///
/// O(listeners * features), apart from what the methods do.
///
/// Raises
/// ------
/// AttributeError
///     A listener does not say what it listens to, or has no such method.
/// Exception
///     Whatever a method raises. Its seconds are not counted.
#[pyfunction]
pub(crate) fn call_listeners(
    listeners: &Bound<'_, PyTuple>,
    name: &Bound<'_, PyString>,
    arguments: &Bound<'_, PyTuple>,
    keywords: Option<&Bound<'_, PyDict>>,
    features: &Bound<'_, PyList>,
    expected: &Bound<'_, PyList>,
    seconds: &Bound<'_, PyDict>,
) -> PyResult<Option<usize>> {
    let py = listeners.py();
    for (position, listener) in listeners.iter().enumerate() {
        let heard = listener.get_type().getattr(intern!(py, "_feature_callbacks"))?;
        let hears = match heard.cast::<PyFrozenSet>() {
            Ok(names) => names.contains(name)?,
            Err(_) => heard.contains(name)?,
        };
        if !hears {
            continue;
        }
        let method = listener.getattr(name)?;
        let start = Instant::now();
        method.call(arguments, keywords)?;
        let spent = start.elapsed().as_secs_f64();
        let before = seconds.get_item(&listener)?.map_or(Ok(0.0), |known| known.extract())?;
        seconds.set_item(&listener, before + spent)?;
        if !are_same(features, expected)? {
            return Ok(Some(position));
        }
    }
    Ok(None)
}

/// Whether two lists are equal; those of the same objects are.
fn are_same(one: &Bound<'_, PyList>, other: &Bound<'_, PyList>) -> PyResult<bool> {
    if one.len() == other.len() && one.iter().zip(other.iter()).all(|(a, b)| a.is(&b)) {
        return Ok(true);
    }
    one.eq(other)
}
