"""What scarce KV memory costs, by the order in which paths are written.

`python -m bench.pressure [--n 64] [--paths 12] [--problems 3] [--generators seedling]`

Beam search with caches that hold `--paths` of its `--n` paths: that part of the most cells which
the same search takes with ample memory, shared beginnings counted once, though no less than the
longest path. With real generators, verified by the seedling, on this machine (llama.cpp rounds its
cells up to 256), and with a simulated pair by the virtual clock of a GPU. Memory also decides what
is drafted, so the orders are compared without drafts. `factor` is what first come, first served
evicts or computes again by what the row does. Every search must find the same tree as with ample
memory; on real models floating-point ties can make one differ, and are counted.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from bench.equality import Equality
from bench.scripts import CONTEXT, PROBLEM
from bench.searches import HOT, Outcome, Pair, opened, solve
from bench.simulate import machine
from bench.table import markdown
from engine import catalogue
from engine.models.chat import ChatTemplate
from engine.models.simulated import SimulatedModel
from engine.models.simulated_clock import Timing, VirtualClock
from engine.models.simulated_text import BEGIN, Judge, Writer
from engine.protocol.request import Search
from engine.scheduling.settings import EXACT, Limits, Mechanisms, Mode
from engine.seedling.problems import held_out
from engine.verify.formats import bind

_COPIES = replace(EXACT.mechanisms, drafts=False)
_ORDERED = replace(_COPIES, host_copies=False)
_UNORDERED = replace(_ORDERED, prefix_order=False)
FIRST_COME = "first come, first served"
SCARCE: dict[str, Mechanisms] = {
    FIRST_COME: _UNORDERED,
    "prefix order": _ORDERED,
    "prefix order, host copies": _COPIES,
    "exact, with drafts": EXACT.mechanisms,
}
MODEL = "1.5B+1.5B"
Opening = Callable[[tuple[int, int] | None], AbstractContextManager[Pair]]
"""Opens a generator and a verifier with caches of so many cells; None for ample ones."""


def real(generator: str, n: int) -> Opening:
    return lambda cells: opened(generator, n, paths=n, cells=cells)


def simulated(device: str, n: int, seed: int) -> Opening:
    tables = tomllib.loads((Path(__file__).parent / "devices.toml").read_text("utf-8"))
    where = machine(tables, device, MODEL)
    assert where is not None, f"{MODEL} does not fit on {device}"

    @contextmanager
    def open(cells: tuple[int, int] | None) -> Iterator[Pair]:
        clock = VirtualClock()
        generator, verifier = (
            SimulatedModel(process, capacity=size, paths=2 * n + 2, timing=timing)
            for process, size, timing in zip(
                (Writer(seed), Judge(seed)),
                cells or (n * CONTEXT, n * CONTEXT),
                (Timing(clock, where.device, shape, "unified") for shape in where.shapes),
                strict=True,
            )
        )
        words = generator.vocabulary
        yield Pair(
            generator,
            verifier,
            bind(catalogue.load().format("seedling"), verifier.vocabulary, ChatTemplate("")),
            lambda problem: [*words.tokenize(problem), BEGIN],
            Limits(Search().step_tokens, CONTEXT),
            40,
            lambda: clock.now,
        )

    return open


def compare(title: str, openings: Sequence[tuple[Opening, str]], n: int, paths: int) -> str:
    """One table: problems given as models to open and a text."""
    names = ("ample memory", *SCARCE)
    results: dict[str, list[Outcome]] = {name: [] for name in names}
    equal = {name: Equality() for name in names}
    sizes: list[int] = []
    for seed, (open, problem) in enumerate(openings):
        print(f"{title}: problem {seed + 1} of {len(openings)}", file=sys.stderr)
        with open(None) as pair:
            ample = solve(pair, problem, Mode(_UNORDERED), n=n, seed=seed, temperature=HOT)
        results["ample memory"].append(ample)
        writer, judge = (
            max(meter.most * paths // n, meter.longest + 1)
            for meter in (ample.generator, ample.verifier)
        )
        with open((writer, judge)) as pair:
            sizes.append(pair.generator.capacity)
            for name, mechanisms in SCARCE.items():
                outcome = solve(pair, problem, Mode(mechanisms), n=n, seed=seed, temperature=HOT)
                results[name].append(outcome)
                equal[name].compare(ample, outcome)
    rows = [row(name, results[name], results[FIRST_COME], equal[name]) for name in names]
    most = max(outcome.generator.most for outcome in results["ample memory"])
    title = f"{title}, n = {n}, room for {paths}: {max(sizes):,} of {most:,} cells"
    return markdown(title, COLUMNS, rows)


COLUMNS = (
    "",
    "seconds",
    "decode steps",
    "evicted",
    "factor",
    "recomputed",
    "factor",
    "restored",
    "verified",
    "nodes compared",
    "differing",
    "scores differing",
)


def row(
    name: str, own: Sequence[Outcome], first_come: Sequence[Outcome], equality: Equality
) -> list[str]:
    """Means over problems."""

    def tokens(count: Callable[[Outcome], int]) -> list[str]:
        mean, other = fmean(map(count, own)), fmean(map(count, first_come))
        return [f"{mean:,.0f}", f"{other / mean:.2f}" if mean else "-"]

    return [
        name,
        f"{fmean(o.seconds for o in own):.2f}",
        f"{fmean(o.counts.decode_steps for o in own):,.0f}",
        *tokens(lambda o: o.counts.evicted),
        *tokens(lambda o: o.counts.recomputed),
        f"{fmean(o.counts.restored for o in own):,.0f}",
        f"{fmean(o.verifier.tokens for o in own):,.0f}",
        f"{equality.nodes:,}",
        f"{equality.differing:,}",
        f"{equality.scores:,}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.pressure")
    parser.add_argument("--n", type=int, default=64)
    parser.add_argument("--paths", type=int, default=12, help="of full length that caches hold")
    parser.add_argument("--problems", type=int, default=3)
    parser.add_argument("--generators", nargs="*", default=["seedling"], help="of the catalogue")
    parser.add_argument("--device", default="rtx-4070-ti", help="a table of bench/devices.toml")
    options = parser.parse_args()
    n, paths = options.n, options.paths
    for generator in options.generators:
        problems = [(real(generator, n), p.text) for p in held_out(options.problems, seed=1)]
        print(compare(generator, problems, n, paths), flush=True)
    texts = [(simulated(options.device, n, seed), PROBLEM) for seed in range(options.problems)]
    print(compare(f"Simulated {MODEL} on {options.device}", texts, n, paths))


if __name__ == "__main__":
    main()
