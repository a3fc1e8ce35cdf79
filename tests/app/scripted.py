"""`sapwood` with a scripted engine, as a program: `python scripted.py EVENTS DELAY ARGUMENTS...`.

EVENTS holds one event a line. Once the search begins they are given DELAY seconds apart, up to
where the run is cancelled, which then ends with the best so far.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Self

from engine.protocol import AnyEvent, Phase, RunStarted, SolveRequest, Stop, decode_event
from tests.app.streams import answered, finished


class StandIn:
    """Takes the place of the class `LocalEngine` and of what it makes."""

    def __call__(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        pass


class ScriptedEngine(StandIn):
    """Stands for `LocalEngine`. The n-th request gets the n-th script, or the last one again."""

    def __init__(self, scripts: Sequence[Sequence[AnyEvent]], delay: float = 0.0) -> None:
        self.requests: list[SolveRequest] = []
        self._scripts = scripts
        self._delay = delay
        self._cancelled = False

    async def solve(self, request: SolveRequest) -> AsyncGenerator[AnyEvent, None]:
        number = min(len(self.requests), len(self._scripts) - 1)
        self.requests.append(request)
        for event in self._scripts[number]:
            await asyncio.sleep(0 if isinstance(event, RunStarted | Phase) else self._delay)
            if self._cancelled:
                yield answered()
                yield finished(Stop.CANCELLED)
                return
            yield event

    def cancel(self) -> None:
        self._cancelled = True


def main() -> None:
    import app.batch
    import app.solve
    from app import cli

    events = [decode_event(line) for line in Path(sys.argv[1]).read_bytes().splitlines()]
    engine = ScriptedEngine([events], float(sys.argv[2]))
    app.solve.LocalEngine = app.batch.LocalEngine = engine  # type: ignore[assignment]
    del sys.argv[1:3]
    cli.main()


if __name__ == "__main__":
    main()
