//! What moves a gate's limit: the arguments.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use tidegate::controller::{Bounds, Choice, Kind};

use crate::arguments;
use crate::names::config_error_text;

type Any<'py> = Bound<'py, PyAny>;

/// The keywords of a gate that say how its limit comes about.
pub(crate) struct Limits<'a, 'py> {
    pub(crate) limit: Option<&'a Any<'py>>,
    pub(crate) controller: Option<&'a Any<'py>>,
    pub(crate) min: Option<&'a Any<'py>>,
    pub(crate) max: Option<&'a Any<'py>>,
    pub(crate) prior: Option<&'a Any<'py>>,
    pub(crate) ceiling: Option<&'a Any<'py>>,
}

impl Limits<'_, '_> {
    /// The limit to begin with, and who moves it within which bounds.
    pub(crate) fn read(&self, py: Python<'_>) -> PyResult<(u32, Option<(Kind, Bounds)>)> {
        let bounds = [("min", self.min), ("max", self.max), ("prior", self.prior), ("ceiling", self.ceiling)];
        let Some(controller) = self.controller else {
            if let Some((name, given)) = bounds.iter().find_map(|(name, given)| Some((name, (*given)?))) {
                let text = format!("{name} needs a controller, got {} without one", arguments::shown(given));
                return Err(config_error_text(py, &text));
            }
            let limit = self.limit.ok_or_else(|| {
                PyTypeError::new_err("a gate needs a limit, or a controller that finds one")
            })?;
            return Ok((arguments::limit(limit)?, None));
        };
        let kind = kind(controller)?;
        let limit = self.limit.map(arguments::limit).transpose()?;
        let [min, max, prior, ceiling] =
            bounds.map(|(name, given)| given.map(|given| arguments::whole_limit(name, given)).transpose());
        let choice = Choice { min: min?, max: max?, ceiling: ceiling?, prior: prior? };
        let bounds = choice.bounds(limit).map_err(|error| config_error_text(py, &error.to_string()))?;
        Ok((bounds.prior(), Some((kind, bounds))))
    }
}

fn kind(value: &Any<'_>) -> PyResult<Kind> {
    let name = value.cast::<PyString>().map_err(|_| arguments::wrong_type("controller", "a str", value))?;
    let name = name.to_string_lossy();
    Kind::from_name(&name).ok_or_else(|| {
        let all = Kind::ALL.map(Kind::as_str).join(", ");
        config_error_text(value.py(), &format!("controller must be one of {all}, got {name:?}"))
    })
}
