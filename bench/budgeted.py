"""One search under a budget, in a process of its own: its tree, its peak and its turns.

`solve` starts it; `python -m bench.budgeted STRATEGY CLOCK` is that process, with a request on
standard input.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import msgspec
import psutil

from engine.errors import EngineError
from engine.memory.options import Option
from engine.memory.strategies import Pair
from engine.protocol import (
    AnyEvent,
    BeamsSelected,
    Counters,
    Memory,
    RunFinished,
    SolveRequest,
    StepFinished,
    StepScored,
    Warned,
)
from engine.service.planning import Planned

Clock = Literal["elapsed", "processor"]
"""The processor's counts what this process computes: with one thread, the seconds that it would
take if nobody else computed."""
_FORMAT = """
[formats.plus]
style = "end"
good = "+"
bad = "-"
"""
"""Makes a verifier of any model: its scores mean nothing, and cost what a verifier's do."""


class Outcome(msgspec.Struct, kw_only=True):
    """What came of it. Sizes in bytes, all of the process."""

    tree: dict[str, tuple[str, tuple[float, ...]]] = {}
    """By lineage: a node's text and its scores."""
    rounds: list[str] = []
    counters: Counters = Counters()
    refusal: str = ""
    warnings: list[str] = []
    strategy: str = ""
    planned: int = 0
    """Most that the plan expects."""
    peak: int = 0
    start: int = 0
    """When it was ready, before any model."""
    idle: int = 0
    """Most that was left by the model that waited, beyond its vocabulary."""
    turn: float = 0.0
    """Seconds that the plan expects a change of turn to take."""


def solve(
    request: SolveRequest, home: Path, strategy: str = "", clock: Clock = "elapsed"
) -> Outcome:
    """Run `request`.

    Args:
        home: the folder of everything that is kept.
        strategy: which way of sharing the memory is taken; by default the plan's first.
        clock: how speeds and changes of turn are timed.
    """
    home.mkdir(parents=True, exist_ok=True)
    (home / "models.toml").write_text(_FORMAT)
    ran = subprocess.run(
        [sys.executable, "-m", "bench.budgeted", strategy, clock],
        input=msgspec.json.encode(request),
        env=os.environ | {"SAPWOOD_HOME": str(home)},
        capture_output=True,
    )
    if ran.returncode:
        return Outcome(refusal=f"ended with {ran.returncode}: {ran.stderr.decode()[-400:]}")
    return msgspec.json.decode(ran.stdout, type=Outcome)


def _main() -> None:
    from engine.memory.devices import Device
    from engine.memory.ledger import Ledger, ledger_file
    from engine.memory.record import Records, records_file
    from engine.models.stop import StopSignal
    from engine.service.model_pool import ModelPool
    from engine.service.planning import Ask, Planner, Warn
    from engine.service.run import Run
    from engine.service.solver import Solver

    request = msgspec.json.decode(sys.stdin.buffer.read(), type=SolveRequest)
    strategy, clock = sys.argv[1:]
    if clock == "processor":
        time.perf_counter = time.process_time
    outcome = Outcome()
    events: list[AnyEvent] = []

    class Forced(Planner):
        def plan(self, ask: Ask, held: Callable[[Device], int], warn: Warn) -> Planned:
            outcome.start = _resident()
            planned = super().plan(ask, held, warn)
            option = _option(planned, strategy)
            planned = replace(planned, option=option or planned.option)
            option = planned.option
            outcome.strategy, outcome.planned = option.strategy.value, option.bytes
            outcome.turn = option.turn
            return planned

    def send(event: AnyEvent) -> None:
        events.append(event)

    run = Run("bench", request, send, stop=StopSignal())
    pool = ModelPool(Forced(Records(records_file()), Ledger(ledger_file())))
    try:
        for _ in Solver(pool).solve(run):
            pass
    except EngineError as error:
        outcome.refusal = f"{error.message} {error.advice}"
    outcome.peak = _peak()
    _note(events, outcome)
    sys.stdout.buffer.write(msgspec.json.encode(outcome))


def _option(planned: Planned, strategy: str) -> Option | None:
    """A way of sharing the memory, which the plan need not list."""
    plan = planned.plan
    pair = Pair(planned.generator, planned.verifier, plan.job, plan.budget)
    options = (pair.collocated(), pair.idle_cache(), pair.idle_model(), pair.idle_again())
    return next((one for one in options if one and one.strategy.value == strategy), None)


def _note(events: list[AnyEvent], outcome: Outcome) -> None:
    texts: dict[tuple[int, ...], str] = {}
    scores: dict[tuple[int, ...], tuple[float, ...]] = {}
    for event in events:
        match event:
            case StepFinished():
                texts[event.lineage] = event.text
            case StepScored():
                scores[event.lineage] = event.scores
            case BeamsSelected():
                outcome.rounds.append(str((event.round, event.kept, event.completed)))
            case Memory():
                if event.generator.offloaded or event.verifier.offloaded:
                    left = event.process - outcome.start
                    for model in (event.generator, event.verifier):
                        left -= model.weights + model.cache_used + model.cache_free + model.buffers
                    outcome.idle = max(outcome.idle, left)
            case RunFinished():
                outcome.counters = event.counters
            case Warned():
                outcome.warnings.append(event.message)
    for lineage, text in sorted(texts.items()):
        name = ".".join(map(str, lineage))
        outcome.tree[name] = (text, scores.get(lineage, ()))
    outcome.rounds.sort()


def _resident() -> int:
    return psutil.Process().memory_info().rss


def _peak() -> int:
    """Largest resident set so far."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise SystemExit("the peak of a process can be read on Linux only")


if __name__ == "__main__":
    _main()
