//! A signal that is measured by whoever asks when its last reading is no longer good.
//!
//! One asker at a time takes the source out from under the lock and measures with no lock held; the others find it
//! gone and are given what was read before. So user code can do what it likes, also ask the same signal. A
//! source that panics has failed.
//!
//! What a reading costs is measured, too, and the next one is at least [`COST_SHARE`] times that away: however
//! slow a source is, all of its readings take at most a hundredth of one thread.
//!
//! A reading that fails leaves the one before, until that is [`KEPT`] times as old as it was good for. Then it is
//! unknown.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::own::{Own, Probe as OwnProbe, What};
use super::{Cpu, Detail, Kind, Memory, Reading, Resource, Source, Stalls};
use crate::clock::Clock;
use crate::error::ConfigError;
use crate::sync::Mutex;

/// Between two readings lies this much more time than one takes.
const COST_SHARE: u64 = 100;
/// Of how many readings all must fail before the signal is unknown.
const KEPT: u64 = 4;

type Maker = Arc<dyn Fn() -> Box<dyn Source> + Send + Sync>;

/// Where readings come from.
#[derive(Clone)]
enum Origin {
    Pushed,
    Own(What),
    Source(Maker, Option<Kind>),
}

impl Origin {
    fn probe(&self) -> Option<Probe> {
        match self {
            Self::Pushed => None,
            Self::Own(what) => Some(Probe::Own(OwnProbe::new(*what))),
            Self::Source(make, _) => Some(Probe::Source(make())),
        }
    }
}

impl PartialEq for Origin {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Pushed, Self::Pushed) => true,
            (Self::Own(one), Self::Own(other)) => one == other,
            (Self::Source(_, Some(one)), Self::Source(_, Some(other))) => one == other,
            (Self::Source(one, None), Self::Source(other, None)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

/// What is asked for a reading.
enum Probe {
    Own(OwnProbe),
    Source(Box<dyn Source>),
}

impl Probe {
    fn measure(&mut self, now_ns: u64, gate: Option<&dyn Own>) -> (Reading, Duration, Vec<Detail>) {
        match self {
            Self::Own(probe) => {
                let reading = gate.map_or(Reading::UNKNOWN, |gate| probe.read(now_ns, &gate.figures()));
                (reading, Duration::from_secs(1), probe.details())
            }
            Self::Source(source) => (source.read(now_ns), source.good_for(), source.details()),
        }
    }
}

/// A named signal and its latest reading.
pub struct Signal {
    name: Box<str>,
    origin: Origin,
    held: Mutex<Held>,
}

/// What a signal has to show for itself.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The latest reading, if it is still good.
    pub reading: Reading,
    /// How often the source was asked, or a value pushed.
    pub reads: u64,
    /// How often it did not know.
    pub failures: u64,
    /// What the latest reading took.
    pub cost: Duration,
    /// What the source shows beside it.
    pub details: Vec<Detail>,
}

#[derive(Default)]
struct Held {
    probe: Place,
    last: Option<Measured>,
    asked_ns: u64,
    due_ns: u64,
    reads: u64,
    failures: u64,
    cost_ns: u64,
    details: Vec<Detail>,
}

/// Where the probe is.
#[derive(Default)]
enum Place {
    /// Nobody has asked yet.
    #[default]
    Unmade,
    Here(Probe),
    /// Somebody measures.
    Taken,
}

#[derive(Clone, Copy)]
struct Measured {
    reading: Reading,
    at_ns: u64,
    until_ns: u64,
}

impl Measured {
    /// Who asked a moment before somebody else measured may use that; who asks long before it has a clock that
    /// went back.
    fn at(self, now_ns: u64) -> Reading {
        let early_ns = self.at_ns.saturating_sub(now_ns);
        let good = now_ns < self.until_ns && early_ns <= self.until_ns - self.at_ns;
        if good { self.reading } else { Reading::UNKNOWN }
    }
}

impl Held {
    fn at(&self, now_ns: u64) -> Reading {
        self.last.map_or(Reading::UNKNOWN, |last| last.at(now_ns))
    }

    /// The place of the probe, for who has to measure now; taken for whoever has not.
    fn claim(&mut self, now_ns: u64) -> Place {
        if now_ns < self.due_ns && now_ns >= self.asked_ns {
            return Place::Taken;
        }
        std::mem::replace(&mut self.probe, Place::Taken)
    }

    fn keep(&mut self, reading: Reading, at_ns: u64, until_ns: u64) {
        self.reads += 1;
        if reading == Reading::UNKNOWN {
            self.failures += 1;
        } else {
            self.last = Some(Measured { reading, at_ns, until_ns });
        }
    }
}

/// Signals are equal that have the same name and measure the same, whatever they have read.
impl PartialEq for Signal {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.origin == other.origin
    }
}

/// The same signal with nothing seen yet: a builder that is used twice makes two gates, which share nothing.
impl Clone for Signal {
    fn clone(&self) -> Self {
        self.renewed()
    }
}

