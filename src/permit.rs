//! Permits: the right to use the resource once, given back exactly once.

use crate::gate::Gate;
use crate::outcome::Outcome;
use crate::priority::Priority;
use crate::word::Taken;

/// What a permit is made of, for bindings that keep it in a structure of their own.
///
/// A ticket does not give itself back: whoever got it from [`Gate::take`] calls [`Gate::put`] with
/// it exactly once. In Rust use [`Permit`] or [`OwnedPermit`], which do that by themselves.
///
/// It is two whole registers, and each field is cut out of them: fields of their own would pass
/// through memory in pieces of different sizes, which costs more than the atomic operations.
///
/// ```text
/// 63           34 33      32   31   30        0
/// | epoch: 30    | priority | over | taken: 31 |
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "a ticket holds room in its gate until it is put back"]
pub struct Ticket {
    packed: u64,
    /// When it was taken; zero where timing is off.
    since_ns: u64,
}

const OVER: u64 = 1 << 31;
const PRIORITY_SHIFT: u32 = 32;
const EPOCH_SHIFT: u32 = 34;

impl Ticket {
    #[inline]
    pub(crate) fn new(taken: Taken, priority: Priority, over: bool, epoch: u32, since_ns: u64) -> Self {
        let packed = u64::from(taken.weight())
            | if over { OVER } else { 0 }
            | (priority.level() as u64) << PRIORITY_SHIFT
            | u64::from(epoch) << EPOCH_SHIFT;
        Self { packed, since_ns }
    }

    #[inline]
    pub(crate) fn taken(&self) -> Taken {
        Taken::of((self.packed & (OVER - 1)) as u32) // 31 bits
    }

    /// Whether it was taken by the process whose epoch, a count of forks, this is.
    #[inline]
    pub(crate) fn belongs_to(&self, epoch: u32) -> bool {
        self.packed >> EPOCH_SHIFT == u64::from(epoch) & ((1 << (64 - EPOCH_SHIFT)) - 1)
    }

    #[inline]
    pub(crate) fn since_ns(&self) -> u64 {
        self.since_ns
    }

    /// The ticket as two numbers, for bindings that keep it in atomics.
    #[must_use]
    #[inline]
    pub fn to_bits(self) -> [u64; 2] {
        [self.packed, self.since_ns]
    }

    /// The ticket that [`to_bits`](Self::to_bits) made these of. Of other numbers it makes a ticket that
    /// nobody took, and putting that back spoils the gate's count.
    #[inline]
    pub fn from_bits([packed, since_ns]: [u64; 2]) -> Self {
        Self { packed, since_ns }
    }

    /// The priority it was admitted with.
    #[must_use]
    pub fn priority(&self) -> Priority {
        Priority::ALL[(self.packed >> PRIORITY_SHIFT) as usize & 3]
    }

    /// The weight it takes.
    #[must_use]
    #[inline]
    pub fn weight(&self) -> u32 {
        self.taken().weight()
    }

    /// Whether dry run let it in although enforcement would have shed it.
    #[must_use]
    #[inline]
    pub fn over(&self) -> bool {
        self.packed & OVER != 0
    }
}

/// The outcome of work that ended without saying which: unwinding says nothing of the resource.
fn unsaid() -> Outcome {
    if std::thread::panicking() { Outcome::Ignore } else { Outcome::Success }
}

/// A permit that borrows its gate. Released when dropped.
///
/// Dropped while its thread unwinds it counts as [`Outcome::Ignore`], otherwise as
/// [`Outcome::Success`]. `std::mem::forget` keeps its weight in flight for ever: see
/// [`limitations`](crate::limitations).
///
/// It is released once and does not outlive its gate:
///
/// ```
/// # use tidegate::{Gate, Outcome, Priority};
/// let gate = Gate::new("db", 1)?;
/// let permit = gate.try_admit(Priority::Critical)?;
/// permit.release(Outcome::Success);
/// drop(gate);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Releasing it twice does not compile,
///
/// ```compile_fail,E0382
/// # use tidegate::{Gate, Outcome, Priority};
/// let gate = Gate::new("db", 1)?;
/// let permit = gate.try_admit(Priority::Critical)?;
/// permit.release(Outcome::Success);
/// permit.release(Outcome::Success);
/// drop(gate);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// nor does keeping it longer than the gate. [`OwnedPermit`] is for that.
///
/// ```compile_fail,E0505
/// # use tidegate::{Gate, Outcome, Priority};
/// let gate = Gate::new("db", 1)?;
/// let permit = gate.try_admit(Priority::Critical)?;
/// drop(gate);
/// permit.release(Outcome::Success);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping a permit gives its room back at once"]
pub struct Permit<'a> {
    gate: &'a Gate,
    ticket: Ticket,
}

impl<'a> Permit<'a> {
    #[inline]
    pub(crate) fn new(gate: &'a Gate, ticket: Ticket) -> Self {
        Self { gate, ticket }
    }

    /// Gives the permit back and says what its work came to.
    #[inline]
    pub fn release(self, outcome: Outcome) {
        let Self { gate, ticket } = &self;
        gate.put(*ticket, outcome);
        std::mem::forget(self);
    }

    /// The ticket: its priority, weight and `over` mark.
    #[inline]
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }
}

impl Drop for Permit<'_> {
    #[inline]
    fn drop(&mut self) {
        self.gate.put(self.ticket, unsaid());
    }
}

/// A permit that keeps its gate alive, for work that outlives the borrow. Otherwise as [`Permit`].
///
/// ```
/// # use tidegate::{Gate, Outcome, Priority};
/// let gate = Gate::new("db", 1)?;
/// let permit = gate.try_admit_owned(Priority::Critical)?;
/// drop(gate);
/// permit.release(Outcome::Success);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It too is released once:
///
/// ```compile_fail,E0382
/// # use tidegate::{Gate, Outcome, Priority};
/// let gate = Gate::new("db", 1)?;
/// let permit = gate.try_admit_owned(Priority::Critical)?;
/// drop(gate);
/// permit.release(Outcome::Success);
/// permit.release(Outcome::Success);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping a permit gives its room back at once"]
pub struct OwnedPermit {
    gate: Gate,
    ticket: Ticket,
    released: bool,
}

impl OwnedPermit {
    pub(crate) fn new(gate: Gate, ticket: Ticket) -> Self {
        Self { gate, ticket, released: false }
    }

    /// Gives the permit back and says what its work came to.
    pub fn release(mut self, outcome: Outcome) {
        self.released = true;
        self.gate.put(self.ticket, outcome);
    }

    /// The ticket: its priority, weight and `over` mark.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }
}

impl Drop for OwnedPermit {
    fn drop(&mut self) {
        if !self.released {
            self.gate.put(self.ticket, unsaid());
        }
    }
}
