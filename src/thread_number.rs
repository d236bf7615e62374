//! One number for each thread, zero until it is set.
//!
//! In a program a thread-local variable is one load. In a shared library, as the bindings are, it is a call into
//! the C library, which costs about as much as an atomic operation, and every count needs it. Unless the variable
//! lies in the memory that is laid out when a thread starts (the "initial exec" model): then it is two loads.
//! Nothing in stable Rust asks for that, so where it is known to work it is asked for in assembly; elsewhere it
//! is a `thread_local!`. Measured on a pair through the C ABI: 13.8 ns with it, 15.6 ns without.
//!
//! The C library keeps some of that memory for libraries that are loaded later: 1.6 KB, unless told otherwise by
//! `GLIBC_TUNABLES=glibc.rtld.optional_static_tls=...`. A library with such a variable lies there with all that
//! its threads have of their own, which is about 120 bytes for the Python module, as much as `libgomp` takes.

#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu", not(miri)))]
mod fixed {
    #![allow(unsafe_code)]

    use std::arch::{asm, global_asm};

    /// The variable's name, which another version of this crate in the same program does not have.
    macro_rules! name {
        () => {
            concat!(
                "tidegate_thread_number_",
                env!("CARGO_PKG_VERSION_MAJOR"),
                "_",
                env!("CARGO_PKG_VERSION_MINOR"),
                "_",
                env!("CARGO_PKG_VERSION_PATCH")
            )
        };
    }

    // Eight bytes, zero in every new thread, known to this program or library only.
    global_asm!(
        ".pushsection .tbss.tidegate,\"awT\",@nobits",
        concat!(".globl ", name!()),
        concat!(".hidden ", name!()),
        concat!(".type ", name!(), ", @object"),
        concat!(".size ", name!(), ", 8"),
        ".balign 8",
        concat!(name!(), ": .zero 8"),
        ".popsection",
    );

    #[inline]
    pub(crate) fn get() -> usize {
        let number;
        // SAFETY: reads this thread's variable from above, and nothing else.
        unsafe {
            asm!(
                concat!("mov {number}, qword ptr [rip + ", name!(), "@GOTTPOFF]"),
                "mov {number}, qword ptr fs:[{number}]",
                number = out(reg) number,
                options(nostack, preserves_flags, readonly, pure),
            );
        }
        number
    }

    #[inline]
    pub(crate) fn set(number: usize) {
        // SAFETY: writes this thread's variable from above, and nothing else.
        unsafe {
            asm!(
                concat!("mov {offset}, qword ptr [rip + ", name!(), "@GOTTPOFF]"),
                "mov qword ptr fs:[{offset}], {number}",
                number = in(reg) number,
                offset = out(reg) _,
                options(nostack, preserves_flags),
            );
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu", not(miri))))]
mod plain {
    use std::cell::Cell;

    thread_local! {
        // Without a destructor, so that it can be read until the thread has ended.
        static NUMBER: Cell<usize> = const { Cell::new(0) };
    }

    #[inline]
    pub(crate) fn get() -> usize {
        NUMBER.get()
    }

    #[inline]
    pub(crate) fn set(number: usize) {
        NUMBER.set(number);
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu", not(miri)))]
pub(crate) use fixed::{get, set};
#[cfg(not(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu", not(miri))))]
pub(crate) use plain::{get, set};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_its_own() {
        let before = get();
        set(7);
        let other = std::thread::spawn(|| {
            let fresh = get();
            set(8);
            (fresh, get())
        });
        assert_eq!(other.join().unwrap(), (0, 8));
        assert_eq!(get(), 7);
        set(before);
    }
}
