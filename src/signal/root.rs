//! Files as the kernel shows them, below a root that tests replace by a directory of their own.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::PathBuf;

/// More than any of these files has; a host with thousands of mounts has 200 KB of `mountinfo`.
const MOST_BYTES: u64 = 1 << 20;

/// A file that is there but could not be read, or says what it cannot mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failed;

/// What was found: `None` where there is no such file or no such limit.
pub(crate) type Found<T> = Result<Option<T>, Failed>;

/// Where `/proc` and `/sys` are.
#[derive(Clone, Debug)]
pub(crate) struct Root(Option<PathBuf>);

impl Root {
    /// The system's own. Elsewhere than on Linux there is nothing to read, and all is unknown.
    pub(crate) fn system() -> Self {
        Self(cfg!(target_os = "linux").then(|| PathBuf::from("/")))
    }

    /// Those below a directory.
    #[cfg(test)]
    pub(crate) fn at(directory: &std::path::Path) -> Self {
        Self(Some(directory.to_owned()))
    }

    /// The text of the file at an absolute path. A path never leads out of the root.
    pub(crate) fn read(&self, path: &str) -> Found<String> {
        let Some(root) = &self.0 else {
            return Ok(None);
        };
        let mut whole = root.clone();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            if part == ".." {
                return Err(Failed);
            }
            whole.push(part);
        }
        let file = match File::open(whole) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(_) => return Err(Failed),
        };
        let mut bytes = Vec::with_capacity(4096);
        file.take(MOST_BYTES).read_to_end(&mut bytes).map_err(|_| Failed)?;
        String::from_utf8(bytes).map(Some).map_err(|_| Failed)
    }
}
