"""A gate for any of Django's database engines.

    class DatabaseWrapper(GatedDatabaseWrapper, postgis.DatabaseWrapper):
        pass

Such a class, in a module ``base`` of its own package, is an engine.
"""

# Django is not typed.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from django.core.exceptions import ImproperlyConfigured  # type: ignore[import-untyped]
from django.db.backends.base.base import (  # type: ignore[import-untyped]
    NO_DB_ALIAS,
    BaseDatabaseWrapper,
)

from tidegate._held import check_out
from tidegate.django.gates import gate_of_database

if TYPE_CHECKING:
    from tidegate._native import Gate, Hold


class GatedDatabaseWrapper(BaseDatabaseWrapper):  # type: ignore[misc]
    """Goes before a DatabaseWrapper in an engine's bases: its connection holds a permit while it is open.

    Django opens one for each thread that asks for it, and closes it at the end of the request. A Shed passes
    all of Django's database code as it is: it is no database error.
    """

    overload_errors: tuple[type[BaseException], ...] = ()
    """What says, while connecting, that there is too much to do."""

    _hold: Hold | None = None

    @cached_property
    def gate(self) -> Gate:
        """The gate of this database.

        Raises:
            ImproperlyConfigured: The settings name none, or keep idle connections open.
        """
        self._refuse_persistent_connections()
        return gate_of_database(self.settings_dict, self.alias)

    def connect(self) -> None:
        """Take a permit and connect.

        Raises:
            Shed: The gate has no room. Nothing was waited for.
            ImproperlyConfigured: See `gate`.
        """
        if not self.needs_permit():
            super().connect()
            return
        hold = check_out(self.gate)
        try:
            super().connect()
        except BaseException as error:
            # Here and not around get_new_connection: a connection that could not be prepared stays open.
            if self.connection is not None:
                self._hold = hold
            elif isinstance(error, self.overload_errors):
                hold.leave("overload")
            else:
                hold.fail(error)
            raise
        self._hold = hold

    def needs_permit(self) -> bool:
        """Whether it is a connection that users wait for, not one that creates or drops test databases."""
        return bool(self.alias != NO_DB_ALIAS)

    def _close(self) -> None:
        hold, self._hold = self._hold, None
        if hold is None:
            super()._close()
        else:
            with hold:
                super()._close()

    def _refuse_persistent_connections(self) -> None:
        age = self.settings_dict["CONN_MAX_AGE"]
        if age == 0 or self.settings_dict["OPTIONS"].get("pool"):  # with a pool, Django itself insists on 0
            return
        raise ImproperlyConfigured(
            f"DATABASES[{self.alias!r}]['CONN_MAX_AGE'] must be 0 with Tidegate's engine, got {age!r}: "
            "a thread's idle connection would keep its permit. Use OPTIONS['pool'], or Django's own engine "
            "behind 'tidegate.django.middleware.GateMiddleware'."
        )
