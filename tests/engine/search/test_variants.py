"""DVTS, dynamic branching and varying granularity: where they differ from beam search."""

from __future__ import annotations

import pytest

from engine.search import build
from engine.search.policy import Candidate, Decision, Ending, Lineage

from .driver import run, scripted


def first_round(name: str, scores: list[float], n: int, width: int) -> Decision:
    policy = build(name, n=n, width=width)
    group = policy.start()[0]
    return policy.decide(
        group, [Candidate((i,), f"{i}", (s,), Ending.STEP) for i, s in enumerate(scores)], ()
    )


def children(decision: Decision) -> list[Lineage]:
    return [branch.lineage for group in decision.next for branch in group.branches]


# DVTS


def test_dvts_grows_each_tree_as_a_group_of_its_own() -> None:
    groups = build("dvts", n=6, width=2).start()
    assert [group.key for group in groups] == [(0,), (1,), (2,)]
    assert [[b.lineage for b in g.branches] for g in groups] == [
        [(0,), (1,)],
        [(2,), (3,)],
        [(4,), (5,)],
    ]


def test_a_dvts_tree_follows_its_best_candidate_the_first_of_equals() -> None:
    decision = first_round("dvts", [0.2, 0.8, 0.8, 0.1], n=4, width=4)
    assert decision.kept == ((1,),)
    assert children(decision) == [(1, 0), (1, 1), (1, 2), (1, 3)]


def dvts_end(*ends: tuple[float, str, Ending]) -> Decision:
    policy = build("dvts", n=len(ends), width=len(ends))
    pool = [Candidate((i,), text, (s,), ending) for i, (s, text, ending) in enumerate(ends)]
    return policy.decide(policy.start()[0], pool, ())


def test_a_dvts_tree_gives_all_finished_candidates_of_its_last_expansion() -> None:
    """Issue 57: and none that is unfinished."""
    decision = dvts_end((0.9, "a", Ending.END), (0.1, "b", Ending.END), (0.8, "c", Ending.STEP))
    assert decision == Decision(completed=((0,), (1,)), pruned=((2,),))


def test_a_dvts_tree_passes_by_a_finished_candidate_that_is_not_its_best() -> None:
    assert dvts_end((0.9, "a", Ending.STEP), (0.1, "b", Ending.END)).completed == ()


def test_a_dvts_tree_ends_with_a_step_that_holds_the_boxed_answer() -> None:
    decision = dvts_end((0.9, r"so \boxed{4}", Ending.STEP), (0.1, "b", Ending.STEP))
    assert (decision.completed, decision.next) == (((0,),), ())


def test_a_dvts_tree_goes_on_past_a_cut_step_but_not_past_a_full_context() -> None:
    """Defect 3."""
    assert dvts_end((0.9, "a", Ending.LENGTH), (0.1, "b", Ending.STEP)).kept == ((0,),)
    assert dvts_end((0.9, "a", Ending.CONTEXT), (0.1, "b", Ending.STEP)).kept == ((1,),)
    assert dvts_end((0.9, "a", Ending.CONTEXT)) == Decision(pruned=((0,),))


# Dynamic branching


@pytest.mark.parametrize(
    ("scores", "copies"),
    [
        # Shares of 8 above the worst: 0.0, 2.0, 6.0; the worst vanishes.
        ([0.0, 0.2, 0.6], [0, 2, 6]),
        # Equal scores share equally, the earlier survivors first.
        ([0.5, 0.5, 0.5], [3, 3, 2]),
        # Shares 0, 2.67, 5.33: what is left goes to the larger fraction.
        ([0.0, 0.1, 0.2], [0, 3, 5]),
    ],
)
def test_dynamic_branching_shares_children_by_score(scores: list[float], copies: list[int]) -> None:
    # Width 2 of 8 keeps 4: the pool of three survives whole.
    decision = first_round("dynamic", scores, n=8, width=2)
    assert children(decision) == [(i, j) for i, count in enumerate(copies) for j in range(count)]
    assert set(decision.kept) == {(i,) for i, count in enumerate(copies) if count}


def test_a_survivor_without_children_is_pruned() -> None:
    assert first_round("dynamic", [0.0, 0.2, 0.6], n=8, width=2).pruned == ((0,),)


def test_dynamic_branching_leaves_a_full_round_as_it_is() -> None:
    assert children(first_round("dynamic", [0.1, 0.9], n=2, width=1)) == [(0, 0), (1, 0)]


# Varying granularity


def caps(step_tokens: int, max_steps: int) -> list[int | None]:
    write = scripted(lambda group, _: Ending.END if group.whole else Ending.STEP, lambda _: 0.5)
    policy = build("vg", n=2, width=2, max_steps=max_steps, step_tokens=step_tokens)
    return [r.group.step_tokens for r in run(policy, write).rounds]


def test_the_first_three_steps_are_short() -> None:
    assert caps(step_tokens=512, max_steps=5) == [64, 64, 64, None, None]


def test_a_short_step_is_at_most_a_quarter_of_the_usual_cap() -> None:
    assert caps(step_tokens=100, max_steps=5)[0] == 25
    assert caps(step_tokens=2, max_steps=5)[0] == 1


def test_the_last_round_is_not_cut_short() -> None:
    assert caps(step_tokens=512, max_steps=2) == [64, None]
