//! What a bottleneck can do, from measurements of it. Pure.

mod least_squares;
mod usl;

pub use usl::{Point, Usl, UslError, UslFit};
