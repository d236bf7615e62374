//! What is wrong with a file, line by line.

use std::fmt;

/// One thing that is wrong with a file: where, which value, which rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The line, from 1; 0 where it is about the file as a whole, such as one that is not there.
    pub line: usize,
    /// The key, as `gates.db.limit`; empty where the file is no TOML.
    pub key: String,
    /// The rule and the value that breaks it.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// A file that cannot be used: everything that is wrong with it. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct FileError {
    /// The file, as it was named.
    pub file: String,
    /// In the order of their lines; one at least.
    pub problems: Vec<Problem>,
}

impl FileError {
    /// About the file as a whole.
    pub(crate) fn whole(file: &str, message: impl Into<String>) -> Self {
        let problem = Problem { line: 0, key: String::new(), message: message.into() };
        Self { file: file.to_owned(), problems: vec![problem] }
    }
}

/// One problem a line: `FILE, line N: KEY: ...`.
impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            let comma = if problem.line > 0 { "," } else { ":" };
            write!(f, "{}{comma} {problem}", self.file)?;
        }
        Ok(())
    }
}
