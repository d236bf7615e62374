//! What a file does with a gate that is in use: changes it as a whole, and closes it for as long as it has it no
//! more.
//!
//! All that a file says of a gate becomes true in one step, under the lock of the setters and with one change of
//! the word: no admission rests on a limit of one file and a threshold of another once this has returned, as with
//! a single setter (see `word`).

use crate::gate::Gate;

impl Gate {
    /// Closes the gate until [`reinstate`](Self::reinstate); whether this call closed it.
    pub(crate) fn withdraw(&self) -> bool {
        let _serialised = self.inner.cold().control.lock();
        self.inner.withdraw()
    }

    /// Opens a gate that was withdrawn; `false` where its owner closed it, too, for good.
    pub(crate) fn reinstate(&self) -> bool {
        let _serialised = self.inner.cold().control.lock();
        self.inner.reinstate()
    }
}

/// For the models in `tests/loom`.
#[cfg(tidegate_loom)]
impl Gate {
    #[doc(hidden)]
    #[allow(clippy::must_use_candidate)]
    pub fn model_withdraw(&self) -> bool {
        self.withdraw()
    }

    #[doc(hidden)]
    #[allow(clippy::must_use_candidate)]
    pub fn model_reinstate(&self) -> bool {
        self.reinstate()
    }
}

#[cfg(feature = "file")]
mod settings {
    use std::time::Duration;

    use crate::admission::Inner;
    use crate::control::Control;
    use crate::controlled::Steered;
    use crate::controller::{Bounds, Kind};
    use crate::gate::Gate;
    use crate::monitor::Watchlist;
    use crate::priority::{Priority, Thresholds};
    use crate::rate::Rate;
    use crate::state::Flags;

    /// What can be changed of a gate in use.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct Settings {
        pub(crate) limit: u32,
        pub(crate) thresholds: Thresholds,
        pub(crate) rate: Option<Rate>,
        pub(crate) objective: Option<Duration>,
        /// As it was configured, whatever `set_limit` made of it. Then `limit` is where it starts, not where it is.
        pub(crate) controller: Option<(Kind, Bounds)>,
        pub(crate) default_priority: Priority,
        pub(crate) enforce: bool,
        pub(crate) signals: Watchlist,
    }

    impl Gate {
        /// Makes the gate what `to` says, which was checked, and returns what it was before. A controller that is
        /// configured as before goes on; another one starts at its prior.
        pub(crate) fn configure(&self, to: &Settings, cause: &str) -> Settings {
            let mut to = to.clone();
            to.controller = to.controller.map(|(kind, bounds)| (kind, bounds.for_gate(to.objective)));
            let inner = &*self.inner;
            let config = &inner.state.config;
            let now_ns = inner.clock.now_ns(); // somebody else's code: not under the lock
            let mut control = inner.cold().control.lock();
            let before = self.settings_of(&control);
            // Nobody but the program moves a fixed one, and what the file says comes after that.
            let fixed = to.controller.filter(|(kind, _)| *kind == Kind::Fixed);
            let strayed = fixed.is_some_and(|(_, bounds)| bounds.prior() != control.limit);
            if before == to && !strayed {
                return before;
            }
            let anew = before.controller != to.controller || strayed;
            if let Some((kind, bounds)) = to.controller.filter(|_| anew) {
                control.steered = Some(Steered::new(kind, bounds, now_ns));
            } else if to.controller.is_none() {
                control.steered = None;
            }
            let limit = match to.controller {
                Some((_, bounds)) if anew => bounds.prior(),
                Some(_) => control.limit,
                None => to.limit,
            };
            if control.limit != limit {
                control.set_limit(limit, Some(cause), now_ns);
                inner.state.causes.count(Some(cause));
            }
            control.objective = to.objective;
            config.store_objective(to.objective);
            if to.controller.is_some() || to.objective.is_some() {
                inner.measure(&control, now_ns);
            }
            control.thresholds = to.thresholds;
            control.default_priority = to.default_priority;
            if before.rate != to.rate {
                inner.store_rate(&mut control, to.rate, now_ns);
            }
            // What is watched no more is dropped by whoever gets `before`, without the lock.
            if before.signals != to.signals {
                inner.store_signals(&mut control, &to.signals, now_ns);
            }
            if before.enforce != to.enforce {
                inner.store_enforce(to.enforce);
            }
            config.store_default_priority(to.default_priority);
            control.store_thresholds(config);
            inner.word.publish(&inner.state);
            if anew {
                inner.steer_from_here(&mut control, now_ns);
            }
            before
        }

        /// What [`configure`](Self::configure) would change.
        pub(crate) fn settings(&self) -> Settings {
            self.settings_of(&self.inner.cold().control.lock())
        }

        fn settings_of(&self, control: &Control) -> Settings {
            let controller = control.steered.map(|steered| steered.configured());
            Settings {
                limit: controller.map_or(control.limit, |(_, bounds)| bounds.prior()),
                thresholds: control.thresholds,
                rate: control.rate,
                objective: control.objective,
                controller,
                default_priority: control.default_priority,
                enforce: self.enforce(),
                signals: control.signals.clone(),
            }
        }

        /// Whether it measures how long permits are held, which stays as it was built.
        pub(crate) fn is_timed(&self) -> bool {
            self.inner.timing
        }
    }

    impl Inner {
        /// With the lock held: from now on entries and exits are timed. What is inside already was not counted in, so it
        /// is counted in here; the word says what that is, since who swaps after its change has come by the long way.
        ///
        /// Not exact: who comes or goes at the very moment may be counted twice or not at all, and what the occupancy says
        /// is off by that weight from then on. Gates that are built so are exact.
        fn measure(&self, control: &Control, now_ns: u64) {
            if self.state.config.raise(Flags::MEASURED).has(Flags::MEASURED) {
                return;
            }
            control.store_thresholds(&self.state.config);
            let inside = self.word.publish(&self.state).in_flight();
            self.flow(i64::from(inside), now_ns, None);
        }
    }
}

