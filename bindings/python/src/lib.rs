//! The native half of the `tidegate` Python package. Python's half says what is public; this one
//! holds the gate and everything that happens on the way through it.

// Doc comments here are Python's docstrings, and Python calls these methods with arguments of its own.
#![allow(clippy::doc_markdown, clippy::unused_self)]

mod admission;
mod arguments;
mod block;
mod capacity;
mod capacity_test;
mod change;
mod classifier;
mod clock;
mod context;
mod control;
mod door;
mod event;
mod gate;
mod gates;
mod hold;
mod hooks;
mod names;
mod once_flag;
mod outcome;
mod permit;
mod prebound;
mod published;
mod ready;
mod reports;
mod shed;
mod signal;
mod simulate;
mod stats;
mod throttle;
mod told;

/// The native module behind `tidegate`. Use `tidegate`.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use super::admission::Admission;
    #[pymodule_export]
    use super::capacity::{UslFit, fit_usl};
    #[pymodule_export]
    use super::capacity_test::{
        CapacitySearch, CapacitySimulated, CapacityWatch, capacity_sample_size, capacity_toml, capacity_upper,
    };
    #[pymodule_export]
    use super::change::Change;
    #[pymodule_export]
    use super::classifier::{Classifier, Explanation};
    #[pymodule_export]
    use super::clock::ManualClock;
    #[pymodule_export]
    use super::context::{priority_from, read_priority_from};
    #[pymodule_export]
    use super::event::Event;
    #[pymodule_export]
    use super::gate::Gate;
    #[pymodule_export]
    use super::gates::{Gates, load};
    #[pymodule_export]
    use super::hold::Hold;
    #[pymodule_export]
    use super::hooks::Subscription;
    #[pymodule_export]
    use super::permit::Permit;
    #[pymodule_export]
    use super::published::{GateSum, sums_here, sums_in};
    #[pymodule_export]
    use super::reports::{ControllerReport, Pressure, SignalReport, Transition, Window};
    #[pymodule_export]
    use super::signal::Signal;
    #[pymodule_export]
    use super::simulate::{oracle_degrading, oracle_erlang_b, oracle_thresholds, simulate};
    #[pymodule_export]
    use super::stats::{LimitChange, Stats};
    #[pymodule_export]
    use super::throttle::Throttle;
}
