"""What searches would take on GPUs that are not here, as Markdown tables; nothing passes or fails.

`python -m bench.simulate [--devices ...] [--pairs ...] [--n ...] [--modes ...] [--like RUN]`
`python -m bench.simulate [--devices ...] [--pairs ...] [--modes ...] --replay RUN`

The engine's own scheduler and verifier run on simulated models whose forward passes advance a
virtual clock by their roofline on the named GPU (`bench/devices.toml`). The text is a seeded
process; `--like` gives it the step lengths and scores of a recorded run, and `--replay` schedules
the tree of a recorded beam search itself, token by token. Models are f16 where both
fit, q4_k_m otherwise. What they leave of 90 % of the memory goes to the two caches: halved, as
search-and-learn does and SpecScale leaves open, split by the roofline as FastTTS does, or with as
many cells for each.

Modes: `baseline` (search-and-learn's loop), `fasttts`, `specscale`, `exact`, and on the way from
the first to the last `plain` (each step verified once), `deduplicate` and `exact, no drafts`.
`fasttts` and `specscale` take shortcuts and so find other trees: compare goodput, which is per
token of a finished path.

The longest path, in tokens, is as few decode steps as any search for the same tree can take.

Times are a device's alone: drawing tokens and scheduling on the host take none.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any, Literal, get_args

from bench.fasttts import split
from bench.no_drafts import NO_DRAFTS, NO_DRAFTS_MODE
from bench.scripts import CONTEXT, Script, generated, recorded
from bench.table import markdown
from engine import catalogue
from engine.memory.roofline import Load, Speed, Split
from engine.models.chat import ChatTemplate
from engine.models.host_copies import HostCopies
from engine.models.kv_tree import KvTree, Stem
from engine.models.simulated import SimulatedModel
from engine.models.simulated_clock import Device, Kernel, Shape, Timing, VirtualClock
from engine.protocol import BeamsSelected, DraftsDropped, Event, StepFinished
from engine.scheduling.past import Past
from engine.scheduling.scheduler import Scheduler
from engine.scheduling.settings import MODES, Counts, Mode
from engine.search.policy import Lineage
from engine.service.solver import policy_of
from engine.verify.formats import bind
from engine.verify.prm import Prm

Memory = Literal["halves", "roofline", "tree"]
MEMORY: dict[str, Memory] = {"fasttts": "roofline", "exact": "tree", NO_DRAFTS: "tree"}
"""How a mode shares memory between the caches; `halves` unless named. `tree` gives both as many
cells, since a verifier that reads each step once keeps the same tree as the generator."""
TYPICAL = 1024
"""Tokens of a path that the caches are split for."""
HOST = 8 << 30
"""Bytes of host memory for what leaves the generator's cache."""
USABLE = 0.9
"""Share of the memory that models and caches may take, as is usual with vLLM."""
PAIRS = ("1.5B+1.5B", "1.5B+7B", "7B+1.5B")


def mode(name: str) -> Mode:
    """A mode of the engine, or one of those between `baseline` and `exact`."""
    base = MODES["baseline"].mechanisms
    match name:
        case "plain":
            return Mode(base)
        case "deduplicate":
            return Mode(replace(base, deduplicate=True))
    return NO_DRAFTS_MODE if name == NO_DRAFTS else MODES[name]


@dataclass(frozen=True)
class Machine:
    """A device and two models with their caches on it."""

    device: Device
    shapes: tuple[Shape, Shape]
    room: int
    """Bytes for both caches."""
    precision: str

    def cells(self, n: int, how: Memory) -> tuple[int, int]:
        """Of the generator's and of the verifier's cache."""
        first, second = self.shapes
        share = 0.5
        if how == "tree":
            share = first.cell_bytes / (first.cell_bytes + second.cell_bytes)
        elif how == "roofline" and (found := self._split(n)) is not None:
            writing = found.written * first.cell_bytes
            share = writing / (writing + found.verified * second.cell_bytes)
        # A solution may be longer than is typical, and its verifier has to hold it.
        written = min(int(self.room * share), self.room - 2 * TYPICAL * second.cell_bytes)
        return written // first.cell_bytes, (self.room - written) // second.cell_bytes

    def _split(self, n: int) -> Split | None:
        first, second = self.shapes
        return split(
            n,
            TYPICAL,
            load_of(first),
            load_of(second),
            Speed(self.device.bandwidth, self.device.flops),
            self.room,
            (TYPICAL * first.cell_bytes, TYPICAL * second.cell_bytes),
        )


