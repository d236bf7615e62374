"""Interrupts at random moments of a request: `python edge_interrupts.py HOOK ROUNDS SEED`

A real signal raises KeyboardInterrupt while the main thread is anywhere between an edge's admission and the
end of the request. Prints JSON: how many rounds were interrupted, how many permits were left over, and what
priority the next request has, which names none.
"""

import gc
import json
import sys
import time
import warnings
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

for folder in (Path(__file__).parent, Path(__file__).parents[1] / "pools"):
    sys.path.append(str(folder))

from driver import http, ok, websocket  # noqa: E402
from interrupts import Alarm  # noqa: E402
from tidegate import Gate, Shed  # noqa: E402
from wsgi_driver import Exchange, environ  # noqa: E402
from wsgi_driver import ok as wsgi_ok  # noqa: E402

WARM_UP = 20
REQUESTS = 20  # in a round, since one may be over before a timer can be set


def of_path(path: str) -> str | None:
    return "sheddable" if path == "/" else None


def completed(work: Coroutine[Any, Any, Any]) -> None:
    """Run what never waits, without an event loop, which would have interrupts of its own."""
    try:
        work.send(None)
    except StopIteration:
        return
    raise AssertionError("it waits")


async def nothing(_: Any = None) -> Any:
    return {"type": "websocket.connect"}


def asgi(gate: Gate) -> Callable[[str], None]:
    from tidegate.asgi import GateMiddleware

    app = GateMiddleware(ok, gate, priority=lambda scope: of_path(scope["path"]))
    return lambda path: completed(app(http(path), nothing, nothing))


def asgi_websocket(gate: Gate) -> Callable[[str], None]:
    from tidegate.asgi import GateMiddleware

    async def echo(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})

    app = GateMiddleware(echo, gate, priority=lambda scope: of_path(scope["path"]))
    return lambda path: completed(app(websocket(path), nothing, nothing))


def wsgi(gate: Gate) -> Callable[[str], None]:
    from tidegate.wsgi import GateMiddleware

    app = GateMiddleware(wsgi_ok, gate, priority=lambda environ: of_path(environ["PATH_INFO"]))
    return lambda path: Exchange(app, environ(path)).drain() and None


def flask(gate: Gate) -> Callable[[str], None]:
    from flask import Flask
    from tidegate.flask import Tidegate

    app = Flask(__name__)
    app.add_url_rule("/", "ok", lambda: "ok")
    Tidegate(app, gate, priority=lambda environ: of_path(environ["PATH_INFO"]))
    return lambda path: Exchange(app, environ(path, HTTP_HOST="localhost")).drain() and None


def django_middleware(gate: Gate) -> Callable[[str], None]:
    import django
    import django_project
    from django.conf import settings
    from django.core.handlers.wsgi import WSGIHandler

    settings.configure(
        SECRET_KEY="for tests",
        ALLOWED_HOSTS=["*"],
        ROOT_URLCONF="django_project",
        MIDDLEWARE=["tidegate.django.middleware.GateMiddleware"],
        TIDEGATE={"GATE": "django_project.web", "PRIORITY": lambda request: of_path(request.path)},
    )
    django.setup()
    django_project.start_anew()
    django_project.web = gate
    handler = WSGIHandler()
    return lambda path: Exchange(handler, environ(path, HTTP_HOST="localhost")).drain() and None


def fastapi_dependency(gate: Gate) -> Callable[[str], None]:
    from tidegate.fastapi import admitted

    async def request(priority: Any) -> None:
        dependency = admitted(gate, priority=priority)()
        await anext(dependency)
        await anext(dependency, None)

    return lambda path: completed(request(of_path(path)))


HOOKS: dict[str, Callable[[Gate], Callable[[str], None]]] = {
    "asgi": asgi,
    "asgi-websocket": asgi_websocket,
    "wsgi": wsgi,
    "flask": flask,
    "django-middleware": django_middleware,
    "fastapi-dependency": fastapi_dependency,
}


def main() -> None:
    """Storm, and print what is left."""
    hook, rounds, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    warnings.simplefilter("ignore")  # of what is collected
    sys.unraisablehook = lambda _: None  # interrupts in finalizers

    gate = Gate("edge", limit=1)
    request, alarm = HOOKS[hook](gate), Alarm(seed)

    def some_requests() -> None:
        for _ in range(REQUESTS):
            request("/")

    for _ in range(WARM_UP):
        some_requests()
    start = time.perf_counter()
    for _ in range(WARM_UP):
        some_requests()
    span = 1.1 * (time.perf_counter() - start) / WARM_UP

    interrupted = left = 0
    for _ in range(rounds):
        try:
            interrupted += alarm.interrupts(some_requests, span)
        except Shed:
            raise
        except Exception:
            interrupted += 1  # what a framework makes of it
        if gate.in_flight:
            gc.collect()
            left += gate.in_flight
    before = gate.stats().admitted
    request("/healthz-not")
    after = gate.stats().admitted
    next_one = [str(priority) for priority in after if after[priority] > before[priority]]
    print(json.dumps({"interrupted": interrupted, "left": left, "next": next_one}))


if __name__ == "__main__":
    main()
