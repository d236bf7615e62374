//! How long this thread has worked: what others take of a shared processor meanwhile is not in it.

#![allow(unsafe_code)]

use std::time::Duration;

/// The processor time of this thread.
///
/// # Panics
/// Where the system has no such clock.
#[must_use]
pub fn worked() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the system writes to a timespec of ours.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(status, 0, "no clock of a thread's processor time");
    let seconds = u64::try_from(time.tv_sec).expect("time since the thread's start");
    Duration::from_secs(seconds)
        + Duration::from_nanos(u64::try_from(time.tv_nsec).expect("a part of a second"))
}
