"""The seam between the chatbot and its database.

The demo builds the database once, in the parent process. Every process that uses it then opens it again
from its `Address`, and every worker thread holds one `Connection`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Address:
    """Where the database is: enough for another process to open it."""

    kind: str
    location: str


class Connection(Protocol):
    """What one worker thread can ask of the database."""

    def history(self, conversation: int) -> list[str]:
        """The last few messages of a conversation, newest first."""
        ...

    def search(self, terms: tuple[str, str, str], depth: int) -> list[str]:
        """The few best matches for `terms` among the first `depth` messages: the expensive query."""
        ...

    def close(self) -> None:
        """Give it back."""
        ...


class Database(Protocol):
    """A database that can hold the chatbot's messages."""

    def build(self) -> None:
        """Create the schema and write the corpus."""
        ...

    def connect(self) -> Connection:
        """A new connection, for the calling thread."""
        ...


def open_database(address: Address) -> Database:
    """The database at `address`. Each kind is imported only when asked for."""
    if address.kind == "sqlite":
        from tidegate.demo.sqlite import SqliteDatabase

        return SqliteDatabase(address.location)
    raise ValueError(f"unknown database {address.kind!r}")
