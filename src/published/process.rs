//! Which process a file belongs to, and whether that process still runs.
//!
//! A number of a process is used again. So on Linux the moment at which it started, which the system keeps
//! with it, belongs to its identity, and so does the namespace in which the number is valid. Both stay when a
//! process becomes another program (a fork that runs a command, a server that replaces itself), which ends
//! its gates: so where its stack begins belongs to it, too, since each program gets a place at random.
//! Elsewhere all of it is 0.

use std::ffi::CStr;
use std::io::Write;

/// A process, for as long as the machine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) pid: u32,
    /// In ticks since the machine started; 0 where that cannot be told.
    pub(super) started: u64,
    /// Where the stack of its program begins; 0 where that cannot be told.
    pub(super) stack: u64,
    /// The inode of its PID namespace; 0 where there are none.
    pub(super) namespace: u64,
}

impl Identity {
    /// That of the process that asks. Plain system calls on buffers of its own, for the handlers of a fork.
    pub(super) fn own() -> Self {
        let pid = std::process::id();
        let (started, stack) = stat_of(pid).map_or((0, 0), |stat| (stat.started, stat.stack));
        Self { pid, started, stack, namespace: namespace() }
    }

    /// Whether it runs; `None` where that cannot be told from here.
    pub(super) fn runs(&self) -> Option<bool> {
        if self.namespace != namespace() {
            return None;
        }
        match stat_of(self.pid) {
            Some(stat) if self.started != 0 => {
                // Of a process of other rights the system does not say where the stack begins.
                let same_program = stat.stack == self.stack || stat.stack == 0 || self.stack == 0;
                Some(stat.started == self.started && same_program && !stat.finished)
            }
            // The system does not say when it started, or hides it: then only whether there is one.
            _ => Some(exists(self.pid)),
        }
    }
}

fn exists(pid: u32) -> bool {
    // 0 and what becomes negative mean groups of processes, and no process.
    let Some(pid @ 1..) = libc::pid_t::try_from(pid).ok() else {
        return false;
    };
    // SAFETY: signal 0 is sent to nobody: it asks whether one could be sent.
    let sent = unsafe { libc::kill(pid, 0) };
    sent == 0 || std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}

/// What the system says about a process.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    started: u64,
    stack: u64,
    /// It has ended, and its parent has not asked how.
    finished: bool,
}

impl Stat {
    /// From the text of `/proc/PID/stat` (proc(5)).
    fn parse(text: &[u8]) -> Option<Self> {
        // The second field is the program's name in parentheses, and may hold anything.
        let behind_name = text.iter().rposition(|&byte| byte == b')')? + 1;
        let text = std::str::from_utf8(&text[behind_name..]).ok()?;
        let field = |number: usize| text.split_ascii_whitespace().nth(number - 3);
        let ended = matches!(field(3)?, "Z" | "X" | "x");
        // A main thread that ended before the others looks like that, too.
        let threads: u32 = field(20)?.parse().ok()?;
        let number = |at: usize| field(at)?.parse().ok();
        Some(Self { started: number(22)?, stack: number(28)?, finished: ended && threads <= 1 })
    }
}

fn stat_of(pid: u32) -> Option<Stat> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let mut path = [0; 32];
    write!(&mut path[..], "/proc/{pid}/stat\0").ok()?;
    let path = CStr::from_bytes_until_nul(&path).ok()?;
    let mut text = [0; 1024];
    // SAFETY: a path that ends in NUL.
    let file = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return None;
    }
    // SAFETY: the buffer has that length. The system writes the text in one piece.
    let read = unsafe { libc::read(file, text.as_mut_ptr().cast(), text.len()) };
    // SAFETY: opened above, and used by nobody else.
    unsafe { libc::close(file) };
    Stat::parse(&text[..usize::try_from(read).ok()?])
}

fn namespace() -> u64 {
    if !cfg!(target_os = "linux") {
        return 0;
    }
    // SAFETY: a `stat` of zeros is one, and the system fills it in.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: a path that ends in NUL, and room for the answer.
    let failed = unsafe { libc::stat(c"/proc/self/ns/pid".as_ptr(), &raw mut stat) };
    #[allow(clippy::useless_conversion)] // where a long has 32 bits, so has the inode
    let inode = u64::from(stat.st_ino);
    if failed == 0 { inode } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_is_read_behind_a_name_that_looks_like_fields() {
        let line = |state, threads| {
            format!(
                "7 (a) Z 1 (b)) {state} 1 7 7 0 -1 64 0 0 0 0 0 0 0 0 20 0 {threads} 0 4711 1 2 3 4 5 42 6\n"
            )
        };
        let parsed = |state, threads| Stat::parse(line(state, threads).as_bytes()).unwrap();
        assert_eq!(parsed("S", 4), Stat { started: 4711, stack: 42, finished: false });
        assert_eq!(parsed("Z", 1), Stat { started: 4711, stack: 42, finished: true });
        assert!(!parsed("Z", 3).finished, "only its main thread has ended");
        for text in ["", "7 (name", "7 (name) S 1"] {
            assert_eq!(Stat::parse(text.as_bytes()), None);
        }
    }

    #[test]
    fn a_number_that_is_used_again_is_another_process() {
        let own = Identity::own();
        assert_eq!(own.runs(), Some(true));
        if cfg!(target_os = "linux") {
            assert_eq!(Identity { started: own.started + 1, ..own }.runs(), Some(false));
            assert_eq!(Identity { stack: own.stack + 1, ..own }.runs(), Some(false), "another program");
            assert_eq!(Identity { stack: 0, ..own }.runs(), Some(true), "not known of whom");
            assert_eq!(Identity { namespace: own.namespace + 1, ..own }.runs(), None);
        }
        for pid in [0, u32::MAX, i32::MAX as u32] {
            assert_eq!(Identity { pid, ..own }.runs(), Some(false));
        }
    }
}
