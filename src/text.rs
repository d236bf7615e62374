//! A short text in shared memory: words, so that any bytes that another process finds there are valid.

use crate::sync::{AtomicU64, Ordering};

const WORD: usize = size_of::<u64>();

/// Up to `8 * WORDS` bytes of UTF-8. One writer; a reader that must see all of it is told by something
/// that the writer stores afterwards.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Text<const WORDS: usize> {
    bytes: AtomicU64,
    words: [AtomicU64; WORDS],
}

impl<const WORDS: usize> Text<WORDS> {
    /// The longest text, in bytes.
    pub(crate) const CAPACITY: usize = WORDS * WORD;

    pub(crate) fn new() -> Self {
        Self { bytes: AtomicU64::new(0), words: std::array::from_fn(|_| AtomicU64::new(0)) }
    }

    /// As much of `text` as fits, in whole characters.
    pub(crate) fn fitting(text: &str) -> &str {
        let mut end = text.len().min(Self::CAPACITY);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        &text[..end]
    }

    /// Stores what [`fits`](Self::fitting). Allocates nothing, for the handlers of a fork.
    pub(crate) fn store(&self, text: &str) {
        let text = Self::fitting(text).as_bytes();
        for (cell, chunk) in self.words.iter().zip(text.chunks(WORD)) {
            let mut word = [0; WORD];
            word[..chunk.len()].copy_from_slice(chunk);
            cell.store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
        self.bytes.store(text.len() as u64, Ordering::Relaxed);
    }

    /// The text, unless what stands there is none.
    pub(crate) fn load(&self) -> Option<String> {
        let length = usize::try_from(self.bytes.load(Ordering::Relaxed)).ok()?;
        let mut bytes: Vec<u8> =
            self.words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect();
        if length > bytes.len() {
            return None;
        }
        bytes.truncate(length);
        String::from_utf8(bytes).ok()
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        let text = Text::<1>::new();
        for (stored, loaded) in
            [("", ""), ("deploy", "deploy"), ("12345678", "12345678"), ("1234567ä", "1234567")]
        {
            text.store(stored);
            assert_eq!(text.load().unwrap(), loaded);
        }
    }

    #[test]
    fn what_is_no_text_is_not_read() {
        let text = Text::<1>::new();
        text.bytes.store(9, Ordering::Relaxed);
        assert_eq!(text.load(), None, "longer than its room");
        text.bytes.store(1, Ordering::Relaxed);
        text.words[0].store(u64::MAX, Ordering::Relaxed);
        assert_eq!(text.load(), None, "not UTF-8");
    }
}
