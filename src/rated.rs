//! Admission where there is a rate, besides the limit.
//!
//! The limit decides first, and then the rate is looked at, so that a full gate uses nothing of it. The word is
//! taken before the rate is: that way both are had or neither. Somebody else may take the rate between the look
//! and the swap; what was taken of the word is then put back as by a release, and only the refusal is
//! counted. Until then a third may be told that the gate is full.
//!
//! A gate without a rate pays nothing: where there is one, or the gate measures, the short way in is closed by thresholds of 0, and who
//! does not get in there looks for another (`admission`). Which of the two was found is settled by the word's
//! generation, like any configuration.

use crate::admission::Inner;
use crate::control::Control;
use crate::priority::Priority;
use crate::rate::{Rate, Settings};
use crate::shard::Fallback;
use crate::shed::{Reason, RetryAfter, Shed};
use crate::state::Flags;
use crate::word::{Taken, View};

impl Inner {
    /// As `decide`, with the rate, and with the time where the gate measures. The clock is read before any swap, unless
    /// it was already.
    pub(crate) fn decide_rated(
        &self,
        priority: Priority,
        fallback: Fallback,
        weight: u32,
        read_ns: Option<u64>,
        measured_ns: &mut Option<u64>,
    ) -> Result<Taken, Shed> {
        let state = &*self.state;
        let mut now_ns = measured_ns.or(read_ns);
        let mut view = self.word.view(state);
        loop {
            let threshold = state.config.threshold(priority.level());
            if view.closed() || !view.fits(weight, threshold) {
                return Err(self.shed(view, priority, weight));
            }
            // Read after the word, as the threshold is: by now there may be no rate any more, or a controller.
            let flags = state.config.flags();
            if flags.has(Flags::MEASURED) && measured_ns.is_none() {
                *measured_ns = Some(self.now_of_entry());
                now_ns = *measured_ns;
            }
            let mut offer = None;
            if flags.has(Flags::RATED) {
                let now_ns = *now_ns.get_or_insert_with(|| self.clock.now_ns());
                offer = state.rate.look(now_ns, weight);
                if offer.is_none() {
                    return Err(self.shed_by_rate(view, priority, weight));
                }
            }
            match self.word.try_take(state, view, weight) {
                Ok(taken) => {
                    if offer.is_some_and(|offer| !state.rate.take(offer, weight)) {
                        self.undo(taken, priority, fallback);
                        return Err(self.shed_by_rate(view, priority, weight));
                    }
                    state.note_high_water(view.in_flight() + weight);
                    if measured_ns.is_some() {
                        state.note_highest(view.in_flight() + weight);
                    }
                    return Ok(taken);
                }
                Err(now) => view = now,
            }
        }
    }

    fn shed_by_rate(&self, view: View, priority: Priority, weight: u32) -> Shed {
        let limit = self.state.config.limit();
        Shed { reason: Reason::Rate, priority, weight, in_flight: view.in_flight(), limit }
    }

    /// Puts back what was taken for nothing.
    #[cold]
    fn undo(&self, taken: Taken, priority: Priority, fallback: Fallback) {
        let left = self.put_back(taken);
        if left.missing > 0 {
            // A bare exit has taken it meanwhile, which counted a release: of this, then.
            self.count_admitted(priority, fallback, left.missing);
            if self.is_measured() {
                self.flow(i64::from(left.missing), self.clock.now_ns(), None);
            }
            self.make_up_for(left.missing);
        }
        self.notify_if(left);
    }

    /// For how long the rate alone keeps a request away.
    pub(crate) fn rate_wait(&self, now_ns: u64, weight: u32) -> RetryAfter {
        if self.state.config.flags().has(Flags::RATED) {
            self.state.rate.wait(now_ns, weight)
        } else {
            RetryAfter::Known(std::time::Duration::ZERO)
        }
    }

    /// Takes a rate over, with the control lock held, for whoever then stores the thresholds and publishes. What is
    /// used of the burst stays so from one rate to another; where there was none nothing was counted, and the
    /// burst is full.
    pub(crate) fn store_rate(&self, control: &mut Control, rate: Option<Rate>, now_ns: u64) {
        let state = &*self.state;
        match rate {
            Some(rate) => {
                state.rate.set(Settings::of(rate), now_ns, control.rate.is_some());
                state.config.raise(Flags::RATED_ON);
            }
            None => state.config.lower(Flags::RATED),
        }
        control.rate = rate;
    }
}
