//! Permits as numbers. A gate keeps the ticket of each permit that is out in a slot; the number names the
//! slot and the generation in which it was claimed:
//!
//! ```text
//! 63              24 23       0
//! | generation: 40   | index: 24 |
//! ```
//!
//! A slot's state is its generation and a phase, in one atomic:
//!
//! ```text
//! free(g) --claim--> busy(g) --> live(g) --release--> busy(g) --> free(g + 1)
//! ```
//!
//! - Claim: a compare-and-swap from free to busy (Acquire: the previous release has read its ticket), then
//!   the ticket, then live (Release: whoever finds it live finds the ticket).
//! - Release: a compare-and-swap from live to busy (Acquire). Of two that release the same number one
//!   swaps; the other finds another state, and that is what makes it stale. The slot is freed last, after
//!   the ticket went back to the gate (Release): whoever finds all slots free may free the gate.
//!
//! A number never becomes valid again: a slot whose last generation was used is retired. Generations start at
//! a base of their own in every gate, so a number of one gate is stale at another; it is at least 1, so
//! no number is 0.
//!
//! The first slots are divided into lanes. A thread that has an index of its own (see the core's `thread`) has a
//! lane: only it claims there, so that it needs no compare-and-swap, and only that fills its cache line. The rest is
//! for threads without a lane and for those that hold more permits than it has slots. There each thread has
//! a cursor, the slot that it used last. If that and its neighbours are taken, it tries some drawn at random,
//! which find a free one unless most are taken. Then the slots double. They lie in segments, so none ever moves.

#![allow(unsafe_code)]
#![allow(clippy::cast_possible_truncation)] // an index has 24 bits, in whatever type it stands

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

use tidegate_core::{OWN_INDICES, Ticket};

const INDEX_BITS: u32 = 24;
const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;
const LAST_GENERATION: u64 = (1 << (64 - INDEX_BITS)) - 1;

/// Slots of a lane: one stretch of memory that processors fetch at once.
const LANE: usize = 4;
/// The lanes, in the gate itself; a power of two. The segments behind them double what there is.
const FIRST: usize = LANE * OWN_INDICES;
const MOST: usize = 1 << INDEX_BITS;
const SEGMENTS: usize = (MOST / FIRST).ilog2() as usize;

/// Neighbours that a claim looks at before it draws.
const NEAR: usize = 8;
/// Draws before the slots double. With half of them free, one in 65,536 claims doubles for nothing.
const DRAWS: u64 = 16;

const PHASE_BITS: u32 = 2;
const PHASE: u64 = (1 << PHASE_BITS) - 1;
const FREE: u64 = 0;
const BUSY: u64 = 1;
const LIVE: u64 = 2;
const RETIRED: u64 = 3;

/// All zero is a free slot that was never used.
#[derive(Default)]
#[repr(align(32))] // two lie in a cache line; none lies across two
struct Slot {
    state: AtomicU64,
    ticket: [AtomicU64; 2],
}

impl Slot {
    #[inline]
    fn read(&self) -> Ticket {
        Ticket::from_bits([self.ticket[0].load(Ordering::Relaxed), self.ticket[1].load(Ordering::Relaxed)])
    }

    #[inline]
    fn write(&self, ticket: Ticket) {
        // With the fence in `peek`: who sees a part of this ticket also sees that the one before had left.
        fence(Ordering::Release);
        let [packed, since_ns] = ticket.to_bits();
        self.ticket[0].store(packed, Ordering::Relaxed);
        self.ticket[1].store(since_ns, Ordering::Relaxed);
    }
}

/// The permits of one gate that are out.
#[repr(C, align(128))] // each lane has cache lines of its own
pub(crate) struct Slots {
    first: [Slot; FIRST],
    segments: [AtomicPtr<Slot>; SEGMENTS],
    /// Added to a slot's own generation.
    base: u64,
    /// A power of two; a segment is published before the capacity that counts it.
    capacity: AtomicU32,
}

/// A free slot of the calling thread's own lane.
pub(crate) struct Vacant<'a> {
    slot: &'a Slot,
    live: u64,
    number: u64,
}

/// A permit on its way back: its slot is held until this is dropped.
pub(crate) struct Leaving<'a> {
    pub(crate) ticket: Ticket,
    slot: &'a Slot,
    after: u64,
}

