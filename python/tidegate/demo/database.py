"""The seam between the chatbot and its database.

The demo builds the database once, in the parent process. Every process that uses it then opens it again
from its `Address`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol


class DatabaseError(Exception):
    """The database cannot be had, or does not do its part. The message never holds a password."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where the database is: enough for another process to open it."""

    kind: str
    location: str = field(repr=False)
    """It may hold a password."""
    own: bool = False
    """Its processes are on this machine, and the demo's."""


class Connection(Protocol):
    """What the chatbot can ask of the database."""

    def history(self, conversation: int) -> list[str]:
        """The last few messages of a conversation, newest first."""
        ...

    def search(self, terms: tuple[str, str, str], depth: int) -> list[str]:
        """The few best matches for `terms` among the first `depth` messages: the expensive query."""
        ...

    def stopwatch(self) -> float:
        """Seconds, on the clock that shows best what a query costs: processor time where that can be had."""
        ...

    def close(self) -> None:
        """Give it back."""
        ...


class Pool(Protocol):
    """The connections of a backend process."""

    def lend(self) -> AbstractContextManager[Connection]:
        """A connection for the calling thread, for as long as the block takes."""
        ...


class Database(Protocol):
    """A database that can hold the chatbot's messages."""

    def build(self) -> None:
        """Create the schema and write the corpus."""
        ...

    def connect(self) -> Connection:
        """A new connection, for the calling thread."""
        ...

    def pool(self, arm: str, workers: int) -> Pool:
        """The pool that a backend with so many threads has behind the door of `arm`."""
        ...

    def watch(self) -> AbstractAsyncContextManager[Sequence[int]]:
        """How many queries ran at once, looked at again and again while the block runs.

        Empty where the database does not say.
        """
        ...

    def clear(self) -> None:
        """End what a backend process that is gone has left running; returns when nothing is."""
        ...


def open_database(address: Address) -> Database:
    """The database at `address`. Each kind is imported only when asked for."""
    if address.kind == "sqlite":
        from tidegate.demo.sqlite import SqliteDatabase

        return SqliteDatabase(address.location)
    if address.kind == "postgres":
        from tidegate.demo.postgres import PostgresDatabase

        return PostgresDatabase(address.location, own=address.own)
    raise ValueError(f"unknown database {address.kind!r}")
