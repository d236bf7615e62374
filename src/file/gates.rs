//! The gates of one file, and its classifier.
//!
//! A reload is two steps. The file is read and checked as a whole, and the gates that are new in it are built;
//! only then is anything changed, and none of that can fail. What is there already keeps its identity and its
//! counts: a gate is changed in place, each by one change of its word (see `reconfigure`).

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::change::{Change, Difference};
use super::content::Content;
use super::follow::Changes;
use super::{GateTable, forks, read, words};
use crate::GateBuilder;
use crate::classifier::{Classifier, Rule};
use crate::document::FileError;
use crate::gate::Gate;
use crate::priority::Priority;
use crate::sync::Mutex;

type Prepare = dyn Fn(GateBuilder) -> GateBuilder + Send + Sync;

/// The gates that a file has, by name, and its classifier.
///
/// A handle: clones are the same gates, and dropping it closes none of them.
///
/// ```
/// use tidegate::{Gates, Priority};
///
/// let gates = Gates::from_toml("tidegate.toml", "[gates.db]\nlimit = 20")?;
/// let db = gates.gate("db").expect("the file has it");
/// assert!(db.try_admit(Priority::Critical).is_ok());
///
/// let changes = gates.reload_toml("[gates.db]\nlimit = 30")?;
/// assert_eq!(changes[0].to_string(), "gate db: limit 20 -> 30");
/// assert_eq!(db.limit(), 30);
/// # Ok::<(), tidegate::FileError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Gates {
    shared: Arc<Shared>,
}

/// What the clones share.
pub(crate) struct Shared {
    /// What messages call the file.
    file: Box<str>,
    /// Where it is; `None` where its text was given.
    path: Option<PathBuf>,
    prepare: Box<Prepare>,
    /// Held by whoever reloads, from the first look at what is there to the last change of it.
    pub(super) reloading: Mutex<()>,
    pub(super) current: Mutex<Current>,
}

/// What the file came to.
#[derive(Clone, Debug, Default)]
pub(super) struct Current {
    /// Those of the file in its order, then those that it had before.
    entries: Vec<Entry>,
    classifier: Option<Arc<Classifier>>,
    /// How often it came to something.
    reloads: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) gate: Gate,
    /// What the file says of it, or said last.
    pub(super) table: GateTable,
    /// Whether the file has it; otherwise it is withdrawn, and kept in case that the file has it again.
    pub(super) listed: bool,
}

impl Current {
    fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.gate.name() == name)
    }

    fn listed(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.listed)
    }
}

/// From a file.
impl Gates {
    /// The gates of the file at `path`. [`reload`](Self::reload) reads it again, from the same place whatever the
    /// working directory is by then.
    ///
    /// # Errors
    /// [`FileError`] when the file cannot be read, or with everything in it that breaks a rule.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, FileError> {
        Self::load_with(path, |builder| builder)
    }

    /// As [`load`](Self::load). Each gate that the file adds, now or by a reload, is built from what `prepare`
    /// returns: for what a file cannot say, such as [`publish_in`](GateBuilder::publish_in) or a
    /// [`clock`](GateBuilder::clock). It must not use these gates: they are just being made.
    ///
    /// # Errors
    /// As `load`, and when a gate cannot be built from what `prepare` returned.
    pub fn load_with(
        path: impl AsRef<Path>,
        prepare: impl Fn(GateBuilder) -> GateBuilder + Send + Sync + 'static,
    ) -> Result<Self, FileError> {
        let path = path.as_ref();
        let file = path.display().to_string();
        let path = std::path::absolute(path)
            .map_err(|error| FileError::whole(&file, format!("cannot be found: {error}")))?;
        let text = read::text(&path, &file)?;
        Self::new(&file, Some(path), &text, Box::new(prepare))
    }

    /// The gates of `text`, which messages call `file`.
    ///
    /// # Errors
    /// [`FileError`] with everything that breaks a rule.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, FileError> {
        Self::from_toml_with(file, text, |builder| builder)
    }

    /// As [`from_toml`](Self::from_toml), with a `prepare` as [`load_with`](Self::load_with) has it.
    ///
    /// # Errors
    /// As `from_toml`, and when a gate cannot be built from what `prepare` returned.
    pub fn from_toml_with(
        file: &str,
        text: &str,
        prepare: impl Fn(GateBuilder) -> GateBuilder + Send + Sync + 'static,
    ) -> Result<Self, FileError> {
        Self::new(file, None, text, Box::new(prepare))
    }

    fn new(file: &str, path: Option<PathBuf>, text: &str, prepare: Box<Prepare>) -> Result<Self, FileError> {
        let shared = Shared {
            file: file.into(),
            path,
            prepare,
            reloading: Mutex::default(),
            current: Mutex::default(),
        };
        let gates = Self { shared: Arc::new(shared) };
        gates.reload_toml(text)?;
        forks::register(&gates.shared);
        Ok(gates)
    }
}