impl Drop for Leaving<'_> {
    #[inline]
    fn drop(&mut self) {
        self.slot.state.store(self.after, Ordering::Release);
    }
}

const NO_CURSOR: u32 = u32::MAX;

thread_local! {
    /// Where this thread looks first, behind the lanes.
    static CURSOR: Cell<u32> = const { Cell::new(NO_CURSOR) };
}

fn cursor() -> usize {
    const APART: u32 = LANE as u32; // threads begin apart, so that they do not share cache lines
    static NEXT: AtomicU32 = AtomicU32::new(0);
    if CURSOR.get() == NO_CURSOR {
        CURSOR.set(NEXT.fetch_add(APART, Ordering::Relaxed) & (MOST as u32 - 1));
    }
    CURSOR.get() as usize
}

impl Slots {
    pub(crate) fn new() -> Self {
        static GATES: AtomicU64 = AtomicU64::new(0);
        let drawn = splitmix(GATES.fetch_add(1, Ordering::Relaxed));
        // The upper half of the generations is left to every gate.
        Self::with_base(1 + (drawn & (LAST_GENERATION >> 1)))
    }

    fn with_base(base: u64) -> Self {
        Self {
            capacity: AtomicU32::new(FIRST as u32),
            base,
            first: std::array::from_fn(|_| Slot::default()),
            segments: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
        }
    }

    #[inline]
    fn capacity(&self) -> usize {
        self.capacity.load(Ordering::Acquire) as usize
    }

    /// The slot at an index below the capacity.
    #[inline]
    fn slot(&self, index: usize) -> &Slot {
        match self.first.get(index) {
            Some(slot) => slot,
            None => self.slot_behind(index),
        }
    }

    fn slot_behind(&self, index: usize) -> &Slot {
        let doubling = index.ilog2();
        let segment = self.segments[(doubling - FIRST.ilog2()) as usize].load(Ordering::Acquire);
        // SAFETY: the index is below the capacity, so its segment was published, with as many slots as all
        // before it together; it is freed only by `drop`.
        unsafe { &*segment.add(index - (1 << doubling)) }
    }

