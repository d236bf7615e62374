"""How hard a PostgreSQL works, as a signal for gates (``pip install tidegate[psycopg]``).

    from tidegate import Gate, Signal
    from tidegate.postgres import Waits

    gate = Gate("db", limit=20, signals=[Signal("db", function=Waits(dsn, cores=8))])

CPU and memory of the application do not see a database drown. ``Waits`` asks the database itself, once a
second, which of the sessions that run a query work and which wait. It has one connection of its own that
passes no gate and no pool: a full pool must not hide what is asked for because of it.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, cast

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tidegate._errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    _Connection = psycopg.Connection[Any]

__all__ = ["Waits"]


_logger = logging.getLogger("tidegate")

# Nobody's query is worth more than a second of a database that is short of everything.
_STATEMENT_TIMEOUT = "1s"
# Unless the address says otherwise. A server that is gone without a word is noticed within seconds.
_CONNECTION = {
    "connect_timeout": "2",
    "application_name": "tidegate",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
# After a failure it waits twice as long each time, up to this; never less than the interval.
_LONGEST_PAUSE = 30.0
# A reading is of use for so many intervals.
_FRESH = 3
# If nobody has asked for so long, the connection is given up until somebody does.
_IDLE_SECONDS = 60.0

# Who waits for the client, or sleeps because the query says so, neither works nor waits for the database.
_LOOK = """
SELECT count(*) FILTER (WHERE wait_event_type IS NULL),
       count(*) FILTER (WHERE wait_event_type IN ('LWLock', 'Lock', 'BufferPin', 'IO', 'IPC'))
FROM pg_stat_activity
WHERE state = 'active' AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""


class Waits:
    """Which share of a PostgreSQL's busy sessions wait. Call it for the latest reading: it never waits.

    A session waits that has a lock, a page, a disk or another process to wait for; and, where ``cores`` is
    given, one that is more than there are processors to run it: PostgreSQL does not say who waits for
    these. The pressure is the waiting ones by all busy ones, and by ``floor`` while there are fewer.

    A thread that the first call starts looks once each ``interval``, on a connection of its own with a
    statement timeout of a second; it ends when nobody has called for a minute. Until the first look, and
    while the database does not answer, the reading is None: unknown. After a failure the next attempt waits
    twice as long each time, up to 30 s. The logger "tidegate" is told of the first failure, and of the end.

    Without the role ``pg_read_all_stats`` only sessions of the same user are seen. Connect to the server
    itself: behind a pooler the statement timeout would be somebody else's.

    Args:
        conninfo: Where to connect, as for ``psycopg.connect``; or a function that says so each time, for
            passwords that change.
        cores: How many processors the database has.
        interval: Seconds between two looks, from 0.1 to 60.
        floor: With fewer sessions at work the pressure is less than their share: one that waits alone is no
            overload.

    Raises:
        ConfigError: A value breaks its rule.
        TypeError: A value has the wrong type.
    """

    def __init__(
        self,
        conninfo: str | Callable[[], str],
        *,
        cores: int | None = None,
        interval: float = 1.0,
        floor: int = 8,
    ) -> None:
        _check_number("interval", interval, 0.1, (int, float), most=_IDLE_SECONDS)
        for name, number in (("cores", 1 if cores is None else cores), ("floor", floor)):
            _check_number(name, number, 1, (int,))
        if callable(conninfo):
            self._conninfo = conninfo
        else:
            _parts(conninfo)
            self._conninfo = lambda: conninfo
        self._cores = cores
        self._interval = float(interval)
        self._floor = floor
        self._looks: list[_Look] = []  # one at most
        # Whoever forgets this object ends the thread; so does the interpreter's exit.
        weakref.finalize(self, _stop, self._looks)
        self._starting = threading.Lock()

    def __call__(self) -> float | None:
        """The latest reading: a share from 0 to 1, or None where that is not known."""
        look = self._current() or self._start()
        if look is None:
            return None
        look.asked = time.monotonic()
        latest = look.latest
        if latest is None or look.asked - latest.at > _FRESH * self._interval:
            return None
        return pressure(latest.working, latest.waiting, self._cores, self._floor)

    def close(self) -> None:
        """End the thread and its connection. A further call starts them again."""
        _stop(self._looks)

    def _current(self) -> _Look | None:
        look = next(iter(self._looks), None)
        return None if look is None or look.over else look

    def _start(self) -> _Look | None:
        """A look that is new; None where another thread is about to start it."""
        if any(look.pid != os.getpid() for look in self._looks):
            # A fork's child: whoever held the lock may not exist here, nor does the thread that looks.
            self._starting = threading.Lock()
            self._looks.clear()
        if not self._starting.acquire(blocking=False):
            return None
        try:
            look = self._current()
            if look is None:
                look = _Look(self._conninfo, self._interval)
                threading.Thread(target=look.run, name="tidegate-postgres-waits", daemon=True).start()
                self._looks[:] = [look]
            return look
        finally:
            self._starting.release()


