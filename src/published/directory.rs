//! The reader's side: all files of a directory, and the finished ones folded into `retired`.
//!
//! Whoever reads holds the directory's lock, so that no two fold at once and nobody sees a file neither as
//! itself nor in the sums. The system gives the lock back when its holder dies.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use crate::sums::{Presence, Published, PublishedGate};
use crate::sync::AtomicU64;

use super::layout::{Contents, Front};
use super::mapping::SUFFIX;
use super::retired::Retired;

const LOCK: &str = "lock";
/// One for each layout: versions whose counts differ do not touch each other's.
const RETIRED: &str = "retired-3";
const UNFINISHED: &str = "retired-3.unfinished";
/// A reader is done within milliseconds; one that was stopped must not stop all others.
const PATIENCE: Duration = Duration::from_secs(1);

/// Finished files that one reading adds up. What `retired` says of them then fits the room that is left for it
/// (`mapping`), and a reading takes milliseconds however many there are.
const FOLDED_AT_ONCE: usize = 256;

pub(crate) fn read(directory: &Path) -> io::Result<Published> {
    read_and_fold(directory).map_err(|error| {
        let text = format!("gates published in {}: {error}", directory.display());
        io::Error::new(error.kind(), text)
    })
}

fn read_and_fold(directory: &Path) -> io::Result<Published> {
    let _lock = Lock::take(&directory.join(LOCK))?;
    let names = files(directory)?;
    let mut published = Published::default();
    let Some(mut retired) = load_retired(directory)? else {
        published.unreadable = 1; // and nothing is folded into what is not understood
        let known = BTreeSet::new();
        read_files(directory, &names, &known, &mut published, |_, _| {});
        return Ok(published);
    };
    published.retired = retired.gates.clone().into_iter().collect();
    // Those that are gone from the directory need not be known any more: a name is never used again.
    retired.holds.retain(|name| names.contains(name));
    let known: BTreeSet<String> = retired.holds.iter().cloned().collect();
    let mut finished = 0;
    read_files(directory, &names, &known, &mut published, |name, gate| {
        if matches!(gate.presence, Presence::Dead | Presence::Dropped) && finished < FOLDED_AT_ONCE {
            retired.take_in(name.to_owned(), &gate.gate, &gate.stats.counts);
            finished += 1;
        }
    });
    // What this reading says is the same whether or not folding succeeds.
    if finished == 0 || save_retired(directory, &retired).is_ok() {
        for name in &retired.holds {
            let _ = fs::remove_file(directory.join(name));
        }
    }
    Ok(published)
}

/// The names of the files of gates, oldest first.
fn files(directory: &Path) -> io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(directory)? {
        if let Some(name) = entry?.file_name().to_str().filter(|name| name.ends_with(SUFFIX)) {
            names.insert(name.to_owned());
        }
    }
    Ok(names)
}

fn read_files(
    directory: &Path,
    names: &BTreeSet<String>,
    known: &BTreeSet<String>,
    published: &mut Published,
    mut each: impl FnMut(&str, &PublishedGate),
) {
    for name in names.difference(known) {
        match File::open(&directory.join(name)) {
            Ok(file) => match file.contents() {
                Some(contents) => {
                    let gate = read_gate(&contents);
                    each(name, &gate);
                    published.gates.push(gate);
                }
                None => published.unreadable += 1,
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {} // somebody tidies up
            Err(_) => published.unreadable += 1,
        }
    }
}

fn read_gate(contents: &Contents<'_>) -> PublishedGate {
    let (presence, stats) = contents.read();
    PublishedGate {
        gate: contents.gate.clone(),
        pid: contents.pid(),
        presence,
        closed: contents.closed(),
        stats,
    }
}

/// `None`: there is something that cannot be understood.
fn load_retired(directory: &Path) -> io::Result<Option<Retired>> {
    match fs::read(directory.join(RETIRED)) {
        Ok(bytes) => Ok(String::from_utf8(bytes).ok().and_then(|text| Retired::parse(&text))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some(Retired::default())),
        Err(error) => Err(error),
    }
}

fn save_retired(directory: &Path, retired: &Retired) -> io::Result<()> {
    let (unfinished, finished) = (directory.join(UNFINISHED), directory.join(RETIRED));
    // One that another user left behind may be removed, but not written.
    let _ = fs::remove_file(&unfinished);
    fs::write(&unfinished, retired.to_text())?;
    fs::rename(&unfinished, &finished)
}

/// The directory's lock, held.
struct Lock(OwnedFd);

impl Lock {
    fn take(path: &Path) -> io::Result<Self> {
        // Only read: that is enough to lock it, also where another user made it.
        let open = OpenOptions::new().read(true).custom_flags(libc::O_CREAT).mode(0o644).open(path)?;
        let lock = OwnedFd::from(open);
        let deadline = Instant::now() + PATIENCE;
        loop {
            // SAFETY: an open file.
            if unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
                return Ok(Self(lock));
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::WouldBlock {
                return Err(error);
            }
            if Instant::now() >= deadline {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "locked for longer than a second"));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Said, since a child that was forked meanwhile has the file open, too.
        // SAFETY: an open file.
        unsafe { libc::flock(self.0.as_raw_fd(), libc::LOCK_UN) };
    }
}

/// A file, mapped to be read.
struct File {
    start: NonNull<Front>,
    bytes: usize,
}

impl File {
    fn open(path: &Path) -> io::Result<Self> {
        // Without waiting, should it be a pipe.
        let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let metadata = file.metadata()?;
        let bytes = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
        if !metadata.is_file() || bytes < size_of::<Front>() || bytes % align_of::<AtomicU64>() != 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let (access, kind) = (libc::PROT_READ, libc::MAP_SHARED);
        // SAFETY: anywhere, so nothing is replaced. The directory is ours alone (the docs say so): nobody
        // makes a file shorter while it is mapped.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { start: NonNull::new(start.cast()).expect("nothing is ever mapped at null"), bytes })
    }

    fn contents(&self) -> Option<Contents<'_>> {
        let cells = (self.bytes - size_of::<Front>()) / size_of::<AtomicU64>();
        // SAFETY: mapped until `self` is dropped, from the beginning of a page, and at least that long;
        // whatever stands there are atomics, which are only loaded.
        let front = unsafe { self.start.as_ref() };
        // SAFETY: so many cells are left behind it.
        let tail = unsafe { std::slice::from_raw_parts(self.start.add(1).cast().as_ptr(), cells) };
        Contents::check(front, tail)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and no reference outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
