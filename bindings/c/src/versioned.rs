//! Structs that grow. The caller's first member says how large its version is, so that old programs work
//! with new libraries and, as long as they use nothing new, new programs with old libraries.

#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use crate::entry::Answer;
use crate::status::{TIDEGATE_ERR_NULL, TIDEGATE_ERR_VERSION};

/// Larger than any version will be: more is a struct that nobody initialised.
const MOST: usize = 4096;

/// A struct of which there may be several versions: `struct_size` first, and then plain numbers, of which zero
/// asks for nothing.
///
/// # Safety
/// It is `repr(C)`, starts with a `u32`, and any bytes make a valid one.
pub(crate) unsafe trait Versioned: Copy {
    /// How large each version was before it grew.
    const OLDER: &[usize] = &[];
}

/// The size that the caller gives its struct.
unsafe fn size<T: Versioned>(pointer: *const T) -> Answer<usize> {
    if pointer.is_null() {
        return Err(TIDEGATE_ERR_NULL);
    }
    // SAFETY: the struct starts with its size, and the caller of `read` or `write` says that it is there.
    let size = unsafe { pointer.cast::<u32>().read_unaligned() } as usize;
    let known = (size_of::<T>()..=MOST).contains(&size) || T::OLDER.contains(&size);
    if known { Ok(size) } else { Err(TIDEGATE_ERR_VERSION) }
}

/// Reads the caller's struct. What its version has not is zero. What a later version added must be zero: it asks
/// for something that this library cannot do.
///
/// # Safety
/// `pointer` is NULL or points at as many bytes as its first member says.
pub(crate) unsafe fn read<T: Versioned>(pointer: *const T) -> Answer<T> {
    // SAFETY: the caller's promise, here and below.
    let size = unsafe { size(pointer) }?;
    let common = size.min(size_of::<T>());
    let later = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>().add(common), size - common) };
    if later.iter().any(|&byte| byte != 0) {
        return Err(TIDEGATE_ERR_VERSION);
    }
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: both have so many bytes, and `Versioned` says that any bytes will do.
    unsafe {
        value.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(pointer.cast(), common);
        Ok(value.assume_init())
    }
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
    let common = size.min(size_of::<T>());
    unsafe {
        pointer.cast::<u8>().copy_from_nonoverlapping((&raw const value).cast(), common);
        pointer.cast::<u8>().add(common).write_bytes(0, size - common);
    }
    Ok(())
}
