"""How memory is best split between two caches where it is short: `python -m bench.splits`.

The simulated pairs of `bench.simulate` search in the mode `exact`, with what the models leave of a
GPU's memory split in three ways: by the roofline as FastTTS does, in halves, and
with as many cells for both, as the plan does. The engine drafts and shares in all three.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from statistics import fmean
from unittest.mock import patch

from bench.scripts import generated
from bench.simulate import MEMORY, TYPICAL, Machine, Memory, devices_and_models, machine, solve
from bench.table import markdown

_WAYS: dict[str, Memory] = {"FastTTS": "roofline", "halves": "halves", "equal cells": "tree"}
_DEVICE = "rtx-3070-ti"
"""The smallest: with 7B models little is left for caches."""
_PAIRS = ("1.5B+7B", "7B+1.5B")
_HEADER = ("", "paths held", "latency s", "generator s", "verifier s", "recomputed", "verified")


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.splits")
    parser.add_argument("--n", type=int, default=64)
    parser.add_argument("--problems", type=int, default=1)
    options = parser.parse_args(arguments)
    for pair in _PAIRS:
        where = machine(devices_and_models(), _DEVICE, pair)
        assert where is not None
        rows = list(_rows(where, options.n, options.problems))
        title = f"{_DEVICE}, {pair}, n {options.n}, {where.room / 2**30:.1f} GiB for both caches"
        print(markdown(title, _HEADER, rows), flush=True)


def _rows(where: Machine, n: int, problems: int) -> Iterator[list[str]]:
    for name, way in _WAYS.items():
        print(".", end="", file=sys.stderr, flush=True)
        with patch.dict(MEMORY, exact=way):
            outcomes = [
                solve(where, generated(seed, n, None), "exact", "unified")
                for seed in range(problems)
            ]
        yield [
            name,
            " + ".join(str(cells // TYPICAL) for cells in where.cells(n, way)),
            f"{fmean(o.seconds for o in outcomes):.2f}",
            f"{fmean(o.busy[0] for o in outcomes):.2f}",
            f"{fmean(o.busy[1] for o in outcomes):.2f}",
            f"{fmean(o.counts.recomputed for o in outcomes):,.0f}",
            f"{fmean(o.verified for o in outcomes):,.0f}",
        ]


if __name__ == "__main__":
    main(sys.argv[1:])
