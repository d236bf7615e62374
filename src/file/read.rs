//! The text of a file, or a sentence that says why there is none.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::document::{FileError, Problem};

/// The largest file, in bytes: a thousand gates take a tenth of it.
const MOST: u64 = 1 << 20;

/// The text of the file at `path`, which messages call `name`.
pub(super) fn text(path: &Path, name: &str) -> Result<String, FileError> {
    let refused = |error: std::io::Error| FileError::whole(name, format!("cannot be read: {error}"));
    let file = File::open(path).map_err(refused)?;
    if file.metadata().map_err(refused)?.is_dir() {
        return Err(FileError::whole(name, "is a directory, not a file"));
    }
    let mut bytes = Vec::new();
    // Not what the system says is its size: a device has none, and no end either.
    file.take(MOST + 1).read_to_end(&mut bytes).map_err(refused)?;
    if bytes.len() as u64 > MOST {
        return Err(FileError::whole(name, format!("is larger than {MOST} bytes, the most that is read")));
    }
    toml_text(name, bytes)
}

/// The text that the content of `file` is, for bindings to languages whose texts are bytes.
///
/// # Errors
/// [`FileError`] where it is no UTF-8, with the line.
pub fn toml_text(file: &str, content: Vec<u8>) -> Result<String, FileError> {
    String::from_utf8(content).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.split(|&byte| byte == b'\n').count();
        let message = "is not UTF-8, as TOML has to be".to_owned();
        FileError { file: file.to_owned(), problems: vec![Problem { line, key: String::new(), message }] }
    })
}
