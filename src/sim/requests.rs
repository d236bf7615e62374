//! Everything inside: a slab whose keys tell a request from the next one in its slot, so that whoever holds
//! a key of one that has left notices it.

use super::door::Holding;

/// One try of a client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Attempt {
    /// Which class of the mix.
    pub(super) class: u32,
    /// How many tries were made before.
    pub(super) tries: u32,
    /// How much work it is. A retry asks for the same again.
    pub(super) size: f64,
}

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Before the service.
    Queue,
    Service,
    Dependency,
    /// Where the service is not needed.
    Elsewhere,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) attempt: Attempt,
    pub(super) holding: Holding,
    pub(super) since_ns: u64,
    pub(super) place: Place,
    /// Whether the client still waits for it.
    pub(super) awaited: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    slot: u32,
    generation: u32,
}

#[derive(Debug, Default)]
pub(super) struct Requests {
    slots: Vec<(u32, Option<Request>)>,
    free: Vec<u32>,
}

impl Requests {
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// `None` where there are as many as there are numbers.
    pub(super) fn insert(&mut self, request: Request) -> Option<Key> {
        let slot = if let Some(slot) = self.free.pop() {
            slot
        } else {
            self.slots.push((0, None));
            u32::try_from(self.slots.len() - 1).ok()?
        };
        let (generation, place) = &mut self.slots[slot as usize];
        *place = Some(request);
        Some(Key { slot, generation: *generation })
    }

    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut Request> {
        match self.slots.get_mut(key.slot as usize) {
            Some((generation, request)) if *generation == key.generation => request.as_mut(),
            _ => None,
        }
    }

    pub(super) fn has(&self, key: Key) -> bool {
        self.slots.get(key.slot as usize).is_some_and(|(generation, _)| *generation == key.generation)
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<Request> {
        let (generation, request) = self.slots.get_mut(key.slot as usize)?;
        if *generation != key.generation {
            return None;
        }
        let request = request.take()?;
        *generation = generation.wrapping_add(1);
        self.free.push(key.slot);
        Some(request)
    }
}
