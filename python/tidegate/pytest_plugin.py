"""The pytest plugin: the fixture ``tidegate_gate``.

pytest loads it in every run where Tidegate is installed, so it imports nothing that the fixture does not need
until a test asks for it. ``pytest -p no:tidegate`` leaves it out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager

    from tidegate import Gate, Stats

__all__ = ["GateFactory", "tidegate_gate"]


class GateFactory:
    """What the fixture ``tidegate_gate`` is: makes gates, fills them, and watches that they end empty."""

    def __init__(self) -> None:
        self._watched: list[tuple[Gate, Stats]] = []

    def __call__(self, name: str = "test", limit: int = 1, **options: Any) -> Gate:
        """A new gate, watched.

        Args:
            name: Its name.
            limit: Its limit.
            **options: As ``tidegate.Gate`` has them.

        Raises:
            ConfigError: A value breaks its rule.
        """
        from tidegate import Gate

        return self.watch(Gate(name, limit, **options))

    def watch(self, gate: Gate) -> Gate:
        """Ask of a gate that the application made, too, that it is at rest when the test ends.

        Args:
            gate: The gate.

        Returns:
            The gate.

        Raises:
            AssertionError: It is not at rest now: an earlier test has left something inside.
        """
        from tidegate.testing import assert_at_rest

        before = gate.stats()
        assert_at_rest(gate, since=before)
        self._watched.append((gate, before))
        return gate

    def full(self, gate: Gate) -> AbstractContextManager[None]:
        """A block in which everything asked of the gate is shed: see ``tidegate.testing.full``.

        Args:
            gate: Any gate, also one that is not watched.
        """
        from tidegate.testing import full

        return full(gate)

    def assert_at_rest(self) -> None:
        """What the end of the test asserts: nobody holds a permit of a watched gate, and none was lost.

        Raises:
            AssertionError: Something is left. The message says in which gates, and what.
        """
        from tidegate.testing import assert_at_rest

        problems: list[str] = []
        for gate, before in self._watched:
            try:
                assert_at_rest(gate, since=before)
            except AssertionError as problem:
                problems.append(str(problem))
        if problems:
            raise AssertionError("\n".join(problems))


@pytest.fixture
def tidegate_gate() -> Generator[GateFactory]:
    """Makes gates for a test, as in ``tidegate_gate("db", limit=2)``, and looks that nothing is left in them.

    ``with tidegate_gate.full(gate):`` sheds whatever asks; ``tidegate_gate.watch(gate)`` is for a gate of the
    application's own.
    """
    factory = GateFactory()
    yield factory
    try:
        factory.assert_at_rest()
    except AssertionError as problem:
        pytest.fail(str(problem), pytrace=False)  # where it was found says nothing
