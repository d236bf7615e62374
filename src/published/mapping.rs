//! The writer's side: a file of its own for each gate and process.
//!
//! In a fork's child the mapping is still that of the parent's file, which is not the child's to write. So
//! the child's fork handler maps a new file over the same addresses, before anything else touches the gate.
//! Where it cannot have one (the directory is gone, the disk is full) it maps private memory: the gate works
//! on, and only its counts are not published. The handler makes plain system calls on buffers on its stack.
//!
//! The file is given its blocks when it is made. A sparse file on a disk that fills up later would end the
//! process at the first count that needs a block. It is made only where a little more would have had room,
//! too: so files of gates never take what a reader needs to add up finished ones, which makes room.

use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::state::{GateState, Tail};
use crate::sync::AtomicU64;

use super::layout::{Front, file_bytes};
use super::process::Identity;

/// How the files of gates end.
pub(super) const SUFFIX: &str = ".tidegate";

/// The memory of one gate.
pub(crate) struct Mapping {
    start: NonNull<Front>,
    timing: bool,
    gate: Box<str>,
    /// Absolute: a process may change where it stands.
    directory: Box<[u8]>,
    /// Not so where there was no room for a file.
    is_file: AtomicBool,
}

// SAFETY: it owns what it points to, and all of that is atomic.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    pub(crate) fn create(directory: &Path, gate: &str, timing: bool) -> io::Result<Self> {
        let directory = directory.canonicalize()?;
        let file = create_or_make_room(&directory, file_bytes(timing))?;
        let start = map(ptr::null_mut(), file_bytes(timing), file.as_ref())?;
        let is_file = AtomicBool::new(file.is_some());
        let directory = directory.into_os_string().into_vec().into_boxed_slice();
        let mapping = Self { start, timing, gate: gate.into(), directory, is_file };
        if let Some(file) = file {
            mapping.begin(file)?;
        }
        Ok(mapping)
    }

    /// Makes the file that is mapped one that readers see.
    fn begin(&self, file: File) -> io::Result<()> {
        self.front().begin(&self.gate, self.timing, Identity::own());
        file.finish()
    }

    fn front(&self) -> &Front {
        // SAFETY: it is mapped until `self` is dropped, begins at a page, and holds atomics only.
        unsafe { self.start.as_ref() }
    }

    fn bytes(&self) -> usize {
        file_bytes(self.timing)
    }

    pub(crate) fn state(&self) -> NonNull<GateState> {
        NonNull::from(&self.front().state)
    }

    pub(crate) fn tail(&self) -> NonNull<[AtomicU64]> {
        // SAFETY: the mapping is `Front` and then as many cells as there are in a tail.
        let first = unsafe { self.start.add(1) }.cast();
        NonNull::slice_from_raw_parts(first, Tail::cells(self.timing))
    }

    /// Whether it is in a file, for others to read.
    pub(crate) fn is_file(&self) -> bool {
        self.is_file.load(Ordering::Relaxed)
    }

    pub(crate) fn note_forked(&self) {
        self.front().note_forked();
    }

    /// In a fork's child: leaves the parent's file alone from now on. What is mapped then is all zero.
    pub(crate) fn renew(&self) {
        let published = self.renew_in_file().is_ok();
        if !published && self.map_over(None).is_err() {
            // What is mapped here would be the parent's, and each count in it a false one.
            std::process::abort();
        }
        self.is_file.store(published, Ordering::Relaxed);
    }

    fn renew_in_file(&self) -> io::Result<()> {
        let file = File::create(&self.directory, self.bytes())?;
        self.map_over(Some(&file))?;
        self.begin(file)
    }

    /// Maps a file, or private memory, where the old mapping is.
    fn map_over(&self, file: Option<&File>) -> io::Result<()> {
        map(self.start.as_ptr(), self.bytes(), file).map(|_| ())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.front().note_dropped();
        // SAFETY: mapped with this length, and no reference outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes()) };
    }
}

/// A file; where there is no room, one in the place of finished ones. `None`: there is none even so. What cannot
/// be written at all is an error of whoever configured it, but a disk that fills up must not end a service.
fn create_or_make_room(directory: &Path, bytes: usize) -> io::Result<Option<File>> {
    let create = || match File::create(directory.as_os_str().as_bytes(), bytes) {
        Err(error) if is_lack_of_room(&error) => Ok(None),
        created => created.map(Some),
    };
    match create()? {
        None if super::read(directory).is_ok() => create(),
        created => Ok(created),
    }
}

fn is_lack_of_room(error: &io::Error) -> bool {
    let lacks = [libc::ENOSPC, libc::EDQUOT, libc::EFBIG, libc::EMFILE, libc::ENFILE, libc::ENOMEM];
    error.raw_os_error().is_some_and(|error| lacks.contains(&error))
}

