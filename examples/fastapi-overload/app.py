"""A FastAPI backend as people write them: synchronous routes, a pool of five connections.

ARM says where its gate is: "none", "pool" (a gate of 5 before each connection) or "edge" (a gate of 20 before
everything, and the same gate in the pool, where a request that holds its permit takes no second one).
"""

import os
import time

from fastapi import FastAPI
from sqlalchemy import create_engine, text
from tidegate import Gate
from tidegate.fastapi import install
from tidegate.sqlalchemy import gated

ARM, URL = os.environ["ARM"], os.environ["DATABASE_URL"].replace("postgresql:", "postgresql+psycopg:", 1)
POOL = {"pool_size": 5, "max_overflow": 0}

app = FastAPI()
if ARM == "none":
    engine = create_engine(URL, **POOL)
elif ARM == "pool":
    gate = Gate("db", limit=5)
    engine = create_engine(URL, **gated(gate), **POOL)
    install(app)
else:
    gate = Gate("db", limit=20)
    engine = create_engine(URL, **gated(gate), **POOL)
    install(app, gate)


@app.get("/answer")
def answer() -> int:
    with engine.connect() as connection:
        connection.execute(text("SELECT pg_sleep(0.1)"))
        return 42


class Stopwatch:
    """The outermost layer: says in a header how long the server had the request, for the table."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        start = time.perf_counter()

        async def timed(message):
            if message["type"] == "http.response.start":
                elapsed = f"{(time.perf_counter() - start) * 1e3:.3f}".encode()
                message = {**message, "headers": [*message["headers"], (b"x-server-ms", elapsed)]}
            await send(message)

        await self.app(scope, receive, timed)


served = Stopwatch(app)
