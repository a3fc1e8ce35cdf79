"""A run of the seedling that pictures and tests of screens show.

`python -m tests.app.tui.record` records it anew.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from engine.client import LocalEngine
from engine.protocol import AnyEvent, Memory, Search, SolveRequest, decode_event, encode

PROBLEM = "Tom has 3 bags with 4 apples each. Tom finds 5 apples. How many apples does Tom have?"
_PATH = Path(__file__).parent / "recorded.jsonl"


def recorded() -> list[AnyEvent]:
    return [decode_event(line) for line in _PATH.read_bytes().splitlines()]


async def record() -> None:
    request = SolveRequest(problem=PROBLEM, verifier="seedling", search=Search(n=8, width=4))
    async with LocalEngine() as engine:
        events = [event async for event in engine.solve(request, run="recorded")]
    kept = [event for event in events if not isinstance(event, Memory)]  # of this machine
    _PATH.write_bytes(b"".join(map(encode, kept)))


if __name__ == "__main__":
    asyncio.run(record())
