"""The gates that settings name or describe."""

# Django is not typed.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from django.core.exceptions import ImproperlyConfigured  # type: ignore[import-untyped]
from django.utils.module_loading import import_string  # type: ignore[import-untyped]

from tidegate._native import Gate

# Kept by setting and arguments, so that all threads have one, and tests that override the setting another.
_described: dict[tuple[str, str], Gate] = {}


def database_gate(alias: str = "default") -> Gate:
    """The gate of a database whose engine is one of Tidegate's.

    Args:
        alias: The key in DATABASES.

    Raises:
        ImproperlyConfigured: ``DATABASES[alias]["TIDEGATE"]`` is missing or wrong.
        ConnectionDoesNotExist: There is no such database.
    """
    from django.db import connections  # type: ignore[import-untyped] # it reads the settings

    return gate_of_database(cast("Mapping[str, Any]", connections[alias].settings_dict), alias)


def gate_of_database(database: Mapping[str, Any], alias: str) -> Gate:
    """The gate that an entry of DATABASES names or describes.

    Raises:
        ImproperlyConfigured: It does neither.
    """
    return gate_from_setting(database.get("TIDEGATE"), f"DATABASES[{alias!r}]['TIDEGATE']", alias)


def gate_from_setting(value: object, setting: str, name: str) -> Gate:
    """The gate that the value of a setting names or describes.

    Args:
        value: The dotted path of a Gate, or a dict of a Gate's arguments. A Gate itself is refused: Django
            copies settings and hands them to other processes, which a Gate cannot follow.
        setting: What the setting is called, for errors. The same description of the same setting is the same
            gate.
        name: The gate's name, unless the dict has one.

    Raises:
        ImproperlyConfigured: The value is neither.
    """
    if isinstance(value, str):
        return _named(value, setting)
    if isinstance(value, Mapping):
        return _made(dict(cast("Mapping[str, Any]", value)), setting, name)
    raise ImproperlyConfigured(
        f"{setting} must be the dotted path of a Gate or a dict of a Gate's arguments, got {value!r}"
    )


def _named(path: str, setting: str) -> Gate:
    try:
        found = import_string(path)
    except ImportError as error:
        raise ImproperlyConfigured(f"{setting} must be the dotted path of a Gate: {error}") from error
    if not isinstance(found, Gate):
        raise ImproperlyConfigured(f"{setting} must be the dotted path of a Gate: {path!r} is {found!r}")
    return found


def _made(arguments: dict[str, Any], setting: str, name: str) -> Gate:
    key = setting, repr(arguments)
    if key not in _described:
        arguments.setdefault("name", name)
        try:
            gate = Gate(**arguments)
        except (TypeError, ValueError) as error:
            raise ImproperlyConfigured(f"{setting} must be a Gate's arguments: {error}") from error
        _described.setdefault(key, gate)  # of threads that come at once, the first one's
    return _described[key]
