"""What differs from one request to the next: rows of a CSV file, and texts with places for them.

A place is `$name` or `${name}`, as in `string.Template`, because braces alone are JSON's. Every row has `n`,
the number of the request. The rows are used in turn, over and over.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from string import Template

from tidegate.capacity.target import TargetError

NUMBER = "n"


class Rows:
    """The rows of a file, or a single row without columns."""

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        self.columns = columns
        self._rows = rows

    @classmethod
    def none(cls) -> Rows:
        """Without a file there is only the number."""
        return cls((), ((),))

    @classmethod
    def read(cls, path: Path) -> Rows:
        """The rows of a CSV file with a heading.

        Raises:
            TargetError: It cannot be used.
        """
        try:
            # As it is: a cell in quotes may hold ends of lines.
            with path.open(encoding="utf-8-sig", newline="") as file:
                lines = list(csv.reader(file, strict=True))
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise TargetError(
                f"Cannot read {path}: {error}. Give a CSV file in UTF-8 with --data."
            ) from error
        lines = [line for line in lines if line]
        if len(lines) < 2:
            raise TargetError(f"{path} has no rows: it needs a line of column names, and rows below it.")
        columns, *rows = lines
        for at, row in enumerate(rows, 1):
            if len(row) != len(columns):
                raise TargetError(f"Row {at} of {path} has {len(row)} cells, and its heading {len(columns)}.")
        if NUMBER in columns or len(set(columns)) != len(columns):
            raise TargetError(f"The columns of {path} need names of their own, other than '{NUMBER}'.")
        return cls(columns, rows)

    def __getitem__(self, number: int) -> dict[str, str]:
        """The row for the request with this number."""
        return dict(zip(self.columns, self._rows[number % len(self._rows)], strict=True))


def template(text: str, rows: Rows, what: str) -> Callable[[Mapping[str, str]], str]:
    """What puts a row, with its number, into `text`.

    Raises:
        TargetError: `text` has places for what no row has.
    """
    parsed = Template(text)
    known = {NUMBER, *rows.columns}
    if not parsed.is_valid():
        raise TargetError(f"The {what} has a $ that begins no name: write $$ for a plain one.")
    unknown = sorted(set(parsed.get_identifiers()) - known)
    if unknown:
        there = ", ".join(f"${name}" for name in sorted(known))
        raise TargetError(
            f"The {what} has a place for ${unknown[0]}, which no row has: there is {there}. "
            "Write $$ for a plain $, or give a CSV file with that column by --data."
        )
    if not parsed.get_identifiers() and "$" not in text:
        return lambda _row: text
    return parsed.substitute
