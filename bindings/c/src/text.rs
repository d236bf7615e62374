//! Error texts, in a buffer of the caller's.

#![allow(unsafe_code)]

use std::ffi::c_char;

/// Writes `text` into a buffer of `capacity` bytes, cut at a character if it is too long, and ends it with
/// NUL. Without a buffer nothing is written.
///
/// # Safety
/// `buffer` is NULL or points at `capacity` bytes.
pub(crate) unsafe fn write(buffer: *mut c_char, capacity: usize, text: &str) {
    if buffer.is_null() || capacity == 0 {
        return;
    }
    let length = fitting(text, capacity - 1);
    // SAFETY: at most `capacity` bytes, which the caller says are there.
    unsafe {
        buffer.copy_from_nonoverlapping(text.as_ptr().cast(), length);
        buffer.add(length).write(0);
    }
}

/// How many bytes of `text` fit into `room` without cutting a character.
fn fitting(text: &str, room: usize) -> usize {
    let mut length = text.len().min(room);
    while !text.is_char_boundary(length) {
        length -= 1;
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_not_cut() {
        assert_eq!(fitting("aé", 3), 3);
        assert_eq!(fitting("aé", 2), 1);
        assert_eq!(fitting("aé", 0), 0);
    }
}