#[cfg(feature = "file")]
pub(crate) use settings::Settings;

#[cfg(all(test, feature = "file", not(tidegate_loom)))]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::clock::ManualClock;
    use crate::controller::{Bounds, Kind};
    use crate::outcome::Outcome;
    use crate::priority::Priority;

    const SECOND: u64 = 1_000_000_000;

    fn gate() -> (Gate, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::new(0));
        (Gate::builder("db", 4).clock(clock.clone()).build().expect("valid"), clock)
    }

    fn with(gate: &Gate, kind: Kind, bounds: Bounds) -> Settings {
        Settings { controller: Some((kind, bounds)), ..gate.settings() }
    }

    fn bounds(prior: u32) -> Bounds {
        Bounds::new(1, 100, prior).expect("valid")
    }

    fn serve(gate: &Gate, clock: &ManualClock, seconds: u64, outcome: Outcome) {
        for _ in 0..=10 * seconds {
            let ticket = gate.take(Priority::Critical).expect("fits");
            clock.advance(SECOND / 10);
            gate.put(ticket, outcome);
        }
    }

    #[test]
    fn a_controller_comes_stays_changes_and_goes() {
        let (gate, clock) = gate();
        gate.configure(&with(&gate, Kind::Aimd, bounds(20)), "file");
        assert_eq!(gate.limit(), 20);
        assert_eq!(gate.limit_history().last().expect("one").cause.as_deref(), Some("file"));
        serve(&gate, &clock, 2, Outcome::Overload);
        assert_eq!(gate.limit(), 16, "18, then 16.2");
        // The same once more, with something else: it goes on.
        let same = Settings { enforce: false, limit: 7, ..with(&gate, Kind::Aimd, bounds(20)) };
        gate.configure(&same, "file");
        assert_eq!((gate.limit(), gate.controller().expect("there").looks), (16, 2));
        gate.set_limit(40, None).expect("within");
        gate.configure(&with(&gate, Kind::Aimd, bounds(20)), "file");
        assert_eq!(gate.limit(), 40, "what was set by hand stays, too");
        // Another one starts at its prior.
        gate.configure(&with(&gate, Kind::Vegas, bounds(30)), "file");
        let report = gate.controller().expect("there");
        assert_eq!((gate.limit(), report.kind, report.looks), (30, Kind::Vegas, 0));
        // None: the limit of the file, and nobody moves it.
        gate.configure(&Settings { controller: None, limit: 9, ..gate.settings() }, "file");
        assert!(gate.controller().is_none());
        serve(&gate, &clock, 5, Outcome::Overload);
        assert_eq!((gate.limit(), gate.set_limit(500, None).map(|change| change.to)), (9, Ok(500)));
    }

    /// Else those who are told of moves take the next controller's for what they have heard.
    #[test]
    fn moves_are_counted_on_when_a_controller_follows_another() {
        let (gate, clock) = gate();
        gate.configure(&with(&gate, Kind::Aimd, bounds(20)), "file");
        serve(&gate, &clock, 3, Outcome::Overload);
        let told = gate.controller_moves();
        assert_eq!(told, gate.controller().expect("there").moves);
        assert!(told >= 2, "{told}");
        gate.configure(&with(&gate, Kind::Aimd, bounds(40)), "file");
        assert_eq!((gate.controller_moves(), gate.controller_moves_after(told).len()), (told, 0));
        serve(&gate, &clock, 1, Outcome::Overload);
        assert_eq!((gate.controller_moves(), gate.controller().expect("there").moves), (told + 1, 1));
        let last = gate.limit_history().pop().expect("it moved");
        assert_eq!((last.from, gate.controller_moves_after(told)), (40, vec![last]));
        // Nor does the number go back where there is none meanwhile.
        gate.configure(&Settings { controller: None, ..gate.settings() }, "file");
        assert_eq!(gate.controller_moves(), told + 1);
    }

    #[test]
    fn the_objective_is_the_controllers_too_and_another_one_starts_it_anew() {
        let (gate, _clock) = gate();
        let objective = |ms| Some(Duration::from_millis(ms));
        gate.configure(
            &Settings { objective: objective(50), ..with(&gate, Kind::Goodput, bounds(20)) },
            "file",
        );
        let report = gate.controller().expect("there");
        assert_eq!((report.objective, report.bounds.objective_seconds()), (objective(50), Some(0.05)));
        gate.set_limit(30, None).expect("within");
        gate.configure(
            &Settings { objective: objective(50), ..with(&gate, Kind::Goodput, bounds(20)) },
            "file",
        );
        assert_eq!(gate.limit(), 30);
        gate.configure(
            &Settings { objective: objective(60), ..with(&gate, Kind::Goodput, bounds(20)) },
            "file",
        );
        assert_eq!((gate.limit(), gate.objective()), (20, objective(60)));
    }

    #[test]
    fn what_is_inside_when_measuring_begins_is_counted_in() {
        let (gate, clock) = gate();
        let ticket = gate.take(Priority::Critical).expect("fits");
        gate.enter(None).expect("fits");
        clock.advance(SECOND);
        gate.configure(&Settings { objective: Some(Duration::from_secs(1)), ..gate.settings() }, "file");
        let begun = gate.reading().expect("at rest");
        clock.advance(SECOND);
        assert!(gate.exit(Outcome::Success));
        clock.advance(SECOND);
        gate.put(ticket, Outcome::Success);
        clock.advance(SECOND);
        let window = gate.reading().expect("at rest").window_since(&begun);
        assert!((window.in_flight_seconds - 3.0).abs() < 1e-9, "{window:?}");
        assert_eq!(window.completions, 1, "of the ticket nobody knows when it came");
    }
}