    /// A free slot of the lane of a thread with its own index. Nobody else changes it, so it can be looked for
    /// before the admission, whose atomic operations would hold the look up.
    #[inline]
    pub(crate) fn vacant(&self, own: Option<usize>) -> Option<Vacant<'_>> {
        let lane = own? * LANE;
        (lane..lane + LANE).find_map(|index| {
            let slot = &self.first[index];
            let free = slot.state.load(Ordering::Acquire);
            (free & PHASE == FREE).then(|| Vacant {
                slot,
                live: free | LIVE,
                number: self.number(free, index),
            })
        })
    }

    /// Keeps a ticket, in the vacant slot if there is one. `None`, with the ticket still the caller's, when there
    /// is no room.
    #[inline]
    pub(crate) fn claim(&self, vacant: Option<&Vacant<'_>>, ticket: Ticket) -> Option<u64> {
        #[cfg(feature = "test-hooks")]
        if crate::test_hooks::is_full() {
            return None;
        }
        let Some(&Vacant { slot, live, number }) = vacant else {
            return self.claim_shared(ticket);
        };
        slot.write(ticket);
        slot.state.store(live, Ordering::Release);
        Some(number)
    }

    #[inline]
    fn number(&self, state: u64, index: usize) -> u64 {
        ((state >> PHASE_BITS) + self.base) << INDEX_BITS | index as u64
    }

    #[inline(never)]
    fn claim_shared(&self, ticket: Ticket) -> Option<u64> {
        let from = cursor();
        loop {
            let capacity = self.capacity();
            let near = (0..NEAR).map(|step| from + step);
            let drawn = (0..DRAWS).map(|draw| splitmix(from as u64 * DRAWS + draw) as usize);
            let mut indices = near.chain(drawn).map(|index| index & (capacity - 1));
            if let Some(number) = indices.find_map(|index| self.claim_at(index, ticket)) {
                return Some(number);
            }
            if !self.double(capacity) {
                return (0..capacity).find_map(|index| self.claim_at(index, ticket));
            }
            let new = capacity + (from & (capacity - 1));
            if let Some(number) = self.claim_at(new, ticket) {
                return Some(number);
            }
        }
    }

    /// Claims the slot at an index, unless it is in a lane or taken.
    fn claim_at(&self, index: usize, ticket: Ticket) -> Option<u64> {
        if index < FIRST {
            return None;
        }
        let slot = self.slot_behind(index);
        let free = slot.state.load(Ordering::Relaxed);
        if free & PHASE != FREE
            || slot.state.compare_exchange(free, free | BUSY, Ordering::Acquire, Ordering::Relaxed).is_err()
        {
            return None;
        }
        slot.write(ticket);
        slot.state.store(free | LIVE, Ordering::Release);
        CURSOR.set(index as u32);
        Some(self.number(free, index))
    }

    /// Adds as many slots as there are. `false` at the most that a number can name, or without memory.
    fn double(&self, capacity: usize) -> bool {
        let Some(segment) = self.segments.get((capacity / FIRST).ilog2() as usize) else {
            return false;
        };
        if segment.load(Ordering::Acquire).is_null() {
            let layout = Self::layout(capacity);
            #[allow(clippy::cast_ptr_alignment)] // the layout asks for it
            // SAFETY: the layout's size is not zero.
            let made = unsafe { alloc_zeroed(layout) }.cast::<Slot>();
            if made.is_null() {
                return false;
            }
            let none = ptr::null_mut();
            if segment.compare_exchange(none, made, Ordering::AcqRel, Ordering::Acquire).is_err() {
                // SAFETY: allocated above with this layout, and nobody else has seen it.
                unsafe { dealloc(made.cast(), layout) };
            }
        }
        self.capacity.fetch_max(2 * capacity as u32, Ordering::AcqRel);
        true
    }

    fn layout(slots: usize) -> Layout {
        Layout::array::<Slot>(slots).expect("2^24 slots of 32 bytes can be addressed")
    }

    /// The slot that a number names, and its state while the permit is out. `None` for a number that
    /// was never given.
    #[inline]
    fn find(&self, number: u64) -> Option<(&Slot, u64)> {
        let index = (number & INDEX_MASK) as usize;
        let generation = (number >> INDEX_BITS).checked_sub(self.base)?;
        (index < self.capacity()).then(|| (self.slot(index), generation << PHASE_BITS | LIVE))
    }

    /// Takes a permit back, unless it is not out.
    #[inline]
    pub(crate) fn release(&self, number: u64) -> Option<Leaving<'_>> {
        let (slot, live) = self.find(number)?;
        // Read before the swap, which vouches for it: a slot is live in a generation once, with one ticket.
        if slot.state.load(Ordering::Acquire) != live {
            return None;
        }
        let ticket = slot.read();
        let busy = live ^ LIVE ^ BUSY;
        slot.state.compare_exchange(live, busy, Ordering::Acquire, Ordering::Relaxed).ok()?;
        let index = (number & INDEX_MASK) as usize;
        if index >= FIRST {
            CURSOR.set(index as u32);
        }
        let last = number >> INDEX_BITS == LAST_GENERATION;
        let after = if last { RETIRED } else { (live & !PHASE) + (1 << PHASE_BITS) };
        Some(Leaving { ticket, slot, after })
    }

    /// The ticket of a permit that is out.
    pub(crate) fn peek(&self, number: u64) -> Option<Ticket> {
        let (slot, live) = self.find(number)?;
        if slot.state.load(Ordering::Acquire) != live {
            return None;
        }
        let ticket = slot.read();
        fence(Ordering::Acquire);
        (slot.state.load(Ordering::Relaxed) == live).then_some(ticket)
    }

    /// The first slot at or behind an index whose permit is out or on its way.
    pub(crate) fn first_out(&self, from: usize) -> Option<usize> {
        (from..self.capacity())
            .find(|&index| matches!(self.slot(index).state.load(Ordering::Acquire) & PHASE, BUSY | LIVE))
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        for (doubling, segment) in self.segments.iter_mut().enumerate() {
            let segment = *segment.get_mut();
            if !segment.is_null() {
                // SAFETY: allocated by `double` with this layout, and nobody borrows from it any more.
                unsafe { dealloc(segment.cast(), Self::layout(FIRST << doubling)) };
            }
        }
    }
}

