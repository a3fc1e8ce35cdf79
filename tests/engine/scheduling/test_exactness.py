"""The invariant that everything hangs on: how a search is computed never changes what it finds.

Every case runs a search plainly, with all the memory it could want, and under other circumstances:
any subset of the scheduler's mechanisms, caches down to the least that holds the longest path, two
paths or many, batches in any order, any times on the clock. Then it interrupts that run at any
event and goes on under yet others. Trees, scores, decisions and answers must be the same to the
last bit, three times.

`SAPWOOD_EXACTNESS_CASES=2000 pytest tests/engine/scheduling/test_exactness.py` tries more cases.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st

from engine.models.sampling import Sampler
from engine.models.simulated_text import Judge, Writer, lognormal
from tests.engine.scheduling.cases import (
    AMPLE,
    PLAIN,
    Case,
    Circumstances,
    cases,
    circumstances,
    solve,
    tried,
)


@tried(120)
@given(cases(), st.data())
def test_circumstances_never_change_what_a_search_finds(case: Case, data: st.DataObject) -> None:
    event(f"policy {case.policy}")
    plain = solve(case, Circumstances())
    other = solve(case, data.draw(circumstances(plain, case.n)))
    assert other.outcome == plain.outcome
    resumed = solve(case, data.draw(circumstances(plain, case.n, other.events)))
    assert resumed.outcome == plain.outcome


def test_a_draft_that_is_too_long_for_the_verifier_does_not_end_the_search() -> None:
    writer = Writer(
        seed=0,
        lengths=lognormal(6.0, 0.5, 64),
        opening=1,
        fewest=1,
        ending=0.5,
        early_forks=0.5,
        forks=0.0,
        spread=3.0,
    )
    case = Case(
        "beam",
        5,
        2,
        max_steps=3,
        aggregate="last",
        sampler=Sampler(temperature=0.5),
        seed=249,
        step_tokens=9,
        context=20,
        writer=writer,
        judge=Judge(seed=0, spread=0.0, persistence=0.0),
        problem="Is one a prime?",
    )
    plain = solve(case, Circumstances())
    ahead = replace(PLAIN, drafts=True, lookahead=True)
    drafted = solve(case, Circumstances(ahead, cells=(AMPLE, AMPLE)))
    assert drafted.least[1] > plain.least[1]
    short = solve(case, Circumstances(ahead, cells=(AMPLE, plain.least[1])))
    assert short.outcome == plain.outcome
