//! Structs that grow. The caller's first member says how large its version is, so that old programs work
//! with new libraries and, as long as they use nothing new, new programs with old libraries.

#![allow(unsafe_code)]

use crate::entry::Answer;
use crate::status::{TIDEGATE_ERR_NULL, TIDEGATE_ERR_VERSION};

/// Larger than any version will be: more is a struct that nobody initialised.
const MOST: usize = 4096;

/// A struct of which there is one version so far: `struct_size` first, and then plain numbers.
///
/// # Safety
/// It is `repr(C)`, starts with a `u32`, and any bytes make a valid one.
pub(crate) unsafe trait Versioned: Copy {}

/// The size that the caller gives its struct.
unsafe fn size<T: Versioned>(pointer: *const T) -> Answer<usize> {
    if pointer.is_null() {
        return Err(TIDEGATE_ERR_NULL);
    }
    // SAFETY: the struct starts with its size, and the caller of `read` or `write` says that it is there.
    let size = unsafe { pointer.cast::<u32>().read_unaligned() } as usize;
    if (size_of::<T>()..=MOST).contains(&size) { Ok(size) } else { Err(TIDEGATE_ERR_VERSION) }
}

/// Reads the caller's struct. What a later version added must be zero: it asks for something that this
/// library cannot do.
///
/// # Safety
/// `pointer` is NULL or points at as many bytes as its first member says.
pub(crate) unsafe fn read<T: Versioned>(pointer: *const T) -> Answer<T> {
    // SAFETY: the caller's promise, here and below.
    let size = unsafe { size(pointer) }?;
    let later = unsafe {
        std::slice::from_raw_parts(pointer.cast::<u8>().add(size_of::<T>()), size - size_of::<T>())
    };
    if later.iter().any(|&byte| byte != 0) {
        return Err(TIDEGATE_ERR_VERSION);
    }
    // SAFETY: `Versioned` says that any bytes will do.
    Ok(unsafe { pointer.read_unaligned() })
}

/// Fills the caller's struct by `fill`, which gets its size. What a later version added becomes zero.
///
/// # Safety
/// `pointer` is NULL or points at as many bytes as its first member says.
pub(crate) unsafe fn write<T: Versioned>(pointer: *mut T, fill: impl FnOnce(u32) -> T) -> Answer {
    // SAFETY: the caller's promise, here and below.
    let size = unsafe { size(pointer) }?;
    #[allow(clippy::cast_possible_truncation)] // at most `MOST`
    let value = fill(size as u32);
    unsafe {
        pointer.write_unaligned(value);
        pointer.cast::<u8>().add(size_of::<T>()).write_bytes(0, size - size_of::<T>());
    }
    Ok(())
}
