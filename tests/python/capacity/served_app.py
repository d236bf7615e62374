"""A FastAPI application whose capacity is known by construction: each pair at work costs both time."""

from __future__ import annotations

import asyncio

from fastapi import FastAPI

ALONE, SIGMA, KAPPA = 0.02, 0.02, 0.01

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
