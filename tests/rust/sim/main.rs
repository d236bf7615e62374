//! The simulator: against closed forms, against an independent simulation, against itself.

#![allow(clippy::cast_precision_loss)] // numbers of a test are small

#[path = "../common/mod.rs"]
mod common;

mod article;
mod closed_forms;
mod files;
mod fuzz;
mod rules;
mod scenarios;
mod signals;
mod steps;
mod storm;
mod sums;
