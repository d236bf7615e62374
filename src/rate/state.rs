//! What a gate remembers of its rate: one 128-bit word, and the settings that it is read by.
//!
//! ```text
//! 127                         11 10       0
//! | theoretical arrival time: 117 | epoch: 11 |
//! ```
//!
//! The *epoch* counts changes of the rate, and its lowest bit says which of two places the settings stand in. A
//! change writes the other place, and then swaps the word for one of the next epoch. So:
//!
//! - an admission that read settings of an epoch swaps only a word of that epoch: none rests on settings that are
//!   old, nor on a mixture, since a place is written anew only after the epoch has moved on from it;
//! - a refusal swaps nothing, so it looks at the epoch once more before it believes what it read (a sequence lock's
//!   reader: the fences in `look` and `set` pair).
//!
//! The word only grows within an epoch: no swap succeeds on a word that has changed meanwhile. (The one residue:
//! 2^11 changes during one admission, with the same arrival time after them.)
//!
//! *Latest* is a time at which somebody was admitted. Whoever comes with an older one, because it was held up
//! after reading the clock or because the clock was set back, is judged at that time: it finds what is left of the
//! burst, and brings no time back. It is a hint, stored without a swap: where two store it at once the older may
//! stay, which lets nobody in.
//!
//! The word is never loaded from a file that was mapped to be read: where a processor has no 128-bit load that is
//! a swap.

use crate::rate::gcra::{Settings, TIME_BITS};
use crate::shed::RetryAfter;
use crate::sync::{AtomicU64, AtomicU128, Ordering, fence};

const EPOCH_BITS: u32 = u128::BITS - TIME_BITS;
const EPOCH_MASK: u128 = (1 << EPOCH_BITS) - 1;

/// A reading of the word.
#[derive(Clone, Copy, PartialEq, Eq)]
struct View(u128);

impl View {
    fn new(epoch: u128, arrival: u128) -> Self {
        Self(arrival << EPOCH_BITS | epoch & EPOCH_MASK)
    }

    fn epoch(self) -> u128 {
        self.0 & EPOCH_MASK
    }

    fn arrival(self) -> u128 {
        self.0 >> EPOCH_BITS
    }
}

/// An admission that the rate allows, if nobody else is admitted meanwhile.
#[derive(Clone, Copy)]
pub(crate) struct Offer {
    seen: View,
    after: View,
    now_ns: u64,
}

/// Settings in cells.
#[derive(Debug)]
#[repr(C)]
struct Place {
    interval: [AtomicU64; 2],
    span: [AtomicU64; 2],
}

impl Place {
    fn new(settings: Settings) -> Self {
        Self {
            interval: halves(settings.interval).map(AtomicU64::new),
            span: halves(settings.span).map(AtomicU64::new),
        }
    }

    fn store(&self, settings: Settings) {
        for (cells, value) in [(&self.interval, settings.interval), (&self.span, settings.span)] {
            for (cell, half) in cells.iter().zip(halves(value)) {
                cell.store(half, Ordering::Relaxed);
            }
        }
    }

    #[inline]
    fn load(&self) -> Settings {
        let whole = |[low, high]: &[AtomicU64; 2]| {
            u128::from(high.load(Ordering::Relaxed)) << 64 | u128::from(low.load(Ordering::Relaxed))
        };
        Settings { interval: whole(&self.interval), span: whole(&self.span) }
    }
}

#[allow(clippy::cast_possible_truncation)] // cut in two
fn halves(value: u128) -> [u64; 2] {
    [value as u64, (value >> 64) as u64]
}

/// The line of a gate that has a rate. All zero it is never looked at.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct RateState {
    word: AtomicU128,
    latest_ns: AtomicU64,
    places: [Place; 2],
}

impl RateState {
    pub(crate) fn new() -> Self {
        let nothing = || Place::new(Settings { interval: 0, span: 0 });
        Self { word: AtomicU128::new(0), latest_ns: AtomicU64::new(0), places: [nothing(), nothing()] }
    }

    /// Full bursts from now on, by one caller alone: of a new gate, or in a fork's child.
    pub(crate) fn start(&self, settings: Settings) {
        self.set(settings, 0, false);
        self.latest_ns.store(0, Ordering::Relaxed);
    }

    #[inline]
    fn view(&self) -> View {
        View(self.word.load(Ordering::Acquire))
    }

    #[inline]
    fn settings(&self, view: View) -> Settings {
        self.places[(view.epoch() & 1) as usize].load()
    }

    /// Whether the rate allows it; changes nothing.
    #[inline]
    pub(crate) fn look(&self, now_ns: u64, weight: u32) -> Option<Offer> {
        let mut seen = self.view();
        loop {
            let settings = self.settings(seen);
            let now_ns = now_ns.max(self.latest_ns.load(Ordering::Relaxed));
            if let Some(arrival) = settings.admit(seen.arrival(), now_ns, weight) {
                return Some(Offer { seen, after: View::new(seen.epoch(), arrival), now_ns });
            }
            seen = self.settled(seen)?;
        }
    }

    /// `None`: the settings that were read are those of the epoch. Otherwise what the word is now.
    #[inline]
    fn settled(&self, seen: View) -> Option<View> {
        fence(Ordering::Acquire);
        Some(self.view()).filter(|now| now.epoch() != seen.epoch())
    }

    /// Takes what was offered. Where others were faster it looks again; whether it was admitted.
    #[inline]
    pub(crate) fn take(&self, mut offer: Offer, weight: u32) -> bool {
        let now_ns = offer.now_ns;
        if now_ns > self.latest_ns.load(Ordering::Relaxed) {
            // Before the swap: whoever sees that, sees when it was.
            self.latest_ns.store(now_ns, Ordering::Relaxed);
        }
        while !self.swap(offer.seen, offer.after) {
            match self.look(now_ns, weight) {
                Some(next) => offer = next,
                None => return false,
            }
        }
        true
    }

    #[inline]
    fn swap(&self, seen: View, after: View) -> bool {
        self.word.compare_exchange(seen.0, after.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// See [`Settings::wait`].
    pub(crate) fn wait(&self, now_ns: u64, weight: u32) -> RetryAfter {
        let mut seen = self.view();
        loop {
            let latest_ns = self.latest_ns.load(Ordering::Relaxed);
            let wait = self.settings(seen).wait(seen.arrival(), latest_ns, now_ns, weight);
            match self.settled(seen) {
                None => return wait,
                Some(now) => seen = now,
            }
        }
    }

    /// Sets the rate. Callers serialise their changes. What was used of the burst stays used where it is to be
    /// `carried`; the same settings then change nothing.
    pub(crate) fn set(&self, settings: Settings, now_ns: u64, carried: bool) {
        let mut seen = self.view();
        let before = self.settings(seen);
        if carried && before == settings {
            return;
        }
        let epoch = seen.epoch() + 1;
        fence(Ordering::Release);
        self.places[(epoch & 1) as usize].store(settings);
        loop {
            // Not before the last admission: its time has come.
            let now_ns = now_ns.max(self.latest_ns.load(Ordering::Relaxed));
            let arrival = if carried { before.carry(seen.arrival(), now_ns, settings) } else { 0 };
            if self.swap(seen, View::new(epoch, arrival)) {
                return;
            }
            seen = self.view();
        }
    }
}
