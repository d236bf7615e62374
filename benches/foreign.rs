//! The same work in another language, from a shared library that `scripts/bench_libraries.sh` compiled.

#![allow(unsafe_code)]

use std::ffi::{CString, c_int, c_void};

/// A loop of pairs that another language compiled.
pub struct Pairs(unsafe extern "C" fn(u64));

impl Pairs {
    /// Loads the library that an environment variable names, and has it make its gate. `None` without the
    /// variable.
    ///
    /// # Panics
    /// When the library cannot be used: a figure that is asked for is not left out.
    #[must_use]
    pub fn load(variable: &str) -> Option<Self> {
        let path = std::env::var(variable).ok()?;
        let name = CString::new(path.as_str()).expect("a path without NUL");
        // SAFETY: a library of ours, whose constructors are the C library's own.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
        assert!(!library.is_null(), "{path} cannot be loaded");
        let symbol = |name: &std::ffi::CStr| {
            // SAFETY: an open library and a string that ends with NUL.
            let symbol = unsafe { libc::dlsym(library, name.as_ptr()) };
            assert!(!symbol.is_null(), "{path} has no {name:?}");
            symbol
        };
        // SAFETY: benches/pairs.* declare them so.
        let (open, pairs) = unsafe {
            (
                std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(symbol(c"tidegate_bench_open")),
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn(u64)>(symbol(
                    c"tidegate_bench_pairs",
                )),
            )
        };
        assert_eq!(open(), 0, "{path} cannot make its gate");
        Some(Self(pairs))
    }

    /// Admits and releases `n` times.
    pub fn run(&self, n: u64) {
        // SAFETY: the gate was made by `load`, and the library is never unloaded.
        unsafe { (self.0)(n) };
    }
}
