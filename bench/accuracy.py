"""Does search with a verifier find more right answers, at what cost?

`python -m bench.accuracy [--problems 300] [--seed 0] [--policies greedy,beam]`

Solves held-out problems of the seedling's kind through the engine, as `sapwood solve` does, and
prints how many each policy solves with 95 % intervals (Wilson's), what it costs, and paired
comparisons (McNemar's exact test; interval of the difference from a paired bootstrap). Half of
the problems are new by their parameters alone, half also by a phrasing never seen in training.
The same seed gives the same trees. Progress goes to stderr, the tables to stdout.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from statistics import fmean
from typing import Literal

import numpy as np

from app.accuracy import wilson
from bench.table import markdown
from engine.protocol import Answered, AnyEvent, Counters, RunFinished, Search, SolveRequest
from engine.protocol.request import Sampling
from engine.seedling.problems import Problem, held_out
from engine.service.run import Run
from engine.service.solver import Solver

N, WIDTH = 8, 4


@dataclass(frozen=True)
class Contestant:
    """A policy and how its answer is chosen."""

    name: str
    policy: str
    choose: Literal["best", "weighted"] | None = None


CONTESTANTS = (
    Contestant("greedy", "greedy"),
    Contestant(f"majority@{N}", "majority"),
    Contestant(f"best-of-{N}", "best-of-n"),
    Contestant(f"weighted@{N}", "weighted"),
    Contestant(f"beam n={N} m={WIDTH}, weighted", "beam", "weighted"),
    Contestant(f"beam n={N} m={WIDTH}, best", "beam", "best"),
    Contestant(f"DVTS n={N} m={WIDTH}, weighted", "dvts", "weighted"),
    Contestant(f"DVTS n={N} m={WIDTH}, best", "dvts", "best"),
)
RIVALS = ("greedy", "majority")
"""Policies that the guided ones are compared with."""


@dataclass(frozen=True)
class Outcome:
    solved: bool
    cost: Counters


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.accuracy")
    parser.add_argument("--problems", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument(
        "--policies", help=f"some of {','.join(sorted({c.policy for c in CONTESTANTS}))}"
    )
    options = parser.parse_args()
    chosen = options.policies.split(",") if options.policies else None
    contestants = [c for c in CONTESTANTS if chosen is None or c.policy in chosen]

    half = options.problems // 2
    kinds = {
        "parameters": held_out(options.problems - half, options.seed, "parameters"),
        "templates": held_out(half, options.seed, "templates"),
    }
    outcomes: dict[str, dict[str, list[Outcome]]] = {}
    for kind, problems in kinds.items():
        outcomes[kind] = measure(problems, contestants, options.seed, options.temperature, kind)
    together = {
        c.name: [o for results in outcomes.values() for o in results[c.name]] for c in contestants
    }
    print(accuracy_table(contestants, outcomes | {"together": together}))
    print(cost_table(contestants, together))
    print(comparison_table(contestants, together))


def measure(
    problems: Sequence[Problem],
    contestants: Sequence[Contestant],
    seed: int,
    temperature: float,
    kind: str,
) -> dict[str, list[Outcome]]:
    """What becomes of every problem with every contestant, who take turns."""
    solver = Solver()
    outcomes: dict[str, list[Outcome]] = {c.name: [] for c in contestants}
    for number, problem in enumerate(problems, 1):
        for contestant in contestants:
            request = SolveRequest(
                problem=problem.text,
                expected=str(problem.answer),
                verifier="seedling",
                search=Search(policy=contestant.policy, n=N, width=WIDTH, choose=contestant.choose),
                sampling=Sampling(temperature=temperature),
                seed=seed * 1_000_000 + number,
            )
            outcomes[contestant.name].append(solve(solver, request))
        if number % 10 == 0 or number == len(problems):
            solved = (f"{c.policy} {count(outcomes[c.name])}" for c in contestants)
            print(f"{kind} {number}/{len(problems)}: {', '.join(solved)}", file=sys.stderr)
    solver.close()
    return outcomes


def solve(solver: Solver, request: SolveRequest) -> Outcome:
    events: list[AnyEvent] = []
    for _ in solver.solve(Run("bench", request, send=events.append)):
        pass
    answers = [event for event in events if isinstance(event, Answered)]
    (cost,) = (event.counters for event in events if isinstance(event, RunFinished))
    return Outcome(bool(answers) and answers[-1].correct is True, cost)


def count(outcomes: Sequence[Outcome]) -> int:
    return sum(outcome.solved for outcome in outcomes)


def accuracy_table(
    contestants: Sequence[Contestant], outcomes: dict[str, dict[str, list[Outcome]]]
) -> str:
    rows = [
        [c.name, *(cell for results in outcomes.values() for cell in share(results[c.name]))]
        for c in contestants
    ]
    sizes = {kind: len(results[contestants[0].name]) for kind, results in outcomes.items()}
    header = ["", *(h for kind, size in sizes.items() for h in (f"{kind} ({size})", "95 %"))]
    return markdown("Held-out problems solved, in percent", header, rows)


def share(outcomes: Sequence[Outcome]) -> tuple[str, str]:
    solved, total = count(outcomes), len(outcomes)
    low, high = wilson(solved, total)
    return f"{solved / max(total, 1):.1%}"[:-1], f"{100 * low:.1f} to {100 * high:.1f}"


def cost_table(contestants: Sequence[Contestant], outcomes: dict[str, list[Outcome]]) -> str:
    rows: list[list[str]] = []
    for contestant in contestants:
        costs = [outcome.cost for outcome in outcomes[contestant.name]]
        rows.append(
            [
                contestant.name,
                f"{fmean(cost.generated_tokens for cost in costs):.0f}",
                f"{fmean(cost.verified_tokens for cost in costs):.0f}",
                f"{fmean(cost.seconds for cost in costs):.3f}",
            ]
        )
    header = ["", "tokens generated", "tokens verified", "seconds"]
    return markdown("Cost of a problem, on average", header, rows)


def comparison_table(contestants: Sequence[Contestant], outcomes: dict[str, list[Outcome]]) -> str:
    rows: list[list[str]] = []
    for rival in (c for c in contestants if c.policy in RIVALS):
        for contestant in (c for c in contestants if c.policy not in RIVALS):
            paired = list(zip(outcomes[contestant.name], outcomes[rival.name], strict=True))
            gained = sum(ours.solved and not theirs.solved for ours, theirs in paired)
            lost = sum(theirs.solved and not ours.solved for ours, theirs in paired)
            low, high = difference_interval(gained, lost, len(paired))
            rows.append(
                [
                    f"{contestant.name} − {rival.name}",  # noqa: RUF001
                    f"{100 * (gained - lost) / len(paired):+.1f}",
                    f"{100 * low:+.1f} to {100 * high:+.1f}",
                    str(gained),
                    str(lost),
                    f"{mcnemar(gained, lost):.2g}",
                ]
            )
    header = ["", "points", "95 %", "solved by the first alone", "by the second alone", "p"]
    return markdown("Paired differences, all problems together", header, rows)


def mcnemar(gained: int, lost: int) -> float:
    """Two-sided exact p-value of McNemar's test."""
    total = gained + lost
    tail = sum(comb(total, k) for k in range(min(gained, lost) + 1))
    return min(1.0, 2 * tail / 2**total)


def difference_interval(gained: int, lost: int, total: int) -> tuple[float, float]:
    """95 % interval of the difference of two shares measured on the same problems."""
    shares = [gained / total, lost / total, (total - gained - lost) / total]
    draws = np.random.default_rng(0).multinomial(total, shares, size=20_000)
    low, high = np.quantile((draws[:, 0] - draws[:, 1]) / total, (0.025, 0.975))
    return float(low), float(high)


if __name__ == "__main__":
    main()
