"""Replays a large synthetic run in the app and measures what a user would feel.

    python -m bench.tui [--nodes 5000] [--rate 200] [--seconds 30] [--minutes 30]

The app runs in a pseudo-terminal of its own, as on a screen. Most of the run is told at once and
the rest, as much as lasts `--seconds`, at the rate. Keys are typed into the composer while the tree
grows; the time from a key to its letter on the screen is taken from the bytes that the app writes.
With `--minutes` the run is asked for again and again, each time in a new conversation.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Iterator
from typing import NamedTuple, Self

import psutil

from bench.table import markdown
from engine.protocol import (
    AnyEvent,
    BeamsSelected,
    Counters,
    NodeOpened,
    NodesPruned,
    Phase,
    RunFinished,
    RunStarted,
    SolveRequest,
    StepFinished,
    StepScored,
    Stop,
    TextAppended,
    Throughput,
)

_LETTERS = "qzjx"
"""Nothing that the app shows has them, so that a letter on the screen is the one that was typed."""
_CLEAR, _NEW = b"\x15", b"\x0e"
"""Ctrl+U in the composer, Ctrl+N for a new conversation."""
_WIDTH = 4
_PATHS = 128


def run_of(nodes: int) -> Iterator[AnyEvent]:
    """A beam search with so many nodes: in each round the best quarter goes on."""
    chance = random.Random(0)
    yield RunStarted(run="bench", request=SolveRequest(problem="A long one."))
    yield Phase(name="searching")
    parents: list[tuple[int, ...]] = [()]
    made = rounds = 0
    while made < nodes:
        width = _PATHS if parents == [()] else _WIDTH
        children = [(*parent, i) for parent in parents for i in range(width)]
        for child in children:
            yield NodeOpened(lineage=child)
        scores: dict[tuple[int, ...], float] = {}
        for child in children:
            words = f"Then {chance.randrange(99)} and {chance.randrange(99)} are more.\n\n"
            yield TextAppended(lineage=child, text=words[:9])
            yield StepFinished(lineage=child, text=words, tokens=(1,) * 12, ending="step")
            scores[child] = chance.random()
            yield StepScored(lineage=child, scores=(scores[child],))
        ranked = sorted(children, key=lambda child: -scores[child])
        parents = ranked[: _PATHS // _WIDTH]
        pruned = tuple(ranked[_PATHS // _WIDTH :])
        yield NodesPruned(round=rounds, lineages=pruned, reason="ranked below 32 others")
        yield BeamsSelected(round=rounds, kept=tuple(parents))
        yield Throughput(generated=made * 12, verified=made * 12, rate=900.0, beams=_PATHS)
        made, rounds = made + len(children), rounds + 1


class Run(NamedTuple):
    """What was measured in one run."""

    keys: list[tuple[float, float]]
    """Seconds from a key to its letter: on the clock, and of the app's CPU."""
    share: float
    """Of a core, while keys were typed."""
    memory: float
    """MiB at the end."""


class ReplayingEngine:
    """Tells the first events at once and the rest, as many as last so long, at a rate."""

    def __init__(self, nodes: int, rate: float, seconds: float) -> None:
        self._events = list(run_of(nodes))
        self._rate = rate
        self._live = min(len(self._events), int(rate * seconds))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        pass

    def cancel(self, run: str | None = None) -> None:
        pass

    async def solve(
        self, request: SolveRequest, *, run: str | None = None
    ) -> AsyncGenerator[AnyEvent, None]:
        first = len(self._events) - self._live
        for event in self._events[:first]:
            yield event
        begin = time.monotonic()
        for place, event in enumerate(self._events[first:]):
            wait = begin + place / self._rate - time.monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
            yield event
        yield RunFinished(stop=Stop.COMPLETE, counters=Counters())


def show(options: argparse.Namespace) -> None:
    """The app itself, in the pseudo-terminal."""
    from app.errors import CommandError
    from app.tui.app import SapwoodApp
    from app.tui.archive import open_archive
    from app.tui.settings import Settings
    from app.tui.start import run

    engine = ReplayingEngine(options.nodes, options.rate, options.seconds)
    archive = open_archive()
    if isinstance(archive, CommandError):
        raise archive
    settings = Settings(welcomed=True)
    run(SapwoodApp(engine, log_folder=None, archive=archive, settings=settings))


