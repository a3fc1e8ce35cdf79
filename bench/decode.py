"""How fast the engine writes, in three tables; nothing here passes or fails.

`python -m bench.decode [--tables abc] [--quick]`

A. Tokens a second of n independent paths on SmolLM2-135M, sampling and events included, against a
   bare loop of `llama_decode` on batches of the same size, and where the rest of the time goes.
B. Seconds a problem of beam search n=8 m=4, against the same search as one would write it with
   the high-level `Llama` object (see `bench/highlevel.py`).
C. Milliseconds a step of one unified cache with shared beginnings, against a stream a path.

Contestants take turns within one run and are compared pair by pair, so that a drift of the
machine's speed touches both alike. Both compute with the engine's default number of threads.
"""

from __future__ import annotations

import argparse
import sys
from statistics import median

from msgspec.structs import replace

from bench import attention
from bench.attention import Case
from bench.bare import Bare
from bench.highlevel import HighLevel
from bench.interleave import Pairs
from bench.table import markdown
from bench.writer import HOST_PARTS, Writer, profile
from engine import catalogue
from engine.models.llama import LlamaWeights
from engine.models.threads import default_threads
from engine.protocol import RunFinished, Search, SolveRequest
from engine.seedling.problems import held_out
from engine.service.run import Run
from engine.service.solver import Solver

SMOLLM = "smollm2-135m-instruct"
STORY = (
    "<|im_start|>user\nTell the story of a lighthouse and its keeper.<|im_end|>\n"
    "<|im_start|>assistant\n"
)
BLOCK = 4
"""Steps that are timed together in table A."""
MOST_CELLS = 16_384
"""Cells of the largest unified cache in table C; cases that need more are left out."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.decode")
    parser.add_argument("--tables", default="abc", help="which of a, b and c")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it works")
    options = parser.parse_args()
    print(f"{default_threads()} compute thread(s)\n")
    for letter, table in (("a", writing), ("b", beam_search), ("c", caches)):
        if letter in options.tables:
            print(table(options.quick), flush=True)


def writing(quick: bool) -> str:
    """Table A."""
    sizes, blocks, repeats = ((1, 4), 2, 1) if quick else ((1, 4, 8, 16, 32), 8, 2)
    length = BLOCK * (blocks + 1) + 2  # one more block for the profile
    weights = LlamaWeights(catalogue.generator_file(SMOLLM))
    prompt = weights.vocabulary.tokenize(STORY, special=True)
    paths = max(sizes)
    cells = len(prompt) + paths * length
    engine = Writer(weights, cells=cells, paths=paths)
    bare = Bare(weights, cells=cells, sequences=paths)
    rows: list[list[str]] = []
    for n in sizes:
        _progress(f"table A, n = {n}")
        pairs = Pairs()
        hosts: list[dict[str, float]] = []
        for seed in range(repeats):
            engine.begin(n, prompt, length, seed)
            bare.clear()
            bare.prefill(prompt[:-1])
            bare.share(range(1, n))
            bare.begin(n, len(prompt) - 1, prompt[-1])
            bare.step()
            for _ in range(blocks):
                pairs.measure(lambda: _steps(engine), lambda: _steps(bare))
            hosts.append(profile(engine.step, BLOCK))
        ours, theirs = (n * BLOCK / median(t) for t in (pairs.ours, pairs.theirs))
        host = [f"{median(h[part] for h in hosts):.0f}" for part in HOST_PARTS]
        rows.append([str(n), f"{theirs:.1f}", f"{ours:.1f}", *pairs.summary(), *host])
    engine.close()
    bare.close()
    weights.close()
    header = ["paths", "bare tokens/s", "engine tokens/s", "ratio", "range"]
    header += [f"{part} µs a step" for part in HOST_PARTS]
    return markdown("A. Engine against a bare loop of llama_decode, SmolLM2-135M", header, rows)


def _steps(contestant: Writer | Bare) -> None:
    for _ in range(BLOCK):
        contestant.step()


def beam_search(quick: bool) -> str:
    """Table B."""
    plans = (
        (("seedling", 2, Search()), (SMOLLM, 1, Search(max_steps=1, step_tokens=8)))
        if quick
        else (("seedling", 30, Search()), (SMOLLM, 3, Search(max_steps=4, step_tokens=32)))
    )
    rows = [_race(*plan) for plan in plans]
    header = ["generator", "problems", "Llama s/problem", "engine s/problem", "ratio", "range"]
    header += ["Llama tokens", "engine tokens", "ratio a token"]
    return markdown("B. Beam search n=8 m=4, verified by the seedling, end to end", header, rows)


def _race(generator: str, count: int, settings: Search) -> list[str]:
    """Both solve the same problems. Their draws differ, so the tokens written are counted too."""
    solver = Solver()
    files = (catalogue.generator_file(generator), catalogue.verifier_file("seedling", None)[0])
    plain = HighLevel(*files, context=1024)
    pairs = Pairs()
    written = 0

    def solve(request: SolveRequest) -> None:
        nonlocal written
        events: list[object] = []
        for _ in solver.solve(Run("bench", request, send=events.append)):
            pass
        written += sum(e.counters.generated_tokens for e in events if isinstance(e, RunFinished))

    warm_up, *problems = held_out(count + 1, seed=1)
    request = SolveRequest(
        problem=warm_up.text,
        generator=generator,
        verifier="seedling",
        search=replace(settings, max_steps=1, step_tokens=4),
        context=1024,
    )
    solve(request)
    plain.solve(request)
    written = plain.generated = 0
    for number, problem in enumerate(problems, 1):
        _progress(f"table B, {generator}: problem {number} of {count}")
        request = replace(request, problem=problem.text, search=settings, seed=number)
        pairs.measure(lambda r=request: solve(r), lambda r=request: plain.solve(r))
    solver.close()
    plain.close()
    ours, theirs = sum(pairs.ours), sum(pairs.theirs)
    return [
        generator,
        str(count),
        f"{theirs / count:.2f}",
        f"{ours / count:.2f}",
        *pairs.summary(1),
        f"{plain.generated / count:.0f}",
        f"{written / count:.0f}",
        f"{theirs / plain.generated / (ours / written):.1f}",
    ]


def caches(quick: bool) -> str:
    """Table C."""
    sizes, lengths = ((16,), (256,)) if quick else ((16, 32, 64), (512, 1024, 2048, 4096))
    cases = [
        case
        for length in lengths
        for n in sizes
        for own in ((32,) if quick else (32, length // 4, length - 128))
        if (case := Case(n, length, own)).cells <= MOST_CELLS
    ]
    weights = LlamaWeights(catalogue.generator_file(SMOLLM))
    rows: list[list[str]] = []
    for case, pairs in attention.compare(weights, cases, steps=2 if quick else 4):
        _progress(f"table C, {case.n} paths of {case.length} tokens, {case.own} of them own")
        rows.append(
            [
                str(case.n),
                str(case.length),
                str(case.own),
                f"{case.cells:,}",
                f"{case.n * case.length:,}",
                f"{1e3 * median(pairs.ours):.0f}",
                f"{1e3 * median(pairs.theirs):.0f}",
                *pairs.summary(),
            ]
        )
    weights.close()
    header = ["paths", "tokens a path", "own", "cells unified", "cells in streams"]
    header += ["unified ms", "streams ms", "ratio", "range"]
    title = (
        f"C. One unified cache (at most {MOST_CELLS:,} cells) against a stream a path, SmolLM2-135M"
    )
    return markdown(title, header, rows)


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