/// What the file has.
impl Gates {
    /// The gate of this name, the same at every call; `None` where the file has none.
    #[must_use]
    pub fn gate(&self, name: &str) -> Option<Gate> {
        let current = self.shared.current.lock();
        current.entry(name).filter(|entry| entry.listed).map(|entry| entry.gate.clone())
    }

    /// The names of the gates, in the file's order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.shared.current.lock().listed().map(|entry| entry.gate.name().to_owned()).collect()
    }

    /// The classifier that the file has now. A reload leaves this one as it is, and makes another.
    #[must_use]
    pub fn classifier(&self) -> Option<Arc<Classifier>> {
        self.shared.current.lock().classifier.clone()
    }

    /// The file, as it was named.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.shared.file
    }

    /// Where the file is; `None` where its text was given.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.shared.path.as_deref()
    }

    /// What gates and rules do, in words, with what is worth a second look.
    #[must_use]
    pub fn explain(&self) -> String {
        let current = self.shared.current.lock().clone();
        words::explain(current.listed(), current.classifier.as_deref())
    }
}

/// Changing it while it is in use.
impl Gates {
    /// Reads the file again and makes its gates what it says now; returns what that changed. Nothing is admitted
    /// above a new limit once this has returned, and no count is lost. A gate that the file has no more is closed
    /// until it has it again. A limit that was set by the program becomes that of the file, too.
    ///
    /// # Errors
    /// [`FileError`] when the file cannot be read, breaks a rule, or wants something else than before of what is
    /// fixed when a gate is made (`timing`). Then nothing was changed.
    pub fn reload(&self) -> Result<Vec<Change>, FileError> {
        let file = &*self.shared.file;
        let Some(path) = &self.shared.path else {
            return Err(FileError::whole(file, "was given as text: there is no file to read again"));
        };
        loop {
            // Read without a lock, which a fork would wait for. If there was another reload meanwhile, it may have
            // read a newer text, which this one must not undo.
            let seen = self.shared.current.lock().reloads;
            let text = read::text(path, file)?;
            let _one_at_a_time = self.shared.reloading.lock();
            if self.shared.current.lock().reloads == seen {
                return self.shared.become_toml(&text);
            }
        }
    }

    /// As [`reload`](Self::reload), from `text`.
    ///
    /// # Errors
    /// As `reload`.
    pub fn reload_toml(&self, text: &str) -> Result<Vec<Change>, FileError> {
        let _one_at_a_time = self.shared.reloading.lock();
        self.shared.become_toml(text)
    }
}

impl Shared {
    /// With `reloading` held.
    fn become_toml(&self, text: &str) -> Result<Vec<Change>, FileError> {
        let before = self.current.lock().clone();
        let content = Content::read(&self.file, text, |name| before.entry(name))?;
        let places = self.places(&content, &before)?;

        let mut changes = Changes::default();
        let mut after = Current {
            entries: Vec::new(),
            classifier: content.classifier.map(Arc::new),
            reloads: before.reloads + 1,
        };
        for (named, place) in content.gates.iter().zip(places) {
            match &place {
                Place::New(gate) => changes.add(gate, Difference::Added),
                Place::Known(entry) => changes.follow(entry, named),
            }
            after.entries.push(Entry { gate: place.into_gate(), table: named.table.clone(), listed: true });
        }
        for entry in &before.entries {
            if after.entry(entry.gate.name()).is_none() {
                changes.withdraw(entry);
                after.entries.push(Entry { listed: false, ..entry.clone() });
            }
        }
        if rules(after.classifier.as_deref()) == rules(before.classifier.as_deref()) {
            after.classifier = before.classifier;
        } else {
            changes.0.push(Change { gate: None, difference: Difference::Classifier });
        }
        *self.current.lock() = after;
        Ok(changes.0)
    }

    /// For each gate of the file the one that is there, or a new one.
    fn places(&self, content: &Content, before: &Current) -> Result<Vec<Place>, FileError> {
        let mut problems = Vec::new();
        let mut places = Vec::new();
        for named in &content.gates {
            if let Some(entry) = before.entry(&named.name) {
                places.push(Place::Known(entry.clone()));
                continue;
            }
            match (self.prepare)(named.table.builder(&named.name)).build() {
                Ok(gate) => places.push(Place::New(gate)),
                Err(error) => problems.push(named.problem(error.to_string())),
            }
        }
        if problems.is_empty() {
            Ok(places)
        } else {
            Err(FileError { file: self.file.to_string(), problems })
        }
    }
}

/// Where a gate of the file comes from.
enum Place {
    New(Gate),
    Known(Entry),
}

impl Place {
    fn into_gate(self) -> Gate {
        match self {
            Self::New(gate) | Self::Known(Entry { gate, .. }) => gate,
        }
    }
}

/// What two classifiers that do the same have in common.
fn rules(classifier: Option<&Classifier>) -> Option<(&[Rule], Option<Priority>)> {
    classifier.map(|classifier| (classifier.rules(), classifier.default_priority()))
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("file", &self.file)
            .field("current", &self.current)
            .finish_non_exhaustive()
    }
}
