//! The admission word: one `AtomicU64` that decides who is inside.
//!
//! ```text
//! 63            33 32      30 29     28              0
//! | in flight: 31 | waiting: 3 | closed | generation: 29 |
//! ```
//!
//! - *in flight*: the weight of the permits held now. On top, so that a release is one subtraction
//!   that cannot borrow from anything above it.
//! - *waiting*: one more than the level of the most important waiter, 0 when nobody waits. Unused
//!   until waiting comes; its place is kept.
//! - *closed*: nothing is admitted any more.
//! - *generation*: counts changes of the configuration.
//!
//! # Why no admission rests on an old limit
//!
//! The limit and the thresholds stand beside the word. An admission loads the word (Acquire), then
//! its threshold, decides, and swaps the word it loaded for one with its weight added. A change
//! stores the new thresholds first and then bumps the generation in the word (Release). So:
//!
//! - the bump before the swap in the word's modification order makes the swap fail, and the retry
//!   reads a word that carries the bump and, by Acquire, the thresholds stored before it;
//! - the bump after the swap means that the change had not returned when the admission happened.
//!
//! Once a setter has returned, no admission can rest on the old values. And since the swap succeeds
//! only on the very word that was checked, in flight never exceeds the limit that was checked, not
//! once, not by one. Checking and adding as two steps is the fault every gate in the field has had.
//!
//! Every change of the word is a read-modify-write, so the release sequence is never broken: the
//! Acquire of an admission sees all that every earlier holder did before its Release.
//!
//! The one residue: 2^29 changes of the configuration while one admission is stalled between its
//! load and its swap would repeat a generation.

use crate::state::GateState;
use crate::sync::Ordering;

const GENERATION_MASK: u64 = (1 << 29) - 1;
const CLOSED: u64 = 1 << 29;
const IN_FLIGHT_SHIFT: u32 = 33;

/// A reading of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View(u64);

impl View {
    /// The weight of the permits held.
    pub(crate) fn in_flight(self) -> u32 {
        (self.0 >> IN_FLIGHT_SHIFT) as u32 // 31 bits are left: it fits
    }

    pub(crate) fn closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    pub(crate) fn generation(self) -> u32 {
        (self.0 & GENERATION_MASK) as u32
    }

    /// Whether `weight` more may enter under `threshold`. The whole decision of a gate.
    pub(crate) fn fits(self, weight: u32, threshold: u32) -> bool {
        u64::from(self.in_flight()) + u64::from(weight) <= u64::from(threshold)
    }

    fn plus(self, weight: u32) -> u64 {
        self.0 + (u64::from(weight) << IN_FLIGHT_SHIFT)
    }
}

/// What one admission took from a word, and therefore has to put back: never computed anew from a
/// configuration that may have changed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    weight: u32,
}

impl Taken {
    /// Back from where a ticket kept it. What dry run lets in took nothing, and its ticket says so.
    #[inline]
    pub(crate) fn of(weight: u32) -> Self {
        Self { weight }
    }

    #[inline]
    pub(crate) fn weight(self) -> u32 {
        self.weight
    }
}

/// What a [`Word::put`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    /// Weight that was to be put back and was not there any more. Zero unless the count was
    /// disturbed by bare exits without an entry.
    pub(crate) missing: u32,
    /// The gate is closed and this was the last weight inside: somebody may wait for that.
    pub(crate) drained: bool,
}

/// Which word decides for a gate. The host's word, in shared memory, will be the second arm; every
/// caller already goes through this enum, so a gate's code will not change with it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Word {
    /// The word in this process's own [`GateState`].
    Local,
}

impl Word {
    /// Reads the word; what was published before it may be read after.
    #[inline]
    pub(crate) fn view(self, state: &GateState) -> View {
        match self {
            Self::Local => View(state.hot.word.load(Ordering::Acquire)),
        }
    }

