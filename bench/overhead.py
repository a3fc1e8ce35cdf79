"""What a decode step costs besides computing it, part by part.

`python -m bench.overhead [--n 64] [--problems 2] [--generators smollm2-135m-instruct]`

Beam search, verified by the seedling, without drafts and with them whether they pay or not; events
are encoded as in the worker process. Parts are processor time of the thread that schedules, each
without the parts inside it, of a whole search by its decode steps: the rounds' ends, where few
paths are left and groups are decided, are in it. `overhead` is all but llama.cpp's own work, by
the whole step. The verifier is no part of a decode step and shown apart.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

import llama_cpp

from bench.searches import SMOLLM, Pair, opened, solve
from bench.spent import Spent
from bench.table import markdown
from engine.models.llama import LlamaModel
from engine.models.sampling import Draws, Sampler
from engine.scheduling.prospects import Prospects
from engine.scheduling.scheduler import Scheduler
from engine.scheduling.settings import EXACT, Mode
from engine.scheduling.speculation import Speculation
from engine.scheduling.verification import Verification
from engine.seedling.problems import Problem, held_out
from engine.service.run import Run

FUNCTIONS = (
    (Scheduler, "prepare", "scheduler"),
    (Scheduler, "accept", "scheduler"),
    (Scheduler, "settle", "scheduler"),
    (Verification, "score", "verifier"),
    (llama_cpp, "llama_decode", "decode"),
    (LlamaModel, "forward", "batch"),
    (LlamaModel, "fork", "forks"),
    (LlamaModel, "drop", "forks"),
    (Sampler, "draw", "sampling"),
    (Draws, "uniform", "sampling"),
    (Run, "emit", "events"),
    (Speculation, "start", "speculation"),
    (Speculation, "chosen", "speculation"),
    (Speculation, "drop", "speculation"),
    (Speculation, "decided", "speculation"),
    (Prospects, "rank", "ranking"),
)
PARTS = ("sampling", "scheduler", "batch", "forks", "events", "speculation", "ranking")
MODES = {
    "no drafts": Mode(replace(EXACT.mechanisms, drafts=False)),
    "drafts": Mode(replace(EXACT.mechanisms, only_if_it_pays=False)),
    "exact": EXACT,
}


def measure(pair: Pair, problems: list[Problem], mode: Mode, n: int) -> list[str]:
    """Milliseconds a decode step, and the share of all that is not llama.cpp's."""
    spent = Spent()
    steps = rows = drafted = 0
    with spent.watching(FUNCTIONS):
        for seed, problem in enumerate(problems):
            outcome = solve(pair, problem.text, mode, n=n, seed=seed)
            steps += outcome.counts.decode_steps
            rows += outcome.rows
            drafted += outcome.counts.drafted
    own = Spent()  # of decode steps alone
    verifier = 0.0
    for at, seconds in spent.seconds.items():
        if "verifier" in at:
            verifier += seconds
        elif at and at[:2] != ("scheduler", "batch"):  # the prompt, computed before all steps
            own.seconds[at] += seconds
    step = sum(own.seconds.values())
    overhead = 1 - own.of("decode") / step
    shown = (step, own.of("decode"), *map(own.of, PARTS), verifier)
    milliseconds = [f"{1e3 * seconds / steps:.2f}" for seconds in shown]
    return [str(steps), f"{rows / steps:.1f}", f"{drafted:,}", f"{overhead:.1%}", *milliseconds]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.overhead")
    parser.add_argument("--generators", nargs="+", default=[SMOLLM], help="of the catalogue")
    parser.add_argument("--n", nargs="+", type=int, default=[64])
    parser.add_argument("--problems", type=int, default=2)
    options = parser.parse_args()
    problems = held_out(options.problems, seed=1)
    header = ["", "steps", "rows a step", "drafted", "overhead"]
    header += [f"{part} ms" for part in ("step", "decode", *PARTS, "verifier")]
    for generator in options.generators:
        rows: list[list[str]] = []
        for n in options.n:
            with opened(generator, n) as pair:
                for name, mode in MODES.items():
                    print(f"{generator}, n = {n}, {name}", file=sys.stderr)
                    rows.append([f"n = {n}, {name}", *measure(pair, problems, mode, n)])
        print(markdown(f"A decode step of {generator}, by part", header, rows), flush=True)


if __name__ == "__main__":
    main()
