"""The invariant that everything hangs on: how a search is computed never changes what it finds.

Every case runs a search plainly, with all the memory it could want, and under other circumstances:
any subset of the scheduler's mechanisms, caches down to the least that holds the longest path, two
paths or many, batches in any order, any times on the clock. Then it interrupts that run at any
event and goes on under yet others. Trees, scores, decisions and answers must be the same to the
last bit, three times.

`SAPWOOD_EXACTNESS_CASES=2000 pytest tests/engine/scheduling/test_exactness.py` tries more cases.
"""

from __future__ import annotations

from hypothesis import event, given
from hypothesis import strategies as st

from tests.engine.scheduling.cases import Case, Circumstances, cases, circumstances, solve, tried


@tried(120)
@given(cases(), st.data())
def test_circumstances_never_change_what_a_search_finds(case: Case, data: st.DataObject) -> None:
    event(f"policy {case.policy}")
    plain = solve(case, Circumstances())
    other = solve(case, data.draw(circumstances(plain, case.n)))
    assert other.outcome == plain.outcome
    resumed = solve(case, data.draw(circumstances(plain, case.n, other.events)))
    assert resumed.outcome == plain.outcome
