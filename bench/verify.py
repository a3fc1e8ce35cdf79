"""What verifying costs, and whether both engines judge alike; nothing here passes or fails.

`python -m bench.verify [--rounds 10] [--repeats 10]`
`python -m bench.verify --survivors 100`

The first prints tokens and seconds of scoring a tree as it grows, n = 8 candidates a round of
which 2 go on: incrementally, as the engine does it, and each path from its beginning every time.
The second searches the same problems with the embedded verifier on llama.cpp and on torch.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from functools import partial
from statistics import median

from bench.interleave import Pairs
from bench.survivors import Engines, N, compare, engines
from bench.table import markdown
from engine import catalogue
from engine.models.base import TokenModel
from engine.models.chat import ChatTemplate
from engine.models.threads import default_threads
from engine.seedling.problems import Problem, held_out
from engine.verify.formats import bind
from engine.verify.prm import Judged, Prm

KEPT = 2


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.verify")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=10, help="trees; each is timed both ways")
    parser.add_argument("--survivors", type=int, metavar="PROBLEMS")
    options = parser.parse_args()
    print(f"{default_threads()} compute thread(s)\n")
    with engines() as pair:
        if options.survivors:
            print(survivors(pair, options.survivors))
        else:
            print(growing(pair, options.rounds, options.repeats))


def growing(pair: Engines, rounds: int, repeats: int) -> str:
    """Scoring a tree as it grows, incrementally and by whole paths."""
    rows: list[list[str]] = []
    for name, model in (("llama.cpp", pair.llama), ("torch, float32", pair.torch)):
        grow(model, held_out(1, 0)[0], 2, [], whole_paths=False)  # buffers are allocated
        timed = Pairs()
        fed: list[int] = []
        fed_whole: list[int] = []
        for problem in held_out(repeats, 1):
            _progress(f"{name}: tree {len(timed.ours) + 1} of {repeats}")
            work = partial(grow, model, problem, rounds)
            timed.measure(
                partial(work, fed, whole_paths=False), partial(work, fed_whole, whole_paths=True)
            )
        ratio, spread = timed.summary()
        rows.append(
            [
                name,
                f"{median(fed):,.0f}",
                f"{median(fed_whole):,.0f}",
                f"{median(timed.ours):.3f}",
                f"{median(timed.theirs):.3f}",
                ratio,
                spread,
            ]
        )
    return markdown(
        f"Scoring a tree of {rounds} rounds, n = {N}, {KEPT} go on (medians of {repeats})",
        [
            "engine",
            "tokens, incremental",
            "whole paths",
            "seconds, incremental",
            "whole paths",
            "ratio",
            "range",
        ],
        rows,
    )


def grow(
    model: TokenModel, problem: Problem, rounds: int, fed: list[int], *, whole_paths: bool
) -> None:
    """Score the tree of a beam search on made-up steps, and note the tokens fed in `fed`."""
    model.reset()
    format = bind(catalogue.load().format("seedling"), model.vocabulary, ChatTemplate(""))
    verifier = Prm(model, format, problem.text, whole_paths=whole_paths)
    chance = random.Random(0)
    survivors: list[Judged] = [verifier.root]
    for _ in range(rounds):
        requests = [
            (parent, [f"{chance.choice(problem.steps)} {chance.randrange(1000)}"])
            for parent in survivors
            for _ in range(N // len(survivors))
        ]
        judged = verifier.score(requests)
        for node in judged[KEPT:]:
            verifier.release(node)
        survivors = judged[:KEPT]
    fed.append(verifier.fed_tokens)


def survivors(pair: Engines, count: int) -> str:
    """The same searches with either engine, and where they went apart."""
    problems = held_out(count, 7)
    largest = 0.0
    decisions = same = 0
    rows: list[list[str]] = []
    began = time.monotonic()
    for index, problem in enumerate(problems):
        _progress(f"problem {index + 1} of {count}")
        found = compare(pair, problem.text)
        largest = max(largest, found.largest)
        decisions += found.decisions
        if found.divergence is None:
            same += 1
        else:
            apart = found.divergence
            rows.append(
                [
                    str(index),
                    str(apart.round),
                    " ".join(map(str, apart.llama)),
                    " ".join(map(str, apart.torch)),
                    f"{apart.margin:.1e}",
                ]
            )
    summary = markdown(
        f"Beam search, n = {N}: survivors with the verifier on llama.cpp and on torch",
        ["problems", "all survivors the same", "decisions alike", "largest difference of a score"],
        [[str(count), str(same), str(decisions), f"{largest:.1e}"]],
    )
    _progress(f"{time.monotonic() - began:.0f} s")
    if not rows:
        return summary
    return (
        summary
        + "\n"
        + markdown(
            "Where they went apart first",
            ["problem", "round", "only by llama.cpp", "only by torch", "margin"],
            rows,
        )
    )


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
