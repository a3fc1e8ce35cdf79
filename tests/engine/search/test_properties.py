"""What holds for every policy, every tree and every order of events."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.search import AGGREGATES, POLICIES, build
from engine.search.policy import Ending, Group, Lineage, Policy

from .driver import Run, Writer, run, scripted

BEAMS = ["beam", "dynamic", "vg"]


@st.composite
def policies(draw: st.DrawFn, names: list[str]) -> tuple[Policy, int, int, int]:
    """A policy with its n, width and max_steps."""
    width, trees = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    name, max_steps = draw(st.sampled_from(names)), draw(st.integers(1, 6))
    n = width * trees + (0 if name == "dvts" else draw(st.integers(0, width - 1)))
    policy = build(
        name,
        n=n,
        width=width,
        max_steps=max_steps,
        aggregate=draw(st.sampled_from(list(AGGREGATES))),
        filter_duplicates=draw(st.booleans()),
        sort_completed=draw(st.booleans()),
    )
    return policy, n, width, max_steps


def chance(seed: int) -> Writer:
    """A tree drawn by lineage, so that it does not depend on when a node is written."""

    def draw(kind: str, lineage: Lineage) -> float:
        return random.Random(f"{seed} {kind} {lineage}").random()

    def ending(group: Group, lineage: Lineage) -> Ending:
        cut = Ending.LENGTH if draw("cut", lineage) < 0.2 else Ending.STEP
        which = draw("ending", lineage)
        if which < 0.1:
            return Ending.CONTEXT
        return Ending.END if which < 0.3 or group.whole else cut

    # Few different scores, so that ties are common.
    return scripted(ending, lambda lineage: round(draw("score", lineage), 1))


def searches(names: list[str]) -> st.SearchStrategy[tuple[Run, int, int, int]]:
    return st.builds(
        lambda policy, seed: (run(policy[0], chance(seed)), *policy[1:]),
        policies(names),
        st.integers(0, 2**32),
    )


@given(policies(list(POLICIES)), st.integers(0, 2**32), st.randoms())
@settings(max_examples=60, deadline=None)
def test_the_order_in_which_groups_finish_changes_nothing(
    chosen: tuple[Policy, int, int, int], seed: int, order: random.Random
) -> None:
    one = run(chosen[0], chance(seed))
    other = run(chosen[0], chance(seed), pick=order.randrange)
    assert one.by_name() == other.by_name()
    assert one.final == other.final


@given(searches(list(POLICIES)))
@settings(max_examples=60, deadline=None)
def test_every_search_ends_within_its_steps_and_writes_no_node_twice(
    search: tuple[Run, int, int, int],
) -> None:
    result, n, _, max_steps = search
    names = Counter(b.lineage for r in result.rounds for b in r.group.branches)
    assert max(names.values()) == 1
    for step in result.rounds:
        assert step.group.whole == (step.group.round == max_steps - 1)
        assert all(len(c.lineage) == step.group.round + 1 for c in step.candidates)
    assert len(result.final) <= n


@given(searches(list(POLICIES)))
@settings(max_examples=60, deadline=None)
def test_every_candidate_is_kept_completed_or_pruned_and_only_the_kept_are_written_on(
    search: tuple[Run, int, int, int],
) -> None:
    for step in search[0].rounds:
        decision = step.decision
        fates = Counter((*decision.kept, *decision.completed, *decision.pruned))
        assert fates == Counter(c.lineage for c in step.candidates)
        assert {b.parent for g in decision.next for b in g.branches} == set(decision.kept)
        continued = {c.lineage: c for c in step.candidates if c.can_continue}
        assert set(decision.kept) <= continued.keys()


@given(searches(list(POLICIES)))
@settings(max_examples=60, deadline=None)
def test_only_ended_solutions_are_completions(search: tuple[Run, int, int, int]) -> None:
    assert all(c.ending is Ending.END for c in search[0].completed)


@given(searches(BEAMS))
@settings(max_examples=60, deadline=None)
def test_n_paths_are_in_flight_and_at_most_k_survive(search: tuple[Run, int, int, int]) -> None:
    result, n, width, _ = search
    for step in result.rounds:
        assert len(step.group.branches) == n
        assert len(step.decision.kept) <= n // width
    assert (
        len(result.rounds) == 1
        or sum(len(step.decision.completed) for step in result.rounds[:-1]) < n
    )


@pytest.mark.parametrize("name", POLICIES)
def test_the_largest_search_finishes_all_its_paths(name: str) -> None:
    write = scripted(
        lambda group, _: Ending.END if group.whole else Ending.STEP,
        lambda lineage: 1 / (1 + lineage[-1]),
    )
    paths = 1 if name == "greedy" else 256
    assert len(run(build(name, n=256, max_steps=10), write).final) == paths