def machine(tables: dict[str, Any], device: str, pair: str) -> Machine | None:
    """The most precise models that fit with a path of full length each; None if none do."""
    gpu = Device(**tables["devices"][device])
    for precision in ("f16", "q4_k_m"):
        first, second = (_shape(tables["models"][name], precision) for name in pair.split("+"))
        room = int(gpu.memory * USABLE) - first.weights - second.weights
        if room // 2 >= CONTEXT * max(first.cell_bytes, second.cell_bytes):
            return Machine(gpu, (first, second), room, precision)
    return None


def load_of(shape: Shape) -> Load:
    """What a model reads and computes for a token, for the roofline."""
    return Load(
        weights=int(shape.weights_read),
        cell=shape.cell_bytes,
        parameters=shape.body + shape.head,
        attention=4 * shape.layers * shape.heads * shape.head_size,
    )


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


def solve(where: Machine, script: Script, name: str, kernel: Kernel) -> Outcome:
    """The search of a script, in the mode of that name."""
    how = mode(name)
    n = script.search.n
    clock = VirtualClock()
    timings = [Timing(clock, where.device, shape, kernel) for shape in where.shapes]
    generator, verifier = (
        SimulatedModel(
            process,
            capacity=cells,
            paths=4 * n + 2,
            timing=timing,
            vocabulary=script.vocabulary,
        )
        for process, cells, timing in zip(
            (script.writer, script.judge),
            where.cells(n, MEMORY.get(name, "halves")),
            timings,
            strict=True,
        )
    )
    format = bind(catalogue.load().format("seedling"), verifier.vocabulary, ChatTemplate(""))
    prm = Prm(verifier, format, script.problem, whole_paths=how.whole_paths)
    policy = policy_of(script.search)
    steps: dict[Lineage, StepFinished] = {}
    completed: dict[Lineage, float] = {}

    def emit(event: Event) -> None:
        match event:
            case StepFinished():
                steps[event.lineage] = event
            case DraftsDropped():
                for lineage in event.lineages:
                    steps.pop(lineage, None)
            case BeamsSelected():
                completed.update(dict.fromkeys(event.completed, clock.now))

    scheduler = Scheduler(
        generator,
        prm,
        policy,
        script.sampler,
        prompt=script.prompt,
        seed=script.seed,
        limits=script.limits,
        emit=emit,
        past=Past(),
        mode=how,
        clock=lambda: clock.now,
        cache=KvTree(generator, _copies(generator, clock) if how.mechanisms.host_copies else None),
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


def _copies(model: SimulatedModel, clock: VirtualClock) -> HostCopies[Stem]:
    return HostCopies(model, HOST, lambda: clock.now)


def _tokens(lineage: Lineage, steps: dict[Lineage, StepFinished]) -> int:
    return sum(len(steps[lineage[:depth]].tokens) for depth in range(1, len(lineage) + 1))


def goodput(outcomes: Sequence[Outcome]) -> float:
    """FastTTS's: a ratio of sums over problems of means over finished beams."""
    tokens = sum(fmean(tokens for tokens, _ in o.beams) for o in outcomes)
    times = sum(fmean(at for _, at in o.beams) for o in outcomes)
    return tokens / times


def row(name: str, n: int, outcomes: Sequence[Outcome]) -> list[str]:
    """Means over problems."""
    slots = sum(n * o.counts.decode_steps for o in outcomes)
    idle = 1 - sum(o.decoded for o in outcomes) / slots
    numbers = [
        (c.decode_steps, c.generated, o.decoded, c.recomputed, c.restored, o.verified)
        for o in outcomes
        for c in [o.counts]
    ]
    return [
        f"{n} {name}",
        f"{fmean(o.seconds for o in outcomes):.2f}",
        f"{goodput(outcomes):.1f}",
        *(f"{fmean(busy):.2f}" for busy in zip(*(o.busy for o in outcomes), strict=True)),
        *(f"{fmean(column):,.0f}" for column in zip(*numbers, strict=True)),
        f"{idle:.0%}",
        f"{fmean(max(_tokens(at, o.steps) for at in o.steps) for o in outcomes):,.0f}",
    ]


COLUMNS = (
    "n, mode|latency s|goodput tok/s|generator s|verifier s|decode steps|generated|decoded|"
    "recomputed|restored|verified|idle slots|longest path"
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


Table = dict[tuple[int, str], list[Outcome]]
"""Outcomes by n and mode."""


def solve_all(options: argparse.Namespace, device: str, pair: str) -> tuple[Machine | None, Table]:
    """What one table holds."""
    where = machine(devices_and_models(), device, pair)
    found: Table = {}
    for n in options.n if where is not None else ():
        assert where is not None
        problems = scripts(options, n)
        for name in options.modes:
            print(f"{device} {pair} n={n} {name}", file=sys.stderr)
            found[n, name] = [solve(where, script, name, options.kernel) for script in problems]
    return where, found


def scripts(options: argparse.Namespace, n: int) -> list[Script]:
    """What is searched in each mode."""
    if options.replay:
        return [recorded(options.replay)]
    problems = max(1, min(options.problems, options.paths // n))
    return [generated(number, n, options.like) for number in range(problems)]


def devices_and_models() -> dict[str, Any]:
    """The tables of `bench/devices.toml`."""
    return tomllib.loads((Path(__file__).parent / "devices.toml").read_text("utf-8"))


def tables(options: argparse.Namespace) -> Iterator[str]:
    asked = [
        (d, p) for d in options.devices or devices_and_models()["devices"] for p in options.pairs
    ]
    summary: list[Against] = []
    with ProcessPoolExecutor(options.jobs) as pool:
        found = pool.map(partial(solve_all, options), *zip(*asked, strict=True))
        for place, ((device, pair), (where, cells)) in enumerate(zip(asked, found, strict=True)):
            if where is None:
                yield f"**{device}, {pair}**: does not fit\n"
                continue
            if place == 0:
                yield text(cells[options.n[0], options.modes[0]])
            title = f"{device}, {pair}, {where.precision}, {where.room / 2**30:.1f} GiB of cache"
            rows = [row(name, n, outcomes) for (n, name), outcomes in cells.items()]
            yield markdown(title, COLUMNS.split("|"), rows)
            summary += list(against(options.modes, f"{device} {pair}", options.n, cells))
    if "exact" in options.modes and len(options.modes) > 1:
        yield overview(summary)


@dataclass(frozen=True)
class Against:
    """`exact` beside another mode in one cell of the tables."""

    cell: str
    other: str
    goodput: float
    """How many times the other's."""
    latency: float
    """Part of the other's that is saved."""


def against(modes: Sequence[str], where: str, ns: Sequence[int], cell: Table) -> Iterator[Against]:
    for n in ns:
        for other in modes:
            if other != "exact" and "exact" in modes:
                mine, theirs = cell[n, "exact"], cell[n, other]
                yield Against(
                    f"{where} n={n}",
                    other,
                    goodput(mine) / goodput(theirs),
                    1 - sum(o.seconds for o in mine) / sum(o.seconds for o in theirs),
                )


def overview(found: Sequence[Against]) -> str:
    """`exact` beside the others over all cells."""
    rows = []
    for other in dict.fromkeys(one.other for one in found):
        mine = [one for one in found if one.other == other]
        ratios = [one.goodput for one in mine]
        least = min(mine, key=lambda one: one.goodput)
        rows.append(
            [
                other,
                f"{fmean(ratios):.2f}",
                f"{min(ratios):.2f} ({least.cell})",
                f"{max(ratios):.2f}",
                f"{fmean(one.latency for one in mine):.0%}",
                f"{min(one.latency for one in mine):.0%}",
                f"{max(one.latency for one in mine):.0%}",
                sum(ratio < 0.99 for ratio in ratios),
            ]
        )
    return markdown(
        f"`exact` beside the others, {len(found) // max(1, len(rows))} cells",
        [
            "beside",
            "goodput, mean",
            "least",
            "most",
            "latency saved, mean",
            "least",
            "most",
            "cells below 0.99",
        ],
        rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.simulate")
    parser.add_argument("--devices", nargs="+", help="tables of bench/devices.toml; all by default")
    parser.add_argument("--pairs", nargs="+", default=PAIRS, help="GENERATOR+VERIFIER")
    parser.add_argument("--n", nargs="+", type=int, default=(8, 32))
    parser.add_argument("--modes", nargs="+", default=("baseline", "fasttts", "specscale", "exact"))
    parser.add_argument("--problems", type=int, default=4)
    parser.add_argument(
        "--paths",
        type=int,
        default=sys.maxsize,
        help="fewer problems where n is large: at most as many as make this number of paths",
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--kernel", choices=get_args(Kernel), default="unified")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--like", metavar="RUN", help="log of a run whose text to imitate")
    source.add_argument("--replay", metavar="RUN", help="log of a run to schedule again")
    options = parser.parse_args()
    if options.replay:
        options.n = (recorded(options.replay).search.n,)
    for table in tables(options):
        print(table, flush=True)


if __name__ == "__main__":
    main()
