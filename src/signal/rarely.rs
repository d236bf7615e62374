//! What changes rarely: limits and paths, read anew every half a minute.

use std::time::Duration;

use super::root::Failed;

const EVERY: Duration = Duration::from_secs(30);

/// A value and when it was read.
#[derive(Debug)]
pub(crate) struct Rarely<T> {
    value: Option<T>,
    read_ns: u64,
}

impl<T> Rarely<T> {
    pub(crate) fn new() -> Self {
        Self { value: None, read_ns: 0 }
    }

    /// The value, from `read` where it is old. `read` is given the old one; if it fails that stays, and without
    /// one the next who asks tries again.
    pub(crate) fn get(
        &mut self,
        now_ns: u64,
        read: impl FnOnce(Option<&T>) -> Result<T, Failed>,
    ) -> Option<&mut T> {
        let age = Duration::from_nanos(now_ns.abs_diff(self.read_ns));
        if self.value.is_none() || age >= EVERY {
            self.read_ns = now_ns;
            if let Ok(value) = read(self.value.as_ref()) {
                self.value = Some(value);
            }
        }
        self.value.as_mut()
    }

    pub(crate) fn value(&self) -> Option<&T> {
        self.value.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_when_it_is_old_and_kept_when_that_fails() {
        let second = 1_000_000_000;
        let mut rarely = Rarely::new();
        assert_eq!(rarely.get(second, |_| Err(Failed)), None::<&mut i32>);
        assert_eq!(rarely.get(second, |_| Ok(1)), Some(&mut 1), "without a value it is tried again");
        assert_eq!(rarely.get(30 * second, |_| panic!("not yet")), Some(&mut 1));
        assert_eq!(rarely.get(31 * second, |_| Err(Failed)), Some(&mut 1));
        assert_eq!(rarely.get(60 * second, |_| panic!("not yet")), Some(&mut 1));
        assert_eq!(rarely.get(61 * second, |old| Ok(old.unwrap() + 1)), Some(&mut 2));
        assert_eq!(rarely.get(0, |_| Ok(3)), Some(&mut 3), "a clock that went back makes it old");
    }
}
