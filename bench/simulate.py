"""What searches would take on GPUs that are not here, as Markdown tables; nothing passes or fails.

`python -m bench.simulate [--devices ...] [--pairs ...] [--n ...] [--modes ...] [--like RUN]`

The engine's own scheduler and verifier run on simulated models whose forward passes advance a
virtual clock by their roofline on the named GPU (`bench/devices.toml`). The text is a seeded
process; `--like` gives it the step lengths and scores of a recorded run. Models are f16 where both
fit, q4_k_m otherwise; what they leave of 90 % of the memory is halved between the two caches.

Times are a device's alone: drawing tokens and scheduling on the host take none.
"""

from __future__ import annotations

import argparse
import math
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import correlation, fmean, pstdev, quantiles
from typing import Any, get_args

from bench.table import markdown
from engine import catalogue, search
from engine.models.chat import ChatTemplate
from engine.models.sampling import Sampler
from engine.models.simulated import SimulatedModel
from engine.models.simulated_clock import Device, Kernel, Shape, Timing, VirtualClock
from engine.models.simulated_text import BEGIN, Judge, Writer
from engine.protocol import BeamsSelected, Event, StepFinished, StepScored
from engine.runlog import read_run
from engine.scheduling.past import Past
from engine.scheduling.scheduler import Scheduler
from engine.scheduling.settings import MODES, Counts, Limits, Mode
from engine.search.policy import Lineage
from engine.verify.formats import bind
from engine.verify.prm import Prm

WIDTH = 4
CONTEXT = 4096
"""Tokens of the longest path; max_model_len of the FastTTS artifact."""
STEP = 512
USABLE = 0.9
"""Share of the memory that models and caches may take, as is usual with vLLM."""
PROBLEM = "A train leaves the station at noon and " * 12  # about as long as one of MATH-500
PAIRS = ("1.5B+1.5B", "1.5B+7B", "7B+1.5B")


def mode(name: str) -> Mode:
    """A mode of the engine, or one of those between `baseline` and `exact`."""
    base = MODES["baseline"].mechanisms
    match name:
        case "plain":
            return Mode(base)
        case "deduplicate":
            return Mode(replace(base, deduplicate=True))
    return MODES[name]


@dataclass(frozen=True)
class Machine:
    """A device and two models with their caches on it."""

    device: Device
    shapes: tuple[Shape, Shape]
    cells: tuple[int, int]
    precision: str