/// A 64-bit finaliser (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
fn splitmix(counter: u64) -> u64 {
    let mut z = counter.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn ticket(number: u64) -> Ticket {
        Ticket::from_bits([number, number + 1])
    }

    fn claim(slots: &Slots, own: Option<usize>, ticket: Ticket) -> Option<u64> {
        slots.claim(slots.vacant(own).as_ref(), ticket)
    }

    fn none_out(slots: &Slots) -> bool {
        slots.first_out(0).is_none()
    }

    fn released(slots: &Slots, number: u64) -> Option<[u64; 2]> {
        slots.release(number).map(|leaving| leaving.ticket.to_bits())
    }

    #[test]
    fn a_number_brings_its_ticket_back_once() {
        let slots = Slots::new();
        for own in [None, Some(0), Some(OWN_INDICES - 1)] {
            let number = claim(&slots, own, ticket(7)).unwrap();
            assert_ne!(number, 0);
            assert!(!none_out(&slots));
            assert_eq!(slots.peek(number).unwrap().to_bits(), [7, 8]);
            assert_eq!(released(&slots, number), Some([7, 8]));
            assert_eq!(released(&slots, number), None);
            assert!(slots.peek(number).is_none());
            assert!(none_out(&slots));
            let again = claim(&slots, own, ticket(9)).unwrap();
            assert_ne!(again, number, "the slot is used again, the number is not");
            assert_eq!(again & INDEX_MASK, number & INDEX_MASK);
            assert!(released(&slots, again).is_some());
        }
    }

    #[test]
    fn a_thread_that_fills_its_lane_goes_on_behind_it() {
        let slots = Slots::new();
        let numbers: Vec<_> = (0..100).map(|n| claim(&slots, Some(3), ticket(n)).unwrap()).collect();
        let in_lanes = numbers.iter().filter(|&number| number & INDEX_MASK < FIRST as u64);
        assert_eq!(in_lanes.count(), LANE);
        for (n, &number) in numbers.iter().enumerate() {
            assert_eq!(released(&slots, number), Some([n as u64, n as u64 + 1]));
        }
    }

    #[test]
    fn numbers_that_were_never_given_are_stale() {
        let slots = Slots::new();
        let number = claim(&slots, None, ticket(1)).unwrap();
        for stray in [0, 1, INDEX_MASK, u64::MAX, number + 1, number ^ (1 << 63), number + (1 << INDEX_BITS)]
        {
            assert_eq!(released(&slots, stray), None, "{stray:x}");
        }
        assert_eq!(released(&Slots::new(), number), None, "another gate's");
        assert_eq!(released(&slots, number), Some([1, 2]));
    }

    #[test]
    fn slots_double_and_stay_where_they_are() {
        let slots = Slots::new();
        let numbers: Vec<_> = (0..100_000).map(|n| claim(&slots, None, ticket(n)).unwrap()).collect();
        let distinct: HashSet<_> = numbers.iter().map(|number| number & INDEX_MASK).collect();
        assert_eq!(distinct.len(), numbers.len());
        assert!(slots.capacity() >= 1 << 17 && slots.capacity() <= 1 << 20, "{}", slots.capacity());
        for (n, &number) in numbers.iter().enumerate() {
            assert_eq!(released(&slots, number), Some([n as u64, n as u64 + 1]));
        }
        assert!(none_out(&slots));
    }

    #[test]
    fn one_pair_after_another_uses_one_slot() {
        let slots = Slots::new();
        let indices: HashSet<_> = (0..1_000)
            .map(|n| {
                let number = claim(&slots, None, ticket(n)).unwrap();
                released(&slots, number).unwrap();
                number & INDEX_MASK
            })
            .collect();
        assert_eq!(indices.len(), 1);
    }

    #[test]
    fn the_last_generation_retires_its_slot() {
        let slots = Slots::with_base(LAST_GENERATION);
        let mut numbers = HashSet::new();
        for own in [None, Some(0)] {
            for n in 0..2 * FIRST as u64 {
                let number = claim(&slots, own, ticket(n)).unwrap();
                assert_eq!(number >> INDEX_BITS, LAST_GENERATION);
                assert!(numbers.insert(number), "given a second time");
                assert_eq!(released(&slots, number), Some([n, n + 1]));
                assert!(released(&slots, number).is_none());
            }
        }
        assert!(none_out(&slots));
    }

    #[test]
    #[ignore = "half a gigabyte"]
    fn the_most_that_a_number_can_name() {
        let slots = Slots::new();
        let numbers: Vec<_> =
            (0..(MOST - FIRST) as u64).map(|n| claim(&slots, None, ticket(n)).unwrap()).collect();
        assert!(claim(&slots, None, ticket(0)).is_none());
        assert!(released(&slots, numbers[12_345]).is_some());
        assert!(claim(&slots, None, ticket(0)).is_some());
    }

    #[test]
    fn a_slot_is_not_given_again_while_its_permit_is_on_its_way() {
        let slots = Slots::new();
        for own in [None, Some(0)] {
            let number = claim(&slots, own, ticket(1)).unwrap();
            let leaving = slots.release(number).unwrap();
            let others: Vec<_> =
                (0..2 * FIRST as u64).map(|n| claim(&slots, own, ticket(n)).unwrap()).collect();
            assert!(others.iter().all(|other| other & INDEX_MASK != number & INDEX_MASK));
            assert_eq!(released(&slots, number), None);
            assert!(slots.peek(number).is_none());
            for other in others {
                assert!(released(&slots, other).is_some());
            }
            assert!(!none_out(&slots));
            drop(leaving);
            assert!(none_out(&slots));
        }
    }

    /// All of them look in the same places, in the same order.
    #[test]
    fn no_two_threads_claim_one_slot() {
        const PERMITS: u32 = 5_000;
        for _ in 0..30 {
            let slots = Slots::new();
            let claim_at = |place| {
                CURSOR.set(place);
                claim(&slots, None, ticket(1)).unwrap()
            };
            let claim_all = || (0..PERMITS).map(claim_at).collect::<Vec<_>>();
            let numbers = std::thread::scope(|scope| {
                let others = [scope.spawn(claim_all), scope.spawn(claim_all)];
                let mut numbers = claim_all();
                numbers.extend(others.into_iter().flat_map(|other| other.join().unwrap()));
                numbers
            });
            assert_eq!(numbers.iter().collect::<HashSet<_>>().len(), numbers.len());
            assert!(numbers.iter().all(|&number| released(&slots, number).is_some()));
        }
    }

    /// All release the same numbers in the same order. Who is behind finds them stale, which is quicker, until it
    /// has caught up: then they are at the same number within nanoseconds.
    #[test]
    fn of_threads_that_release_one_number_one_does() {
        const PERMITS: u64 = 20_000;
        let slots = Slots::new();
        for _ in 0..30 {
            let numbers: Vec<_> = (0..PERMITS).map(|n| claim(&slots, None, ticket(n)).unwrap()).collect();
            let release_all = || numbers.iter().filter(|&&number| released(&slots, number).is_some()).count();
            let well = std::thread::scope(|scope| {
                let others = [scope.spawn(release_all), scope.spawn(release_all)];
                release_all() + others.map(|other| other.join().unwrap()).iter().sum::<usize>()
            });
            assert_eq!(well as u64, PERMITS);
            assert!(none_out(&slots));
        }
    }

    #[test]
    fn threads_with_and_without_lanes_lose_nothing() {
        const THREADS: usize = 8;
        let slots = Slots::new();
        let crossing: Vec<_> = (0..64).map(|_| AtomicU64::new(0)).collect();
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (slots, crossing) = (&slots, &crossing);
                scope.spawn(move || {
                    let own = (thread < THREADS / 2).then_some(thread);
                    let mut draws = splitmix(thread as u64);
                    for n in 0..20_000 {
                        draws = splitmix(draws);
                        let fresh = claim(slots, own, ticket(n)).unwrap();
                        // Most are released by another thread than claimed them.
                        let place = &crossing[draws as usize % crossing.len()];
                        let taken = place.swap(fresh, Ordering::AcqRel);
                        assert!(slots.peek(fresh).is_none_or(|ticket| ticket.to_bits() == [n, n + 1]));
                        if taken != 0 {
                            let [first, second] = released(slots, taken).unwrap();
                            assert_eq!(first + 1, second, "a ticket in one piece");
                            assert_eq!(released(slots, taken), None);
                        }
                    }
                });
            }
        });
        for place in crossing {
            let left = place.into_inner();
            assert!(left == 0 || released(&slots, left).is_some());
        }
        assert!(none_out(&slots));
    }
}
