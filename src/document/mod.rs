//! A TOML file, read key by key with everything that is wrong with it noted at its line.
//!
//! Whoever reads a table asks for each key that it knows; what nobody asked for is unknown, and said to be
//! so. A value that breaks its rule is noted and read as absent, so that the rest is read, too, and the
//! person who mends the file sees all of it at once.

mod problem;
mod value;

use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use problem::{FileError, Problem};
pub(crate) use value::{Value, one_of};

/// Reads `text`, the content of the file called `file`, by `read`.
///
/// # Errors
/// [`FileError`] with all that `read` noted, or with what keeps the text from being TOML.
pub(crate) fn read<T>(file: &str, text: &str, read: impl FnOnce(&Table<'_>) -> T) -> Result<T, FileError> {
    let (root, errors) = DeTable::parse_recoverable(text);
    let notes = Notes::new(text);
    for error in errors {
        let span = error.span().unwrap_or_default();
        let message = format!("no TOML: {}, got {:?}", error.message(), notes.written(span.start));
        notes.add(span, "", message);
    }
    // One slip has the parser stumble on for the rest of its line.
    notes.problems.borrow_mut().dedup_by_key(|problem| problem.line);
    if notes.problems.borrow().is_empty() {
        let table = Table::new(String::new(), root.span(), root.get_ref(), &notes);
        let read = read(&table);
        table.refuse_unknown();
        if notes.problems.borrow().is_empty() {
            return Ok(read);
        }
    }
    let mut problems = notes.problems.into_inner();
    problems.sort_by_key(|problem| problem.line);
    Err(FileError { file: file.to_owned(), problems })
}

/// What was found to be wrong so far.
#[derive(Debug)]
struct Notes<'d> {
    text: &'d str,
    /// Where lines end: a file of the wrong kind has as many problems as lines.
    ends: Vec<usize>,
    problems: RefCell<Vec<Problem>>,
}

impl<'d> Notes<'d> {
    fn new(text: &'d str) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| at).collect();
        Self { text, ends, problems: RefCell::default() }
    }

    fn add(&self, span: Range<usize>, key: &str, message: impl Display) {
        let problem = Problem { line: self.line(&span), key: key.to_owned(), message: message.to_string() };
        self.problems.borrow_mut().push(problem);
    }

    /// The line on which `span` begins.
    fn line(&self, span: &Range<usize>) -> usize {
        self.ends.partition_point(|&end| end < span.start) + 1
    }

    /// What is written on the line of `at`, as far as a message shows it.
    fn written(&self, at: usize) -> String {
        let Some((before, after)) = self.text.split_at_checked(at) else {
            return String::new();
        };
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let end = at + after.find('\n').unwrap_or(after.len());
        cut(self.text[start..end].trim())
    }
}

/// How much of the file a message shows.
const SHOWN: usize = 60;

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// A table of the file.
#[derive(Debug)]
pub(crate) struct Table<'d> {
    key: String,
    span: Range<usize>,
    entries: &'d DeTable<'d>,
    notes: &'d Notes<'d>,
    known: RefCell<Vec<&'d str>>,
    /// Where keys are names, any is known.
    any_known: Cell<bool>,
}

impl<'d> Table<'d> {
    fn new(key: String, span: Range<usize>, entries: &'d DeTable<'d>, notes: &'d Notes<'d>) -> Self {
        Self { key, span, entries, notes, known: RefCell::default(), any_known: Cell::default() }
    }

    /// The whole key of this table, as `gates.db`.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// The line on which it begins.
    pub(crate) fn line(&self) -> usize {
        self.notes.line(&self.span)
    }

    /// Notes that the table as a whole breaks a rule.
    pub(crate) fn refuse(&self, message: impl Display) {
        self.notes.add(self.span.clone(), &self.key, message);
    }

    /// Whether there is something at `key`.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// What `key` has, if anything.
    pub(crate) fn value(&self, key: &'d str) -> Option<Value<'d>> {
        self.known.borrow_mut().push(key);
        let (_, value) = self.entries.get_key_value(key)?;
        Some(self.named(key, value))
    }

    /// What `key` has, by `rule`: `None` where it has nothing, or what breaks the rule, which is noted.
    pub(crate) fn read<T, E: Display>(
        &self,
        key: &'d str,
        rule: impl FnOnce(&Value<'d>) -> Result<T, E>,
    ) -> Option<T> {
        self.value(key)?.read(rule)
    }

    /// As [`read`](Self::read), where the absence is noted, too.
    pub(crate) fn need<T, E: Display>(
        &self,
        key: &'d str,
        rule: impl FnOnce(&Value<'d>) -> Result<T, E>,
    ) -> Option<T> {
        if !self.has(key) {
            self.refuse(format_args!("{key} is missing"));
        }
        self.read(key, rule)
    }

    /// The table at `key`, by `read`. What `read` did not ask for is noted as unknown.
    pub(crate) fn table<T>(&self, key: &'d str, read: impl FnOnce(&Table<'d>) -> T) -> Option<T> {
        self.value(key)?.table(read)
    }

    /// Each table of the array at `key`, by `read`.
    pub(crate) fn tables<T>(&self, key: &'d str, mut read: impl FnMut(&Table<'d>) -> T) -> Vec<T> {
        let array = |value: &Value<'d>| {
            value.array().map_err(|_| value.not_a(&format!("an array of tables, each [[{}]]", value.key())))
        };
        let Some(values) = self.read(key, array) else {
            return Vec::new();
        };
        values.iter().filter_map(|value| value.table(&mut read)).collect()
    }

