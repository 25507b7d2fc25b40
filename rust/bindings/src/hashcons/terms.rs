//! Terms of a hash-cons table as Python objects, which keep them in the table.

use numpy::PyArray1;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pytensor_fuse_core::hashcons::{Handle, Handles};

use crate::errors::to_py;

/// A term of a `HashConsTable`, which stays in the table as long as this object lives.
///
/// Two objects are equal if they refer to the same term of the same table.
#[pyclass(frozen, weakref, module = "pytensor_fuse._core")]
pub(crate) struct Term(pub(super) Handle);

/// Terms of a `HashConsTable`, which stay in the table as long as this object lives.
///
/// A sequence: ``terms[i]`` is a `Term` of its own.
#[pyclass(frozen, sequence, weakref, module = "pytensor_fuse._core")]
pub(crate) struct Terms(pub(super) Handles);

type IdArray<'py> = Bound<'py, PyArray1<i64>>;

#[pymethods]
impl Term {
    /// The id of the term, which is never reused. An id does not keep the term in the table.
    #[getter]
    fn id(&self) -> u64 {
        self.0.id().bits()
    }

    /// The structural digest: 16 bytes that depend only on the structure, and are the same in every
    /// process. None if an opaque term is part of it.
    ///
    /// The first access computes it and the digests of all parts, a tenth of a microsecond each.
    #[getter]
    fn digest<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        digest(py, &self.0)
    }

    /// Whether the term has a `digest`: whether no opaque term is part of it. The digest is not
    /// computed.
    #[getter]
    fn has_digest(&self) -> bool {
        self.0.has_digest()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| other.get().0 == self.0)
    }

    fn __hash__(&self) -> u64 {
        self.0.id().bits()
    }
}

#[pymethods]
impl Terms {
    /// The ids of the terms: an array of int64; see `Term.id`.
    #[getter]
    fn ids<'py>(&self, py: Python<'py>) -> IdArray<'py> {
        PyArray1::from_iter(py, self.0.ids().iter().map(|id| id.bits() as i64))
    }

    fn __len__(&self) -> usize {
        self.0.ids().len()
    }

    fn __getitem__(&self, index: isize) -> PyResult<Term> {
        let n_terms = self.0.ids().len();
        let place = if index < 0 { index.checked_add_unsigned(n_terms) } else { Some(index) };
        let place = place.and_then(|place| usize::try_from(place).ok());
        let Some(&id) = place.and_then(|place| self.0.ids().get(place)) else {
            return Err(PyIndexError::new_err(format!(
                "there are {n_terms} terms, no term {index}"
            )));
        };
        self.0.table().handle(id).map(Term).map_err(to_py)
    }
}

/// The digest of a term. Handlers of signals run while the table is not locked.
pub(super) fn digest<'py>(py: Python<'py>, term: &Handle) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let digest = term.digest_asking(|| py.check_signals())?;
    Ok(digest.map(|digest| PyBytes::new(py, digest.as_bytes())))
}