def machine(tables: dict[str, Any], device: str, pair: str) -> Machine | None:
    """The most precise models that fit with a path of full length each; None if none do."""
    gpu = Device(**tables["devices"][device])
    for precision in ("f16", "q4_k_m"):
        first, second = (_shape(tables["models"][name], precision) for name in pair.split("+"))
        left = int(gpu.memory * USABLE) - first.weights - second.weights
        cells = (left // 2 // first.cell_bytes, left // 2 // second.cell_bytes)
        if min(cells) >= CONTEXT:
            return Machine(gpu, (first, second), cells, precision)
    return None


def _shape(table: dict[str, Any], precision: str) -> Shape:
    numbers = {key: value for key, value in table.items() if key != "bytes"}
    return Shape(weights=table["bytes"][precision], **numbers)


@dataclass
class Outcome:
    """One problem solved."""

    seconds: float
    busy: tuple[float, float]
    """Seconds of the generator and of the verifier."""
    decoded: int
    """Rows computed to draw tokens from."""
    verified: int
    counts: Counts
    beams: list[tuple[int, float]]
    """Tokens and completion time of every collected beam."""
    steps: dict[Lineage, StepFinished] = field(default_factory=dict)


def solve(
    where: Machine, n: int, how: Mode, writer: Writer, judge: Judge, kernel: Kernel
) -> Outcome:
    """Beam search on one problem."""
    clock = VirtualClock()
    timings = [Timing(clock, where.device, shape, kernel) for shape in where.shapes]
    generator, verifier = (
        SimulatedModel(process, capacity=cells, paths=4 * n + 2, timing=timing)
        for process, cells, timing in zip((writer, judge), where.cells, timings, strict=True)
    )
    format = bind(catalogue.load().format("seedling"), verifier.vocabulary, ChatTemplate(""))
    prm = Prm(verifier, format, PROBLEM, whole_paths=how.whole_paths)
    policy = search.build("beam", n=n, width=WIDTH)
    steps: dict[Lineage, StepFinished] = {}
    completed: dict[Lineage, float] = {}

    def emit(event: Event) -> None:
        match event:
            case StepFinished():
                steps[event.lineage] = event
            case BeamsSelected():
                completed.update(dict.fromkeys(event.completed, clock.now))

    scheduler = Scheduler(
        generator,
        prm,
        policy,
        Sampler(0.8),
        prompt=[*generator.vocabulary.tokenize(PROBLEM), BEGIN],
        seed=writer.seed,
        limits=Limits(STEP, CONTEXT),
        emit=emit,
        past=Past(),
        mode=how,
        clock=lambda: clock.now,
    )
    for _ in scheduler.run():
        pass
    return Outcome(
        seconds=clock.now,
        busy=(timings[0].busy, timings[1].busy),
        decoded=timings[0].tokens - scheduler.counts.prefill,
        verified=prm.fed_tokens,
        counts=scheduler.counts,
        beams=[
            (_tokens(beam.lineage, steps), completed[beam.lineage])
            for beam in policy.final(scheduler.completed)
        ],
        steps=steps,
    )


def _tokens(lineage: Lineage, steps: dict[Lineage, StepFinished]) -> int:
    return sum(len(steps[lineage[:depth]].tokens) for depth in range(1, len(lineage) + 1))


def row(name: str, n: int, outcomes: Sequence[Outcome]) -> list[str]:
    """Means over problems; goodput is FastTTS's ratio of sums over problems of means over beams."""
    tokens = sum(fmean(tokens for tokens, _ in o.beams) for o in outcomes)
    times = sum(fmean(at for _, at in o.beams) for o in outcomes)
    slots = sum(n * o.counts.decode_steps for o in outcomes)
    idle = 1 - sum(o.decoded for o in outcomes) / slots
    numbers = [
        (c.decode_steps, c.generated, o.decoded, c.prefill, c.recomputed, o.verified)
        for o in outcomes
        for c in [o.counts]
    ]
    return [
        f"{n} {name}",
        f"{fmean(o.seconds for o in outcomes):.2f}",
        f"{tokens / times:.1f}",
        *(f"{fmean(busy):.2f}" for busy in zip(*(o.busy for o in outcomes), strict=True)),
        *(f"{fmean(column):,.0f}" for column in zip(*numbers, strict=True)),
        f"{idle:.0%}",
    ]


COLUMNS = (
    "n, mode|latency s|goodput tok/s|generator s|verifier s|decode steps|generated|decoded|"
    "prefilled|recomputed|verified|idle slots"
)


def text(outcomes: Sequence[Outcome]) -> str:
    """What the written text is like."""
    lengths = [len(step.tokens) for o in outcomes for step in o.steps.values()]
    ends = [len(at) for o in outcomes for at, step in o.steps.items() if step.ending == "end"]
    cuts = quantiles(lengths, n=100)
    total = distinct = 0
    for o in outcomes:
        families: dict[Lineage, list[tuple[int, ...]]] = defaultdict(list)
        for lineage, step in o.steps.items():
            families[lineage[:-1]].append(step.tokens)
        for family in families.values():
            total += sum(map(len, family))
            distinct += len(
                {tokens[:end] for tokens in family for end in range(1, len(tokens) + 1)}
            )
    row = [*(round(cuts[i - 1]) for i in (10, 50, 90, 99)), max(lengths), round(fmean(lengths))]
    return markdown(
        "The text: tokens of a step, steps of a solution, tokens that siblings share",
        ("", "p10", "median", "p90", "p99", "max", "mean", "steps", "shared"),
        [[f"{len(lengths)} steps", *row, f"{fmean(ends):.1f}", f"{1 - distinct / total:.0%}"]],
    )


def recorded(path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The step lengths and the scores of a recorded run, for a writer and a judge."""
    events = list(read_run(path))
    steps = {e.lineage: e for e in events if isinstance(e, StepFinished)}
    ends = [len(lineage) for lineage, step in steps.items() if step.ending == "end"]
    fewest = min(ends, default=1)
    later = sum(len(lineage) >= fewest for lineage in steps)
    odds = {
        e.lineage: math.log(max(e.scores[-1], 1e-6) / max(1 - e.scores[-1], 1e-6))
        for e in events
        if isinstance(e, StepScored) and e.scores
    }
    related = [(odds[at[:-1]], value) for at, value in odds.items() if at[:-1] in odds]
    return (
        {
            "lengths": sorted(len(step.tokens) for step in steps.values()),
            "fewest": fewest,
            "ending": max(0.01, len(ends) / later),
        },
        {
            "mean": fmean(odds.values()),
            "spread": pstdev(odds.values()),
            "persistence": max(0.0, correlation(*zip(*related, strict=True))) if related else 0.0,
        },
    )


def tables(options: argparse.Namespace) -> Iterator[str]:
    writing, judging = recorded(options.like) if options.like else ({}, {})
    known = tomllib.loads((Path(__file__).parent / "devices.toml").read_text("utf-8"))
    described = False
    for device in options.devices or known["devices"]:
        for pair in options.pairs:
            where = machine(known, device, pair)
            if where is None:
                yield f"**{device}, {pair}**: does not fit\n"
                continue
            rows: list[list[str]] = []
            for n in options.n:
                for name in options.modes:
                    print(f"{device} {pair} n={n} {name}", file=sys.stderr)
                    outcomes = [
                        solve(
                            where,
                            n,
                            mode(name),
                            Writer(seed, **writing),
                            Judge(seed, **judging),
                            options.kernel,
                        )
                        for seed in range(options.problems)
                    ]
                    rows.append(row(name, n, outcomes))
                    if not described:
                        described = True
                        yield text(outcomes)
            cells = "+".join(f"{cells:,}" for cells in where.cells)
            yield markdown(
                f"{device}, {pair}, {where.precision}, {cells} cells", COLUMNS.split("|"), rows
            )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.simulate")
    parser.add_argument("--devices", nargs="+", help="tables of bench/devices.toml; all by default")
    parser.add_argument("--pairs", nargs="+", default=PAIRS, help="GENERATOR+VERIFIER")
    parser.add_argument("--n", nargs="+", type=int, default=(8, 32))
    parser.add_argument("--modes", nargs="+", default=("plain", "deduplicate", "exact"))
    parser.add_argument("--problems", type=int, default=4)
    parser.add_argument("--kernel", choices=get_args(Kernel), default="unified")
    parser.add_argument("--like", metavar="RUN", help="log of a run whose text to imitate")
    for table in tables(parser.parse_args()):
        print(table, flush=True)


if __name__ == "__main__":
    main()
