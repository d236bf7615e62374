"""A table of a report. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.report.markup import text


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that belong together."""

    rows: Sequence[Sequence[str]]
    """The first cell of each names it."""
    heading: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Figures under headings, one for each column."""

    caption: str
    headings: Sequence[str]
    groups: Sequence[Group]
    note: str = ""

    def html(self) -> str:
        """The table, in a box of its own: on a narrow screen it scrolls and the page does not."""
        columns = "".join(f'<th scope="col">{text(heading)}</th>' for heading in self.headings)
        bodies = "".join(self._body(group) for group in self.groups)
        note = f'<p class="note">{text(self.note)}</p>' if self.note else ""
        # Whoever has no mouse scrolls by keyboard, which needs the focus.
        return (
            f'<div><div class="table" tabindex="0" role="group" aria-label="{text(self.caption)}">'
            f"<table><caption>{text(self.caption)}</caption>"
            f"<thead><tr>{columns}</tr></thead>{bodies}</table></div>{note}</div>\n"
        )

    def _body(self, group: Group) -> str:
        heading = ""
        if group.heading is not None:
            heading = (
                f'<tr><th scope="rowgroup" colspan="{len(self.headings)}">'
                f"<span>{text(group.heading)}</span></th></tr>"
            )
        return f"<tbody>{heading}{''.join(_row(row) for row in group.rows)}</tbody>"


def _row(row: Sequence[str]) -> str:
    name, *cells = row
    return f'<tr><th scope="row">{text(name)}</th>{"".join(f"<td>{text(cell)}</td>" for cell in cells)}</tr>'
