"""Three hundred people press the button at once: without a gate, with one in the pool, with one at the edge.

    python examples/fastapi-overload/run.py [--json FILE]

Real PostgreSQL, real uvicorn, real HTTP: 300 open connections send one request each at the same moment.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tidegate.demo.postgres_server import PostgresServer

HERE = Path(__file__).parent
ARMS = {"none": "no gate", "pool": "gate of 5 in the pool", "edge": "gate of 20 at the edge"}
PEOPLE = 300
REQUEST = b"GET /answer HTTP/1.1\r\nHost: example\r\n\r\n"


class Answer(NamedTuple):
    """What one of them got."""

    status: int
    seconds: float
    server_ms: float


@contextmanager
def backend(arm: str, dsn: str) -> Iterator[int]:
    """The application behind uvicorn, as a process of its own; yields its port."""
    with socket.create_server(("127.0.0.1", 0), backlog=PEOPLE + 20) as listener:
        options = ["--fd", str(listener.fileno()), "--no-access-log", "--log-level", "warning"]
        server = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "app:served", *options],
            cwd=HERE,
            env={**os.environ, "ARM": arm, "DATABASE_URL": dsn},
            pass_fds=[listener.fileno()],
        )
        try:
            yield listener.getsockname()[1]
        finally:
            server.terminate()
            server.wait(30)


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Answer:
    start = time.perf_counter()
    writer.write(REQUEST)
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
    seconds = time.perf_counter() - start
    headers = dict(line.split(": ", 1) for line in head[1:] if line)
    await reader.readexactly(int(headers["content-length"]))
    return Answer(int(head[0].split()[1]), seconds, float(headers["x-server-ms"]))


async def burst(port: int) -> list[Answer]:
    """Everybody at once, after a first request has waited for the server and warmed its pool."""
    await ask(*await asyncio.open_connection("127.0.0.1", port))
    people = [await asyncio.open_connection("127.0.0.1", port) for _ in range(PEOPLE)]
    try:
        return await asyncio.gather(*(ask(*person) for person in people))
    finally:
        for _, writer in people:
            writer.close()


def row(answers: list[Answer]) -> dict[str, float | int | None]:
    served = [answer.seconds for answer in answers if answer.status == 200]
    shed = [answer.server_ms for answer in answers if answer.status == 503]
    return {
        "served": len(served),
        "shed": len(shed),
        "served_s_p50": statistics.median(served) if served else None,
        "served_s_max": max(served, default=None),
        "shed_ms_p50": statistics.median(shed) if shed else None,
        "shed_ms_max": max(shed, default=None),
    }


def table(rows: dict[str, dict[str, float | int | None]]) -> str:
    lines = [
        f"| {PEOPLE} requests at once | served | p50 | slowest | shed (503) | told after (p50, in server) |",
        "|---|---|---|---|---|---|",
    ]
    for arm, found in rows.items():
        told = "" if found["shed_ms_p50"] is None else f"{found['shed_ms_p50']:.2f} ms"
        served = f"{found['served']} | {found['served_s_p50']:.2f} s | {found['served_s_max']:.2f} s"
        lines.append(f"| {ARMS[arm]} | {served} | {found['shed']} | {told} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    arguments = parser.parse_args()
    rows = {}
    with PostgresServer() as postgres:
        for arm in ARMS:
            with backend(arm, postgres.dsn) as port:
                rows[arm] = row(asyncio.run(burst(port)))
    print(table(rows))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
