//! What the linker has to know of the shared library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    // The number is TIDEGATE_ABI_VERSION: programs find no library that speaks another version.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtidegate.so.1");
    // A thread's destructors and the fork handlers are code of this library, so it cannot be unloaded.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