impl Signal {
    /// A signal that is measured by the source that `make` makes.
    pub fn new<S: Source + 'static>(
        name: impl Into<Box<str>>,
        make: impl Fn() -> S + Send + Sync + 'static,
    ) -> Self {
        Self::with(name.into(), Origin::Source(Arc::new(move || Box::new(make())), None))
    }

    /// A signal of a kind, under the kind's name.
    #[must_use]
    pub fn of(kind: Kind) -> Self {
        Self::named(kind, kind.name())
    }

    /// A signal of a kind, under another name: for several that are pushed.
    pub fn named(kind: Kind, name: impl Into<Box<str>>) -> Self {
        fn source<S: Source + 'static>(make: fn() -> S) -> Maker {
            Arc::new(move || Box::new(make()))
        }
        let maker = match kind {
            Kind::Pushed => return Self::with(name.into(), Origin::Pushed),
            Kind::Latency => return Self::with(name.into(), Origin::Own(What::Latency)),
            Kind::Errors => return Self::with(name.into(), Origin::Own(What::Errors)),
            Kind::Cpu => source(Cpu::new),
            Kind::Memory => source(Memory::new),
            Kind::PsiCpu => source(|| Stalls::new(Resource::Cpu)),
            Kind::PsiMemory => source(|| Stalls::new(Resource::Memory)),
            Kind::PsiIo => source(|| Stalls::new(Resource::Io)),
        };
        Self::with(name.into(), Origin::Source(maker, Some(kind)))
    }

    /// A signal that a function measures. What it answers outside of 0 to 1 is unknown, as None is.
    pub fn function(
        name: impl Into<Box<str>>,
        good_for: Duration,
        function: impl Fn() -> Option<f64> + Send + Sync + 'static,
    ) -> Self {
        let function = Arc::new(function);
        Self::new(name, move || Function { function: Arc::clone(&function), good_for })
    }

    /// A signal whose values are pushed in.
    pub fn pushed(name: impl Into<Box<str>>) -> Self {
        Self::named(Kind::Pushed, name)
    }

    fn with(name: Box<str>, origin: Origin) -> Self {
        Self { name, origin, held: Mutex::new(Held::default()) }
    }

    /// The same signal with nothing read yet: for the child of a fork, in which a thread that was measuring, or
    /// held the lock, does not exist.
    #[must_use]
    pub fn renewed(&self) -> Self {
        Self::with(self.name.clone(), self.origin.clone())
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What kind it is; `None` where it has a source or a function of its own.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        match self.origin {
            Origin::Pushed => Some(Kind::Pushed),
            Origin::Own(What::Latency) => Some(Kind::Latency),
            Origin::Own(What::Errors) => Some(Kind::Errors),
            Origin::Source(_, kind) => kind,
        }
    }

    /// What it says now, measured anew if the last reading is no longer good. What a gate sees of its own is
    /// unknown here, where there is none.
    pub fn reading(&self, clock: &dyn Clock) -> Reading {
        self.reading_of(clock, None)
    }

    /// The same for a signal of this gate.
    pub(crate) fn reading_of(&self, clock: &dyn Clock, gate: Option<&dyn Own>) -> Reading {
        if self.origin == Origin::Pushed {
            return self.held.lock().at(clock.now_ns());
        }
        let now_ns = clock.now_ns();
        let mut held = self.held.lock();
        let place = held.claim(now_ns);
        if matches!(place, Place::Taken) {
            return held.at(now_ns);
        }
        drop(held);

        let mut probe = match place {
            Place::Here(probe) => Some(probe),
            // Somebody else's code, too.
            _ => catch_unwind(AssertUnwindSafe(|| self.origin.probe())).unwrap_or_default(),
        };
        let measure = || probe.as_mut().map(|probe| probe.measure(now_ns, gate));
        let measured = catch_unwind(AssertUnwindSafe(measure)).unwrap_or_default();
        let (reading, good_for, details) =
            measured.unwrap_or((Reading::UNKNOWN, Duration::from_secs(1), Vec::new()));
        let end_ns = clock.now_ns().max(now_ns);
        let cost_ns = end_ns - now_ns;
        let interval_ns = nanos(good_for).max(cost_ns.saturating_mul(COST_SHARE));

        let mut held = self.held.lock();
        held.probe = probe.map_or(Place::Unmade, Place::Here);
        held.asked_ns = now_ns;
        held.due_ns = end_ns.saturating_add(interval_ns);
        held.cost_ns = cost_ns;
        held.details = details;
        held.keep(reading, now_ns, end_ns.saturating_add(interval_ns.saturating_mul(KEPT)));
        held.at(now_ns)
    }

    /// Pushes a value in that is good for some time; after that the signal is unknown until the next one.
    ///
    /// # Errors
    /// [`ConfigError::Pressure`] when it is not a number from 0 to 1; [`ConfigError::SignalMeasured`] when the signal
    /// has a source of its own. Nothing is changed then.
    pub fn push(&self, value: f64, good_for: Duration, clock: &dyn Clock) -> Result<(), ConfigError> {
        if self.origin != Origin::Pushed {
            return Err(ConfigError::SignalMeasured { name: self.name.to_string() });
        }
        let reading = Reading::known(value)?;
        let now_ns = clock.now_ns();
        self.held.lock().keep(reading, now_ns, now_ns.saturating_add(nanos(good_for)));
        Ok(())
    }

    /// When the next reading is due, on the clock of those who asked: `None` where values are pushed in.
    pub fn due_ns(&self) -> Option<u64> {
        (self.origin != Origin::Pushed).then(|| self.held.lock().due_ns)
    }

    /// What is known of it at `now_ns`, without measuring.
    pub fn report(&self, now_ns: u64) -> Report {
        let held = self.held.lock();
        Report {
            reading: held.at(now_ns),
            reads: held.reads,
            failures: held.failures,
            cost: Duration::from_nanos(held.cost_ns),
            details: held.details.clone(),
        }
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal").field("name", &self.name).finish_non_exhaustive()
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

struct Function<F> {
    function: Arc<F>,
    good_for: Duration,
}

impl<F: Fn() -> Option<f64> + Send + Sync> Source for Function<F> {
    fn read(&mut self, _now_ns: u64) -> Reading {
        (self.function)().and_then(|value| Reading::known(value).ok()).unwrap_or(Reading::UNKNOWN)
    }

    fn good_for(&self) -> Duration {
        self.good_for
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests;
