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
    use crate::control::Control;
    use crate::gate::Gate;
    use crate::monitor::Watchlist;
    use crate::priority::{Priority, Thresholds};
    use crate::rate::Rate;

    /// What can be changed of a gate in use.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct Settings {
        pub(crate) limit: u32,
        pub(crate) thresholds: Thresholds,
        pub(crate) rate: Option<Rate>,
        pub(crate) default_priority: Priority,
        pub(crate) enforce: bool,
        pub(crate) signals: Watchlist,
    }

    impl Gate {
        /// Makes the gate what `to` says, which was checked, and returns what it was before.
        pub(crate) fn configure(&self, to: &Settings, cause: &str) -> Settings {
            let inner = &*self.inner;
            let config = &inner.state.config;
            let now_ns = inner.clock.now_ns(); // somebody else's code: not under the lock
            let mut control = inner.cold().control.lock();
            let before = self.settings_of(&control);
            if before == *to {
                return before;
            }
            if before.limit != to.limit {
                control.set_limit(to.limit, Some(cause), now_ns);
                inner.state.causes.count(Some(cause));
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
            before
        }

        /// What [`configure`](Self::configure) would change.
        pub(crate) fn settings(&self) -> Settings {
            self.settings_of(&self.inner.cold().control.lock())
        }

        fn settings_of(&self, control: &Control) -> Settings {
            Settings {
                limit: control.limit,
                thresholds: control.thresholds,
                rate: control.rate,
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
}

#[cfg(feature = "file")]
pub(crate) use settings::Settings;
