//! Tells the crate whether this is a free-threaded Python (`cfg(Py_GIL_DISABLED)`).

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
