"""Where Django looks for the engine."""

# Django is not typed.
# pyright: reportMissingTypeStubs=false, reportUntypedBaseClass=false

from __future__ import annotations

from django.db.backends.postgresql import base  # type: ignore[import-untyped]

from tidegate.django.engine import GatedDatabaseWrapper


def _overload_errors() -> tuple[type[BaseException], ...]:
    try:
        from psycopg.errors import ConnectionTimeout
        from psycopg_pool import PoolTimeout, TooManyRequests
    except ImportError:  # psycopg2, or no pool
        return ()
    return ConnectionTimeout, PoolTimeout, TooManyRequests


class DatabaseWrapper(GatedDatabaseWrapper, base.DatabaseWrapper):  # type: ignore[misc]
    """Django's engine for PostgreSQL, with a gate. Right with ``OPTIONS["pool"]``, too."""

    overload_errors = _overload_errors()
