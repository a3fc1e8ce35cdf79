"""Several searches on the same models: each finds what it finds alone.

`SAPWOOD_EXACTNESS_CASES=2000 pytest tests/engine/scheduling/test_together.py` tries more cases.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from engine.models.kv_tree import KvTree
from engine.scheduling.settings import Mechanisms
from engine.scheduling.together import Together
from tests.engine.scheduling.cases import (
    SWITCHES,
    Case,
    Circumstances,
    Finished,
    Search,
    begin,
    cache_for,
    cases,
    model,
    solve,
    tried,
)

PROBLEMS = ["Is the sum of two odd numbers even?", "Is one a prime?", "Is the sum of two odd one?"]


@tried(60)
@given(cases(), st.data())
def test_company_never_changes_what_a_search_finds(first: Case, data: st.DataObject) -> None:
    others = data.draw(st.lists(cases(), min_size=1, max_size=2))
    all_cases = [
        replace(case, writer=first.writer, judge=first.judge, problem=problem)
        for case, problem in zip([first, *others], PROBLEMS, strict=False)
    ]
    alone = [solve(case, Circumstances()) for case in all_cases]
    how = data.draw(settings_for(alone, sum(case.n for case in all_cases)))
    starts = [data.draw(st.integers(0, 60)) for _ in all_cases]
    leaves = [None, *(data.draw(st.none() | st.integers(0, 60)) for _ in others)]
    found = together(all_cases, how, starts, leaves)
    for plain, other in zip(alone, found, strict=True):
        assert other is None or other.outcome == plain.outcome


@st.composite
def settings_for(draw: st.DrawFn, alone: list[Finished], n: int) -> Circumstances:
    least = [max(finished.least[place] for finished in alone) for place in (0, 1)]
    return Circumstances(
        mechanisms=draw(st.builds(Mechanisms, **dict.fromkeys(SWITCHES, st.booleans()))),
        cells=(
            draw(st.integers(least[0], 2 * n * least[0])),
            draw(st.integers(least[1], 2 * n * least[1])),
        ),
        paths=(draw(st.integers(2, 2 * n + 2)), draw(st.integers(2, 2 * n + 2))),
        order=draw(st.none() | st.integers(0, 2**32)),
        clock=draw(st.integers(0, 2**32)),
        copies=draw(st.sampled_from([0, 60, 1000])),
    )


def together(
    all_cases: list[Case], how: Circumstances, starts: list[int], leaves: list[int | None]
) -> list[Finished | None]:
    """Run searches that start and leave after so many passes; None for those that left."""
    generator, verifier = model(all_cases[0].writer, 0, how), model(all_cases[0].judge, 1, how)
    caches = cache_for(generator, how), KvTree(verifier)
    group = Together(generator, caches[0])
    waiting = sorted(range(len(all_cases)), key=lambda place: starts[place])
    going: dict[int, Search] = {}
    found: list[Finished | None] = [None] * len(all_cases)
    passes = 0
    while waiting or going:
        while waiting and (not going or starts[waiting[0]] <= passes):
            place = waiting.pop(0)
            going[place] = begin(all_cases[place], how, generator, verifier, caches)
            group.add(going[place].scheduler)
        for place, search in list(going.items()):
            leaving = leaves[place]
            if leaving is not None and passes >= starts[place] + leaving:
                group.remove(going.pop(place).scheduler)
                continue
            group.advance(search.scheduler)
            assert generator.used <= generator.capacity
            assert verifier.used <= verifier.capacity
            if search.scheduler.done:
                found[place] = search.finished()
                group.remove(going.pop(place).scheduler)
        passes += 1
        assert passes < 100_000, "the searches do not end"
    assert generator.used == verifier.used == 0
    return found