    /// All entries of a table whose keys are names, in the file's order.
    pub(crate) fn named_values(&self) -> Vec<(&'d str, Value<'d>)> {
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        self.any_known.set(true);
        entries.into_iter().map(|(key, value)| (&**key.get_ref(), self.named(key.get_ref(), value))).collect()
    }

    fn named(&self, key: &str, value: &'d Spanned<DeValue<'d>>) -> Value<'d> {
        let part = if is_bare(key) { key.to_owned() } else { format!("{key:?}") };
        let key = if self.key.is_empty() { part } else { format!("{}.{part}", self.key) };
        Value::new(key, value, self.notes)
    }

    fn refuse_unknown(&self) {
        if self.any_known.get() {
            return;
        }
        let known = self.known.borrow();
        for key in self.entries.keys() {
            if known.contains(&&**key.get_ref()) {
                continue;
            }
            let mut allowed = known.clone();
            allowed.sort_unstable();
            allowed.dedup();
            let place = if self.key.is_empty() { "the file" } else { &*self.key };
            let message = format!("unknown key {:?}; {place} takes {}", key.get_ref(), allowed.join(", "));
            self.notes.add(key.span(), "", message);
        }
    }
}

fn is_bare(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str, by: impl FnOnce(&Table<'_>)) -> Vec<String> {
        let problems = read("f.toml", text, by).map_or_else(|error| error.problems, |()| Vec::new());
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn everything_wrong_is_noted_at_its_line() {
        let text = "size = 'big'\n\n[box]\ncolor = 1\nlid = true\nwidth = -2\n";
        let found = problems(text, |root| {
            assert_eq!(root.read("size", Value::float), None);
            root.table("box", |table| {
                table.read("lid", Value::boolean);
                table.need("colour", Value::string);
                table.read("width", |value| {
                    value.integer().and_then(|n| u8::try_from(n).map_err(|_| format!("too small: {n}")))
                });
            });
        });
        assert_eq!(
            found,
            [
                "line 1: size: must be a number, got 'big'",
                "line 3: box: colour is missing",
                "line 4: unknown key \"color\"; box takes colour, lid, width",
                "line 6: box.width: too small: -2",
            ]
        );
    }

    #[test]
    fn what_is_no_toml_says_where() {
        let found = problems("a = 1\nb = = 2\n[c\n", |_| panic!("there is nothing to read"));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].starts_with("line 2: no TOML") && found[1].starts_with("line 3: no TOML"),
            "{found:?}"
        );
        assert!(found[0].ends_with(r#", got "b = = 2""#) && found[1].ends_with(r#", got "[c""#), "{found:?}");
        let twice = problems("a = 1\r\n  a = \"\u{e9}\"\r\n", |_| panic!("there is nothing to read"));
        assert_eq!(twice, ["line 2: no TOML: duplicate key, got \"a = \\\"\u{e9}\\\"\""]);
    }

    /// A megabyte of something else takes a moment to refuse, not a minute: work that grows with the square of the
    /// lines would have this test stand still.
    #[test]
    fn a_file_that_is_wrong_in_every_line_is_read_once() {
        let lines = 200_000;
        let found = problems(&"a b\n".repeat(lines), |_| panic!("there is nothing to read"));
        assert_eq!(found.len(), lines);
        assert!(found[lines - 1].starts_with(&format!("line {lines}: no TOML")), "{}", found[lines - 1]);

        let lines: Vec<_> = (0..50_000).map(|at| format!("k{at} = 1\n")).collect();
        let found = problems(&lines.concat(), |root| {
            for (_, value) in root.named_values() {
                value.read(Value::string);
            }
        });
        assert_eq!(found.len(), 50_000);
        assert_eq!(problems(&lines.concat(), |_| ()).len(), 50_000, "all of them unknown");
    }

    #[test]
    fn names_come_in_the_order_of_the_file() {
        let found = problems("[names]\nz = 1\n'a b' = 2\n", |root| {
            root.table("names", |table| {
                let names: Vec<_> = table.named_values().iter().map(|(name, _)| *name).collect();
                assert_eq!(names, ["z", "a b"]);
                for (_, value) in table.named_values() {
                    value.read(Value::string);
                }
            });
        });
        assert_eq!(
            found,
            ["line 2: names.z: must be a string, got 1", "line 3: names.\"a b\": must be a string, got 2"]
        );
    }

    #[test]
    fn a_table_where_several_may_stand_is_told_how() {
        let found = problems("[rules]\na = 1\n", |root| {
            root.tables("rules", |rule| rule.need("a", Value::integer));
        });
        assert_eq!(found, ["line 1: rules: must be an array of tables, each [[rules]], got [rules]"]);
    }

    #[test]
    fn tables_of_an_array_are_numbered_from_one() {
        let found = problems("[[rules]]\na = 1\n[[rules]]\na = []\n", |root| {
            let read = root.tables("rules", |rule| rule.need("a", Value::integer));
            assert_eq!(read, [Some(1), None]);
        });
        assert_eq!(found, ["line 4: rules[2].a: must be a whole number, got []"]);
    }
}
