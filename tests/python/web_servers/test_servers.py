"""Behind real servers with processes of their own: gunicorn and its workers, uvicorn, hypercorn."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from gatekit import until
from serverkit import Server, served_by

ALL = ["gunicorn sync", "gunicorn gthread", "gunicorn asgi", "uvicorn", "hypercorn"]


def stream(server: Server, path: str, stack: ExitStack) -> tuple[httpx.Response, Iterator[str]]:
    response = stack.enter_context(server.client.stream("GET", path))
    return response, response.iter_lines()


def hooks(fault: str, *names: str) -> list:
    """Servers, with the cell of the leak matrix that each is in."""
    of = {"sync": "wsgi", "gthread": "wsgi"}
    return [
        pytest.param(n, marks=pytest.mark.leak(of.get(n.split()[-1], "asgi"), fault), id=n) for n in names
    ]


@pytest.mark.parametrize("name", hooks("client-gone", *ALL))
def test_d08_a_client_that_leaves_in_the_middle_of_a_stream(name: str, tmp_path: Path) -> None:
    with served_by(name, tmp_path) as server:
        with server.client.stream("GET", "/endless") as response:
            body = response.iter_raw(1024)
            next(body)
            if name != "gunicorn sync":  # which takes one request at a time
                assert server.get("/").status_code == 503
                assert server.stats()["in_flight"] == 1
        until(lambda: server.stats()["in_flight"] == 0)
        assert server.get("/").status_code == 200
        until(lambda: server.stats()["in_flight"] == 0)
        stats = server.stats()
        assert sum(stats["released"].values()) == sum(stats["admitted"].values()) == 2
        assert stats["high_water"] == 1


@pytest.mark.parametrize("name", ["gunicorn gthread", "gunicorn asgi"])
def test_the_limit_holds_for_each_worker(name: str, tmp_path: Path) -> None:
    with served_by(name, tmp_path, "--workers", "2", limit=2) as server, ExitStack() as stack:
        inside: Counter[str] = Counter()
        lines = []

        def one_more() -> bool:
            with ExitStack() as attempt:
                response, body = stream(server, "/held", attempt)
                if response.status_code == 200:
                    inside[next(body)] += 1
                    lines.append(body)
                    stack.push(attempt.pop_all())
            assert max(inside.values()) <= 2
            return inside.total() == 4

        until(one_more)
        assert list(inside.values()) == [2, 2]
        for _ in range(10):
            assert server.get("/").status_code == 503
        server.go_on()
        assert [list(body) for body in lines] == [["end"]] * 4
        left = set(inside)

        def at_rest() -> bool:
            stats = server.stats()
            assert stats["high_water"] == 2
            if stats["in_flight"] == 0:
                left.discard(str(stats["pid"]))
            return not left

        until(at_rest)


@pytest.mark.parametrize("name", ALL)
def test_sigterm_lets_out_who_is_inside(name: str, tmp_path: Path) -> None:
    """The recipes of docs/shutdown.md."""
    with served_by(name, tmp_path) as server:
        with ExitStack() as stack:
            response, lines = stream(server, "/held", stack)
            assert response.status_code == 200
            next(lines)
            server.terminate()
            server.go_on()
            assert list(lines) == ["end"]
        output = server.end()
        assert "Traceback" not in output
        assert server.process.returncode in (0, -15)  # uvicorn passes the signal on
        (end,) = server.ends()
        assert (end["in_flight"], end["closed"]) == (0, True)
        assert end["released"] == {"success": 1}


@pytest.mark.parametrize("name", ["gunicorn sync", "gunicorn gthread"])
def test_a_shed_of_the_first_part_replaces_the_whole_answer(name: str, tmp_path: Path) -> None:
    with served_by(name, tmp_path) as server:
        refused = server.get("/shed-first")
        assert refused.status_code == 503
        assert refused.headers.get_list("content-type") == ["application/problem+json"]
        assert refused.json()["gate"] == "db"
        assert server.get("/file").text == "content"
        until(lambda: server.stats()["in_flight"] == 0)


@pytest.mark.parametrize("name", ["gunicorn gthread", "gunicorn asgi", "hypercorn"])
def test_a_refused_head_and_the_next_request_on_its_connection(name: str, tmp_path: Path) -> None:
    with served_by(name, tmp_path, limit=0) as server:
        with httpx.Client(base_url=server.address, verify=False) as client:
            for _ in range(2):
                head = client.head("/")
                assert (head.status_code, head.content) == (503, b"")
                assert int(head.headers["content-length"]) > 0
                assert int(head.headers["retry-after"]) >= 1
                refused = client.get("/")
                assert (refused.status_code, refused.json()["gate"]) == (503, "edge")
        assert server.client.post("/", content=b"x" * 100_000).status_code == 503


@pytest.mark.parametrize("name", ["gunicorn asgi", "hypercorn"])
def test_a_request_does_not_have_the_priority_of_an_earlier_one_on_its_connection(
    name: str, tmp_path: Path
) -> None:
    with served_by(name, tmp_path, limit=20) as server:
        with httpx.Client(base_url=server.address, verify=False) as client:
            assert client.post("/", content=b"x" * 2_000_000).status_code == 200
            assert client.get("/").status_code == 200
        assert server.stats()["admitted"] == {"sheddable": 1, "critical": 1}
