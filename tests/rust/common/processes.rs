//! Directories for gates to be published in, and processes that end when they are told to.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use tidegate::{Gate, GateSum, Published};

/// A directory of its own, in memory where there is one, gone in the end.
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let shm = Path::new("/dev/shm");
        let parent = if shm.is_dir() { shm.to_owned() } else { std::env::temp_dir() };
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("tidegate-test-{}-{serial}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn gate(&self, name: &str, limit: u32) -> Gate {
        Gate::builder(name, limit).publish_in(&self.0).build().unwrap()
    }

    pub(crate) fn read(&self) -> Published {
        let published = Published::read(&self.0).unwrap();
        assert_eq!(published.unreadable, 0);
        published
    }

    pub(crate) fn sum(&self, name: &str) -> GateSum {
        let sums = self.read().sums();
        sums.into_iter().find(|sum| &*sum.gate == name).expect("the gate was published")
    }

    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<_> = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "tidegate"));
        files.sort();
        files
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Mounts a disk of 256 KiB over a directory, for this process and its children alone.
#[cfg(target_os = "linux")]
pub(crate) fn mount_small(directory: &Path) -> std::io::Result<()> {
    use std::os::unix::ffi::OsStrExt;

    // SAFETY: plain system calls; the process has one thread.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let check = |failed| if failed == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) };
    // SAFETY: as above.
    check(unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) })?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1"))?;
    let path = std::ffi::CString::new(directory.as_os_str().as_bytes())?;
    let (tmpfs, size) = (c"tmpfs".as_ptr(), c"size=256k".as_ptr());
    // SAFETY: texts that end in NUL.
    check(unsafe { libc::mount(tmpfs, path.as_ptr(), tmpfs, 0, size.cast()) })
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn mount_small(_directory: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// A child that does something, says so, and then waits for its end.
pub(crate) struct Child {
    pid: libc::pid_t,
    gone: bool,
}

impl Child {
    pub(crate) fn after(body: impl FnOnce()) -> Self {
        let mut pipe = [0; 2];
        // SAFETY: room for two descriptors.
        assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
        // SAFETY: the child runs `body`, and leaves without unwinding into this program's frames.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0, "fork failed");
        if pid == 0 {
            // SAFETY: plain system calls. The alarm ends a child that hangs, or whose parent is gone.
            unsafe { libc::alarm(60) };
            let well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_ok();
            // SAFETY: as above.
            unsafe {
                libc::write(pipe[1], [u8::from(well)].as_ptr().cast(), 1);
                loop {
                    libc::pause();
                }
            }
        }
        let mut well = [0];
        // SAFETY: descriptors from above, and room for a byte.
        unsafe {
            libc::close(pipe[1]);
            libc::read(pipe[0], well.as_mut_ptr().cast(), 1);
            libc::close(pipe[0]);
        }
        let child = Self { pid, gone: false };
        assert_eq!(well, [1], "the child failed: see its message above");
        child
    }

    pub(crate) fn pid(&self) -> u32 {
        u32::try_from(self.pid).unwrap()
    }

    /// Ends it at once. It stays a zombie until `reap`.
    pub(crate) fn kill(&self) {
        // SAFETY: a child of ours that was not waited for.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let ended = libc::WEXITED | libc::WNOWAIT;
            assert_eq!(libc::waitid(libc::P_PID, self.pid(), &raw mut info, ended), 0);
        }
    }

    pub(crate) fn reap(&mut self) {
        if !self.gone {
            self.gone = true;
            // SAFETY: a child of ours that was not waited for.
            unsafe {
                libc::kill(self.pid, libc::SIGKILL);
                libc::waitpid(self.pid, std::ptr::null_mut(), 0);
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.reap();
    }
}
