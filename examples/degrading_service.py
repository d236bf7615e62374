"""A service whose capacity is known: each pair of requests at work costs both time. See docs/capacity.md.

    uvicorn --app-dir examples degrading_service:app

One alone takes 20 ms (or ALONE=0.2 seconds, say); ten at a time come to 240 answers a second, which is the
most; of forty each takes 0.35 s, and they come to 115. The time of each is fixed when it comes.
"""

from __future__ import annotations

import asyncio
import os

from fastapi import FastAPI

ALONE = float(os.environ.get("ALONE", "0.02"))  # seconds
SIGMA, KAPPA = 0.02, 0.01

app = FastAPI()
_at_work = 0


@app.get("/work")
async def work() -> str:
    global _at_work
    _at_work += 1
    others = _at_work - 1
    try:
        await asyncio.sleep(ALONE * (1 + SIGMA * others + KAPPA * others * (others + 1)))
    finally:
        _at_work -= 1
    return "done"
