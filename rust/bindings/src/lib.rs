//! The extension module `pytensor_fuse._core`.

#![deny(unsafe_code)]

mod errors;
mod extract;
mod flat;
mod graph;
mod hashcons;
mod ids;
mod increments;
mod interrupt;
mod layout;
mod listeners;
mod loops;
mod merge;
#[allow(unsafe_code, reason = "machine code is called there, and nowhere else")]
mod native;
mod plan;
mod readers;
mod walk;

use pyo3::prelude::*;

// Threads that run in parallel have not been tested, so the module requests the interpreter's
// lock where Python can run without it.
#[pymodule(gil_used = true)]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::extract::{Extraction, extract};
    #[pymodule_export]
    use crate::flat::{FlatGraph, walk};
    #[pymodule_export]
    use crate::graph::{AncestorSets, Graph};
    #[pymodule_export]
    use crate::hashcons::{HashConsTable, Term, Terms};
    #[pymodule_export]
    use crate::increments::string_together;
    #[pymodule_export]
    use crate::layout::layered_layout;
    #[pymodule_export]
    use crate::listeners::call_listeners;
    #[pymodule_export]
    use crate::loops::{native_regions, place_buffers, schedule_loops};
    #[pymodule_export]
    use crate::merge::{MergePlan, MergeTable};
    #[pymodule_export]
    use crate::native::NativeFunction;
    #[pymodule_export]
    use crate::plan::{FusedClusters, plan_arrays, plan_extraction};
    #[pymodule_export]
    use crate::readers::remove_reader;
    #[pymodule_export]
    use crate::walk::{GraphParts, walk_parts};
    #[pymodule_export]
    use crate::walk::{NodeOrder, in_order};

    /// Adds the exception classes, and the package's version from Cargo.toml.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::errors::add_to(module)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