    /// Adds `weight`, if the word is still what `view` saw. On failure, what it is now.
    #[inline]
    pub(crate) fn try_take(self, state: &GateState, view: View, weight: u32) -> Result<Taken, View> {
        match self {
            Self::Local => state
                .hot
                .word
                .compare_exchange_weak(view.0, view.plus(weight), Ordering::Acquire, Ordering::Acquire)
                .map(|_| Taken { weight })
                .map_err(View),
        }
    }

    /// Puts back what was taken: one subtraction. Sound only while every weight in the word belongs
    /// to somebody who puts it back exactly once, which permits guarantee.
    #[inline]
    pub(crate) fn put(self, state: &GateState, taken: Taken) -> Left {
        match self {
            Self::Local => {
                let weight = u64::from(taken.weight) << IN_FLIGHT_SHIFT;
                let before = View(state.hot.word.fetch_sub(weight, Ordering::Release));
                Left { missing: 0, drained: drained(before, taken.weight) }
            }
        }
    }

    /// Puts back as much of `weight` as is there: a checked swap that stops at zero. For bare
    /// exits, which cannot prove that they belong to an entry, and for permits of gates that
    /// have seen bare entries.
    pub(crate) fn put_checked(self, state: &GateState, weight: u32) -> Left {
        match self {
            Self::Local => {
                let mut before = View(state.hot.word.load(Ordering::Relaxed));
                loop {
                    let there = before.in_flight().min(weight);
                    let after = before.0 - (u64::from(there) << IN_FLIGHT_SHIFT);
                    match state.hot.word.compare_exchange_weak(
                        before.0,
                        after,
                        Ordering::Release,
                        Ordering::Relaxed,
                    ) {
                        Ok(_) => {
                            let missing = weight - there;
                            return Left { missing, drained: drained(before, there) };
                        }
                        Err(now) => before = View(now),
                    }
                }
            }
        }
    }

    /// Makes the configuration stored before this call the one every later admission rests on.
    /// Callers serialise their changes. What the word was before.
    #[allow(clippy::must_use_candidate)]
    pub(crate) fn publish(self, state: &GateState) -> View {
        self.bump(state, 0)
    }

    /// Closes the word for good; whether this call did. Closing it again changes nothing.
    pub(crate) fn close(self, state: &GateState) -> bool {
        !self.view(state).closed() && !self.bump(state, CLOSED).closed()
    }

    /// Closes the word for good, also one that is closed: whoever is about to open it finds it changed.
    pub(crate) fn close_anew(self, state: &GateState) -> bool {
        !self.bump(state, CLOSED).closed()
    }

    /// Opens a closed word, unless `ended` holds, which is asked after the word was read; whether it is open then.
    #[cfg(any(feature = "file", tidegate_loom, test))]
    pub(crate) fn open_unless(self, state: &GateState, ended: impl Fn() -> bool) -> bool {
        match self {
            Self::Local => {
                let mut before = self.view(state);
                while before.closed() {
                    if ended() {
                        return false;
                    }
                    match state.hot.word.compare_exchange_weak(
                        before.0,
                        after_change(before.0) & !CLOSED,
                        Ordering::AcqRel,
                        Ordering::Acquire,
                    ) {
                        Ok(_) => break,
                        Err(now) => before = View(now),
                    }
                }
                true
            }
        }
    }

    /// What the word was before.
    fn bump(self, state: &GateState, set: u64) -> View {
        match self {
            Self::Local => {
                let mut before = state.hot.word.load(Ordering::Relaxed);
                loop {
                    let after = after_change(before) | set;
                    match state.hot.word.compare_exchange_weak(
                        before,
                        after,
                        Ordering::AcqRel,
                        Ordering::Relaxed,
                    ) {
                        Ok(_) => return View(before),
                        Err(now) => before = now,
                    }
                }
            }
        }
    }

    /// In a fork's child: what was in flight belongs to the parent. What was closed at the fork stays closed.
    #[cfg(all(unix, not(tidegate_loom)))]
    pub(crate) fn start_anew(self, state: &GateState, at_fork: View) {
        match self {
            Self::Local => {
                let kept = at_fork.0 & (GENERATION_MASK | CLOSED);
                state.hot.word.store(kept, Ordering::Relaxed);
            }
        }
        self.publish(state);
    }
}