/// Maps a file, or private memory of zeros: over what is mapped `at` a place, or anywhere for null.
fn map(at: *mut Front, bytes: usize, file: Option<&File>) -> io::Result<NonNull<Front>> {
    let fixed = if at.is_null() { 0 } else { libc::MAP_FIXED };
    let kind = if file.is_some() { libc::MAP_SHARED } else { libc::MAP_PRIVATE | libc::MAP_ANONYMOUS };
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let descriptor = file.map_or(-1, |file| file.descriptor.as_raw_fd());
    // SAFETY: anywhere, where nothing is replaced; or over a mapping of the same length that belongs to the
    // caller, and whose references see atomics of the same kind there.
    let mapped = unsafe { libc::mmap(at.cast(), bytes, access, kind | fixed, descriptor, 0) };
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(NonNull::new(mapped.cast()).expect("nothing is ever mapped at null"))
}

/// A new file under a name that readers pass over, and which it takes with it if it does not get its own. The
/// name is on the stack, for the handlers of a fork.
struct File {
    descriptor: OwnedFd,
    unfinished: [u8; PATH],
}

const PATH: usize = 4096; // the longest that Linux takes
const UNFINISHED: &str = ".unfinished";
/// Room that must be left where a file is made: for what `directory` writes, and its older version.
const SPARE: usize = 64 * 1024;

impl File {
    /// A file of zeros that has its blocks.
    fn create(directory: &[u8], bytes: usize) -> io::Result<Self> {
        let file = Self::create_empty(directory)?;
        reserve(&file.descriptor, bytes + SPARE)?;
        cut(&file.descriptor, bytes)?;
        Ok(file)
    }

    /// The name is new for ever, also where a process has the number of an earlier one. It begins with the
    /// time, so that files in the order of their names are in the order of their age.
    fn create_empty(directory: &[u8]) -> io::Result<Self> {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        loop {
            let mut path = [0; PATH];
            let mut rest = &mut path[..];
            let (now_ns, pid) = (wall_clock_ns(), std::process::id());
            let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
            rest.write_all(directory)?;
            write!(rest, "/{now_ns:016x}-{pid}-{serial}{SUFFIX}{UNFINISHED}\0")?;
            let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
            // SAFETY: the path ends in NUL.
            let descriptor = unsafe { libc::open(path.as_ptr().cast(), flags, READABLE) };
            if descriptor >= 0 {
                // SAFETY: opened above, and owned by nobody else.
                return Ok(Self {
                    descriptor: unsafe { OwnedFd::from_raw_fd(descriptor) },
                    unfinished: path,
                });
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::AlreadyExists {
                return Err(error);
            }
        }
    }

    /// Gives the file its own name.
    fn finish(mut self) -> io::Result<()> {
        let mut finished = self.unfinished;
        let length = finished.iter().position(|&byte| byte == 0).unwrap_or(0);
        finished[length - UNFINISHED.len()] = 0;
        // SAFETY: both paths end in NUL.
        if unsafe { libc::rename(self.unfinished.as_ptr().cast(), finished.as_ptr().cast()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        self.unfinished[0] = 0; // nothing is there to be removed
        Ok(())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if self.unfinished[0] != 0 {
            // SAFETY: the path ends in NUL.
            unsafe { libc::unlink(self.unfinished.as_ptr().cast()) };
        }
    }
}

/// By everybody: a server may make the file before it gives up its rights.
const READABLE: libc::c_uint = 0o644;

fn wall_clock_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: room for the answer. This clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut now) };
    #[allow(clippy::cast_sign_loss)] // a part of a name
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}

fn cut(file: &OwnedFd, bytes: usize) -> io::Result<()> {
    let length = libc::off_t::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: a file that is open for writing.
    let cut = unsafe { libc::ftruncate(file.as_raw_fd(), length) };
    if cut == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Gives the file its length and its blocks.
#[cfg(target_os = "linux")]
fn reserve(file: &OwnedFd, bytes: usize) -> io::Result<()> {
    let length = libc::off_t::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
    loop {
        // SAFETY: a file that is open for writing.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) } {
            0 => return Ok(()),
            libc::EINTR => {}
            libc::EOPNOTSUPP | libc::EINVAL => return write_zeros(file, bytes),
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn reserve(file: &OwnedFd, bytes: usize) -> io::Result<()> {
    write_zeros(file, bytes)
}

fn write_zeros(file: &OwnedFd, mut bytes: usize) -> io::Result<()> {
    static ZEROS: [u8; 4096] = [0; 4096];
    while bytes > 0 {
        let some = bytes.min(ZEROS.len());
        // SAFETY: there are that many zeros.
        let written = unsafe { libc::write(file.as_raw_fd(), ZEROS.as_ptr().cast(), some) };
        match usize::try_from(written) {
            Ok(written) => bytes -= written,
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
    }
    Ok(())
}
