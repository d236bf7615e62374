"""A request that the middleware admitted uses its gated database freely, and is counted once."""

import pytest
from gatekit import output_of

PROGRAM = """
    import asyncio, sys, types
    sys.path.insert(0, "tests/python/web")
    import django
    from django.conf import settings
    from tidegate import Gate

    site = types.ModuleType("site_of_test")
    sys.modules["site_of_test"] = site
    site.gate = Gate("db", limit=1)
    settings.configure(
        ALLOWED_HOSTS=["testserver"],
        SECRET_KEY="for tests",
        ROOT_URLCONF="site_of_test",
        MIDDLEWARE=["tidegate.django.middleware.GateMiddleware"],
        TIDEGATE={"GATE": "site_of_test.gate"},
        DATABASES={
            "default": {
                "ENGINE": "tidegate.django.sqlite3", "NAME": ":memory:", "TIDEGATE": "site_of_test.gate"
            }
        },
    )
    django.setup()

    from asgiref.sync import sync_to_async
    from django.db import close_old_connections, connection
    from django.http import HttpResponse, StreamingHttpResponse
    from django.urls import path

    def query():
        connection.close()
        with connection.cursor() as cursor:
            cursor.execute("select 1")
        return str(site.gate.in_flight)

    def view(request):
        return HttpResponse(query())

    async def async_view(request):
        return HttpResponse(await sync_to_async(query)())

    def rows(request):
        return StreamingHttpResponse(query() for _ in range(3))

    site.urlpatterns = [path("", view), path("async", async_view), path("rows", rows)]

    from django.core.handlers.asgi import ASGIHandler
    from django.core.handlers.wsgi import WSGIHandler
    from driver import Connection, http
    from wsgi_driver import Exchange, environ

    def under_wsgi(path):
        return Exchange(WSGIHandler(), environ(path, HTTP_HOST="testserver")).drain()

    def under_asgi(path):
        async def scenario():
            connection = Connection(ASGIHandler(), http(path, headers=[(b"host", b"testserver")]))
            connection.push("http.request", body=b"", more_body=False)
            start, *parts = await connection.end()
            return b"".join(part.get("body", b"") for part in parts)
        return asyncio.run(scenario())

    for path in PATHS:
        print(HANDLER(path).decode(), site.gate.in_flight, sum(site.gate.stats().admitted.values()))
"""


@pytest.mark.leak("django-middleware", "nested")
@pytest.mark.parametrize(
    ("handler", "paths", "printed"),
    [
        ("under_wsgi", ["/", "/async", "/rows"], "1 0 1\n1 0 2\n111 0 3\n"),
        ("under_asgi", ["/", "/async"], "1 0 1\n1 0 2\n"),
    ],
)
def test_the_engine_joins_the_permit_of_the_request(handler: str, paths: list[str], printed: str) -> None:
    assert output_of(PROGRAM.replace("HANDLER", handler).replace("PATHS", repr(paths))) == printed