/// The word with its next generation.
fn after_change(word: u64) -> u64 {
    let generation = (word & GENERATION_MASK).wrapping_add(1) & GENERATION_MASK;
    (word & !GENERATION_MASK) | generation
}

/// Whether taking `weight` out of `before` emptied a closed word. What the earlier holders did is seen by
/// whoever then looks at the word again, before waking those who wait for it.
#[inline]
fn drained(before: View, weight: u32) -> bool {
    before.closed() && before.in_flight() == weight
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;
    use crate::MAX_LIMIT;

    #[test]
    fn the_largest_weight_neither_wraps_nor_touches_its_neighbours() {
        let state = GateState::new();
        Word::Local.close(&state);
        let view = Word::Local.view(&state);
        assert!(view.fits(MAX_LIMIT, MAX_LIMIT));
        let taken = Word::Local.try_take(&state, view, MAX_LIMIT).unwrap();
        let full = Word::Local.view(&state);
        assert_eq!((full.in_flight(), full.closed(), full.generation()), (MAX_LIMIT, true, 1));
        assert!(!full.fits(1, MAX_LIMIT));
        assert!(!full.fits(MAX_LIMIT, MAX_LIMIT), "summed in 64 bits");
        assert_eq!(Word::Local.put(&state, taken), Left { missing: 0, drained: true });
        assert_eq!(Word::Local.view(&state), view);
    }

    #[test]
    fn generations_wrap_within_their_bits() {
        let state = GateState::new();
        state.hot.word.store(GENERATION_MASK | (5 << IN_FLIGHT_SHIFT), Ordering::Relaxed);
        Word::Local.publish(&state);
        let view = Word::Local.view(&state);
        assert_eq!((view.generation(), view.in_flight(), view.closed()), (0, 5, false));
    }

    #[test]
    fn one_call_closes_a_word_and_the_others_change_nothing() {
        let state = GateState::new();
        assert!(Word::Local.close(&state));
        let closed = Word::Local.view(&state);
        assert!(!Word::Local.close(&state));
        assert_eq!(Word::Local.view(&state), closed);
    }

    #[test]
    fn a_closed_word_opens_with_what_is_inside_and_under_another_generation() {
        let state = GateState::new();
        let view = Word::Local.view(&state);
        Word::Local.try_take(&state, view, 3).unwrap();
        Word::Local.close(&state);
        let closed = Word::Local.view(&state);
        assert!(!Word::Local.open_unless(&state, || true));
        assert_eq!(Word::Local.view(&state), closed);
        assert!(Word::Local.open_unless(&state, || false));
        let open = Word::Local.view(&state);
        assert_eq!((open.in_flight(), open.closed(), open.generation()), (3, false, 2));
        assert!(Word::Local.open_unless(&state, || true), "it is open");
        assert_eq!(Word::Local.view(&state), open);
    }

    #[test]
    fn whoever_is_about_to_open_a_word_notices_that_it_was_closed_anew() {
        let state = GateState::new();
        Word::Local.close(&state);
        let asked = std::cell::Cell::new(0);
        let ended = || {
            asked.set(asked.get() + 1);
            if asked.get() == 1 {
                Word::Local.close_anew(&state); // after it was asked whether that happened
            }
            asked.get() > 1
        };
        assert!(!Word::Local.open_unless(&state, ended));
        assert!(Word::Local.view(&state).closed());
    }

    #[test]
    fn a_swap_fails_once_the_generation_moved() {
        let state = GateState::new();
        let before = Word::Local.view(&state);
        Word::Local.publish(&state);
        assert!(Word::Local.try_take(&state, before, 1).is_err());
    }

    #[test]
    fn a_checked_put_stops_at_zero() {
        let state = GateState::new();
        let view = Word::Local.view(&state);
        Word::Local.try_take(&state, view, 2).unwrap();
        assert_eq!(Word::Local.put_checked(&state, 3).missing, 1);
        assert_eq!(Word::Local.put_checked(&state, 1).missing, 1);
        assert_eq!(Word::Local.view(&state).in_flight(), 0);
    }
}
