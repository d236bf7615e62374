"""Where Django looks for the engine."""

# Django is not typed.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

from django.db.backends.sqlite3 import base  # type: ignore[import-untyped]

from tidegate.django.engine import GatedDatabaseWrapper


class DatabaseWrapper(GatedDatabaseWrapper, base.DatabaseWrapper):  # type: ignore[misc]
    """Django's engine for SQLite, with a gate. A database in memory, as tests have it, passes without."""

    def needs_permit(self) -> bool:
        """Not for a database in memory, whose connection Django never closes."""
        return super().needs_permit() and not self.is_in_memory_db()
