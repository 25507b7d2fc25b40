//! Calls of the features of a PyTensor graph that listen to an event. The Python package chooses the
//! listeners.

use std::time::Instant;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PyList, PyString, PyTuple};

/// Calls the method `name` of each of `listeners` that declares it, in order, and adds the duration of
/// each call to the listener's entry in `seconds`.
///
/// The methods get `arguments` and `keywords`. `features` is the list of all features of the graph, and
/// `expected` its expected content: once a call has changed the list, no other listener is called, and
/// the position of that listener is returned.
///
/// O(listeners * features), apart from the methods.
///
/// Raises
/// ------
/// AttributeError
///     A listener does not declare its methods, or has no such method.
/// Exception
///     Any exception of a method, whose seconds are not counted.
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

/// Whether two lists are equal, by identity or else by comparison.
fn are_same(one: &Bound<'_, PyList>, other: &Bound<'_, PyList>) -> PyResult<bool> {
    if one.len() == other.len() && one.iter().zip(other.iter()).all(|(a, b)| a.is(&b)) {
        return Ok(true);
    }
    one.eq(other)
}
