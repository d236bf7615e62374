"""The child processes, spoken to by hand."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tidegate.demo.child import ChildError, child
from tidegate.demo.database import Address, open_database
from tidegate.demo.job import Job, ServeJob


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Address:
    address = Address("sqlite", str(tmp_path_factory.mktemp("demo") / "chatbot.db"))
    open_database(address).build()
    return address


def talk(name: str, job: Job, *lines: str) -> list[str]:
    """Everything the process writes when it is told `lines` and then nothing more."""
    text = job.line() + b"\n" + "".join(f"{line}\n" for line in lines).encode()
    done = subprocess.run(
        [sys.executable, "-m", f"tidegate.demo.{name}"],
        input=text,
        capture_output=True,
        timeout=30,
        check=True,
    )
    assert done.stderr == b""
    return done.stdout.decode().splitlines()


def test_jobs_survive_the_journey(address: Address) -> None:
    job = ServeJob(address, 100, "tidegate", 2, 8)
    assert ServeJob.parse(job.line()) == job
    assert json.loads(job.line())["database"]["kind"] == "sqlite"


def test_a_full_backend_says_no_before_any_work_is_done(address: Address) -> None:
    job = ServeJob(address, 50_000, "semaphore", workers=1, limit=1)
    said = talk("backend", job, "7 1 0", "8 2 1", "9 3 0")
    assert said[:3] == ["ready", "8 shed", "9 shed"]
    assert said[3:] in ([], ["7 ok"])


def test_without_a_gate_a_backend_takes_everything_and_drops_the_rest_at_the_end(address: Address) -> None:
    job = ServeJob(address, 50_000, "ungated", workers=2, limit=1)
    said = talk("backend", job, *(f"{number} 1 0" for number in range(1000)))
    assert said[0] == "ready"
    assert not any(line.endswith("shed") for line in said)
    assert len(said) < 100


@pytest.mark.parametrize("name", ["backend", "meter"])
def test_a_child_without_a_job_ends_in_silence(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"tidegate.demo.{name}"],
        input=b"",
        capture_output=True,
        timeout=30,
        check=True,
    )
    assert (done.stdout, done.stderr) == (b"", b"")


def test_the_meter_measures(address: Address) -> None:
    said = talk("meter", Job(address, 1000), "1 0.05", "4 0.05")
    assert said[0] == "ready"
    (rate, service_ms), (rate_of_four, _) = (map(float, line.split()) for line in said[1:])
    assert rate > 0 and rate_of_four > 0
    assert 0 < service_ms < 1000


def test_a_child_that_cannot_begin_is_an_error(address: Address, capfd: pytest.CaptureFixture[str]) -> None:
    async def begin() -> None:
        async with child("backend", replace(ServeJob(address, 1, "none", 1, 1))):
            pass

    with pytest.raises(ChildError, match="backend process ended unexpectedly"):
        asyncio.run(begin())
    assert "KeyError" in capfd.readouterr().err


def test_the_database_answers(address: Address) -> None:
    connection = open_database(address).connect()
    history = connection.history(1)
    assert 1 <= len(history) <= 10
    terms = tuple(sorted(history[0].split(), key=len, reverse=True)[:3])
    (best, *_) = connection.search(terms, 100_000)  # type: ignore[arg-type]
    assert all(term in best for term in terms)
    connection.close()


def test_an_unknown_database_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown database"):
        open_database(Address("none", str(Path())))
