"""gunicorn's configuration: each worker drains its gate when it ends, as docs/shutdown.md has it."""

from typing import Any


def worker_exit(server: Any, worker: Any) -> None:
    import served

    if "asgi" not in type(worker).__name__.lower():  # there the lifespan did it
        served.gate.drain(timeout=10)
        served.note_end()