def measure(options: argparse.Namespace) -> None:
    """Run the app, type into it, and print the table."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
    arguments = ["--nodes", str(options.nodes), "--rate", str(options.rate)]
    arguments += ["--seconds", str(options.seconds), "--show"]
    with tempfile.TemporaryDirectory() as home:
        app = subprocess.Popen(
            [sys.executable, "-m", "bench.tui", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=os.environ | {"SAPWOOD_HOME": home, "TERM": "xterm-256color"},
        )
        try:
            _wait_for(ours, b"Ask for", 120)
            runs = max(1, round(options.minutes * 60 / options.seconds))
            process = psutil.Process(app.pid)
            parts = [_type_into(ours, process, options.seconds, run) for run in range(runs)]
            _report(options, parts)
        finally:
            app.kill()
            app.wait()


def _type_into(terminal: int, app: psutil.Process, seconds: float, run: int) -> Run:
    """Ask for the run, and type while it goes on."""
    os.write(terminal, _CLEAR if run else b"")
    os.write(terminal, _NEW if run else b"")
    _quiet(terminal, 2.0)
    os.write(terminal, b"solve\r")
    _wait_for(terminal, b"pruned", 120)
    _quiet(terminal, 2.0)  # until what came at once is drawn
    took: list[tuple[float, float]] = []
    begin, before = time.monotonic(), _cpu(app)
    number = 0
    while time.monotonic() - begin < seconds - 5:
        letter = _LETTERS[number % len(_LETTERS)].encode()
        number += 1
        _quiet(terminal, 0.23)
        pressed, worked = time.monotonic(), _cpu(app)
        os.write(terminal, letter)
        if _wait_for(terminal, letter, 5):
            took.append((time.monotonic() - pressed, _cpu(app) - worked))
    share = (_cpu(app) - before) / (time.monotonic() - begin)
    memory = app.memory_info().rss / 2**20
    _quiet(terminal, 4.0)  # until the run is over
    return Run(took, share, memory)


def _cpu(app: psutil.Process) -> float:
    times = app.cpu_times()
    return times.user + times.system


def _wait_for(terminal: int, words: bytes, limit: float) -> bool:
    """Read what the app draws until these words come; letters of escape sequences do not count."""
    drawn = b""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.01)[0]:
            drawn += os.read(terminal, 1 << 16)
            if words in drawn:
                return True
    return False


def _quiet(terminal: int, seconds: float) -> None:
    """Read and forget what the app draws in this time."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([terminal], [], [], left)[0]:
            os.read(terminal, 1 << 16)


def _report(options: argparse.Namespace, runs: list[Run]) -> None:
    keys = [key for run in runs for key in run.keys]
    clock, worked = (sorted(kind) for kind in zip(*keys, strict=True))
    late = int(len(keys) * 0.95)
    rows = [
        ("key to paint, median", f"{1000 * clock[len(clock) // 2]:.0f} ms"),
        ("key to paint, p95", f"{1000 * clock[late]:.0f} ms"),
        ("of it CPU of the app, p95", f"{1000 * worked[late]:.0f} ms"),
        ("CPU of the app, mean", f"{100 * sum(r.share for r in runs) / len(runs):.0f} % of a core"),
        ("memory, first run", f"{runs[0].memory:.0f} MiB"),
        ("memory, last run", f"{runs[-1].memory:.0f} MiB"),
        ("memory, most", f"{max(run.memory for run in runs):.0f} MiB"),
        ("runs", str(len(runs))),
        ("keys", str(len(keys))),
        ("load of the machine", f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"),
    ]
    title = f"{options.nodes} nodes, {options.rate:g} events a second, 160x50"
    print(markdown(title, ("measure", "value"), rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--rate", type=float, default=200.0)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--minutes", type=float, default=0.0, help="0 replays once")
    parser.add_argument("--show", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.show:
        show(options)
    else:
        measure(options)


if __name__ == "__main__":
    main()
