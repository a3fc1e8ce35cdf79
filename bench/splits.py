"""How a cache is best split where memory is short: `python -m bench.splits`.

The simulated pairs of `bench.simulate` search in the mode `exact`, with what the models leave of a
GPU's memory, or a part of it, split in three ways: by the roofline as FastTTS does, as the plan
does (which also counts what has left a cache and is read again), and with as many cells for both.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from bench.scripts import generated
from bench.simulate import (
    TYPICAL,
    WIDTH,
    Machine,
    Outcome,
    devices_and_models,
    load_of,
    machine,
    solve,
)
from bench.table import markdown
from engine.memory.roofline import Speed, Work, split
from engine.memory.strategies import ROUNDS

_SPLITS = {"FastTTS": 0, "the plan": ROUNDS, "equal cells": None}
"""Rounds in which survivors that do not fit are read again; None splits by cells."""
_CASES = (
    ("rtx-3070-ti", "1.5B+7B", 1.0),
    ("rtx-3070-ti", "7B+1.5B", 1.0),
    ("rtx-4070-ti", "1.5B+7B", 0.25),
)
"""Devices, pairs, and the part of what the models leave that caches get."""
_HEADER = ("", "paths held", "latency s", "generator s", "verifier s", "recomputed", "verified")


@dataclass(frozen=True)
class _Split(Machine):
    """A machine whose caches are split in one way."""

    rounds: int | None = None

    def held(self, n: int) -> tuple[int, int]:
        """Paths of typical length that the generator's and the verifier's cache hold."""
        first, second = self.shapes
        both = self.room // (TYPICAL * (first.cell_bytes + second.cell_bytes))
        if self.rounds is None:
            return both, both
        found = split(
            Work(n, TYPICAL, n // WIDTH, self.rounds),
            load_of(first),
            load_of(second),
            Speed(self.device.bandwidth, self.device.flops),
            self.room,
            (TYPICAL * first.cell_bytes, TYPICAL * second.cell_bytes),
        )
        return (both, both) if found is None else (found.written, found.verified)

    def cells(self, n: int, how: str) -> tuple[int, int]:
        first, second = self.shapes
        written, verified = self.held(n)
        share = (
            written * first.cell_bytes / (written * first.cell_bytes + verified * second.cell_bytes)
        )
        size = int(self.room * share)
        return size // first.cell_bytes, (self.room - size) // second.cell_bytes


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.splits")
    parser.add_argument("--n", type=int, default=64)
    parser.add_argument("--problems", type=int, default=1)
    options = parser.parse_args(arguments)
    for device, pair, part in _CASES:
        where = machine(devices_and_models(), device, pair)
        assert where is not None
        room = int(where.room * part)
        rows = list(_rows(replace(where, room=room), options.n, options.problems))
        title = f"{device}, {pair}, n {options.n}, {room / 2**30:.1f} GiB for both caches"
        print(markdown(title, _HEADER, rows), flush=True)


def _rows(where: Machine, n: int, problems: int) -> Iterator[list[str]]:
    for name, rounds in _SPLITS.items():
        split_so = _Split(where.device, where.shapes, where.room, where.precision, rounds)
        outcomes: list[Outcome] = []
        for seed in range(problems):
            print(".", end="", file=sys.stderr, flush=True)
            outcomes.append(solve(split_so, generated(seed, n, None), "exact", "unified"))
        yield [
            name,
            " + ".join(map(str, split_so.held(n))),
            f"{fmean(o.seconds for o in outcomes):.2f}",
            f"{fmean(o.busy[0] for o in outcomes):.2f}",
            f"{fmean(o.busy[1] for o in outcomes):.2f}",
            f"{fmean(o.counts.recomputed for o in outcomes):,.0f}",
            f"{fmean(o.verified for o in outcomes):,.0f}",
        ]


if __name__ == "__main__":
    main(sys.argv[1:])