def _stop(looks: list[_Look]) -> None:
    for look in looks:
        # In a fork's child nobody looks, and the thread may have been in the middle of its event.
        if look.pid == os.getpid():
            look.stop.set()
    looks.clear()


def pressure(working: int, waiting: int, cores: int | None, floor: int) -> float:
    """Which share waits, with those that have no processor among them.

    Args:
        working: Sessions with a query that wait for nothing that PostgreSQL knows of.
        waiting: Those that wait for a lock, a page, a disk or another process.
        cores: How many can work at a time; None where that is not known.
        floor: The least number that the waiting are a share of.
    """
    without_processor = 0 if cores is None else max(0, working - cores)
    return (waiting + without_processor) / max(working + waiting, floor)


class _Seen:
    """What a look saw, and when."""

    __slots__ = ("at", "waiting", "working")

    def __init__(self, working: int, waiting: int) -> None:
        self.working = working
        self.waiting = waiting
        self.at = time.monotonic()


class _Look:
    """One run of the thread. It shares only single attributes with those who call, so there is no lock.

    The connection is the thread's alone: in a fork's child nobody has it, and nobody closes it there.
    """

    def __init__(self, conninfo: Callable[[], str], interval: float) -> None:
        self.pid = os.getpid()
        self.stop = threading.Event()
        self.asked = time.monotonic()
        self.latest: _Seen | None = None
        self._ended = False
        self._conninfo = conninfo
        self._interval = interval

    @property
    def over(self) -> bool:
        """Whether nobody looks any more."""
        return self._ended or self.pid != os.getpid()

    def run(self) -> None:
        """Look again and again, until told to stop or forgotten."""
        failures = 0
        connection: _Connection | None = None
        try:
            while time.monotonic() - self.asked < _IDLE_SECONDS:
                try:
                    if connection is None:
                        connection = _connect(self._conninfo())
                    self.latest = _seen(connection)
                except Exception as error:
                    if failures == 0:
                        _logger.warning("event=postgres_waits_unknown error=%r", str(error).strip())
                    failures += 1
                    if connection is not None:
                        connection.close()
                        connection = None
                else:
                    if failures:
                        _logger.info("event=postgres_waits_known failures=%d", failures)
                    failures = 0
                if self.stop.wait(_pause(self._interval, failures)):
                    break
        finally:
            self._ended = True
            if connection is not None:
                connection.close()


def _pause(interval: float, failures: int) -> float:
    return max(interval, min(interval * 2.0 ** min(failures, 16), _LONGEST_PAUSE))


def _connect(conninfo: str) -> _Connection:
    told = make_conninfo("", **{**_CONNECTION, **_parts(conninfo)})
    connection = psycopg.connect(told, autocommit=True, prepare_threshold=None)
    connection.execute("SELECT set_config('statement_timeout', %s, false)", (_STATEMENT_TIMEOUT,))
    return connection


def _parts(conninfo: str) -> dict[str, Any]:
    """The address by parts. One that is malformed is not repeated: a password may stand in any place."""
    if not isinstance(conninfo, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            f"conninfo must be a str or a function that returns one, got {type(conninfo).__name__}"
        )
    try:
        return dict(conninfo_to_dict(conninfo))
    except psycopg.ProgrammingError:
        raise ConfigError(
            "conninfo is no PostgreSQL address, as postgresql://user@host/database is"
        ) from None


def _seen(connection: _Connection) -> _Seen:
    working, waiting = connection.execute(_LOOK).fetchone() or (0, 0)
    return _Seen(working, waiting)


def _check_number(
    name: str, number: object, least: float, kinds: tuple[type, ...], *, most: float = math.inf
) -> None:
    if isinstance(number, bool) or not isinstance(number, kinds):
        wanted = "a number" if float in kinds else "an int"
        raise TypeError(f"{name} must be {wanted}, got {number!r} ({type(number).__name__})")
    if not least <= cast("float", number) <= most or number == math.inf:
        rule = f"at least {least:g}" if most == math.inf else f"from {least:g} to {most:g}"
        raise ConfigError(f"{name} must be {rule}, got {number!r}")
