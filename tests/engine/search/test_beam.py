"""Beam search keeps the best paths of a round and writes each of them on."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from engine.search import build
from engine.search.policy import Branch, Candidate, Decision, Ending, Group


def candidates(
    scores: Sequence[float], texts: Sequence[str] | None = None, **endings: Ending
) -> list[Candidate]:
    """First-round candidates; `c2=Ending.END` ends the one at position 2."""
    return [
        Candidate((i,), texts[i] if texts else f"step {i}", (s,), endings.get(f"c{i}", Ending.STEP))
        for i, s in enumerate(scores)
    ]


def decide(
    pool: list[Candidate],
    *,
    width: int = 2,
    done: int = 0,
    max_steps: int = 9,
    filter_duplicates: bool = True,
) -> Decision:
    """What beam search makes of a first round, `done` paths being finished already."""
    policy = build(
        "beam", n=len(pool), width=width, max_steps=max_steps, filter_duplicates=filter_duplicates
    )
    (group,) = policy.start()
    finished = [Candidate((90 + i,), f"done {i}", (1.0,), Ending.END) for i in range(done)]
    return policy.decide(group, pool, finished)


def test_survivors_are_named_best_first_and_written_on_in_their_order() -> None:
    decision = decide(candidates([0.1, 0.7, 0.2, 0.9]))
    assert decision.kept == ((3,), (1,))
    assert decision.pruned == ((0,), (2,))
    (group,) = decision.next
    assert group == Group(
        (), 1, (Branch((1,), 0), Branch((3,), 0), Branch((1,), 1), Branch((3,), 1))
    )


def test_the_first_survivors_get_the_branches_that_are_left_over() -> None:
    (group,) = decide(candidates([0.5, 0.6, 0.7, 0.8, 0.9])).next
    assert [b.lineage for b in group.branches] == [(3, 0), (4, 0), (3, 1), (4, 1), (3, 2)]


def test_of_equal_scores_the_later_candidate_survives() -> None:
    assert decide(candidates([0.5, 0.5, 0.5, 0.1])).kept == ((2,), (1,))


def test_a_repeated_text_survives_once() -> None:
    pool = candidates([0.9, 0.9, 0.1, 0.2], texts=["same", "same", "a", "b"])
    assert decide(pool).kept == ((0,), (3,))
    assert decide(pool, filter_duplicates=False).kept == ((1,), (0,))


def test_fewer_survivors_than_wanted_get_more_children() -> None:
    (group,) = decide(candidates([0.5] * 4, texts=["same"] * 4)).next
    assert [b.lineage for b in group.branches] == [(0, 0), (0, 1), (0, 2), (0, 3)]


def test_a_finished_path_takes_no_place_among_the_survivors() -> None:
    decision = decide(candidates([0.9, 0.8, 0.7, 0.1], c0=Ending.END))
    assert decision.completed == ((0,),)
    assert decision.kept == ((1,), (2,))


def test_a_step_cut_by_its_token_cap_is_no_completion_and_can_survive() -> None:
    """Defect 3."""
    decision = decide(candidates([0.9, 0.8, 0.7, 0.1], c0=Ending.LENGTH))
    assert decision.completed == ()
    assert decision.kept == ((0,), (1,))


def test_a_path_whose_context_is_full_leaves_without_being_finished() -> None:
    decision = decide(candidates([0.9, 0.8, 0.7, 0.1], c0=Ending.CONTEXT))
    assert decision.completed == ()
    assert decision.kept == ((1,), (2,))
    assert (0,) in decision.pruned


def test_the_search_ends_when_every_context_is_full() -> None:
    full = {f"c{i}": Ending.CONTEXT for i in range(4)}
    assert decide(candidates([0.5] * 4, **full)).next == ()


@pytest.mark.parametrize(("done", "goes_on"), [(2, True), (3, False), (7, False)])
def test_the_search_stops_once_n_paths_are_finished(done: int, goes_on: bool) -> None:
    """Defect 2."""
    decision = decide(candidates([0.9, 0.8, 0.7, 0.1], c0=Ending.END), done=done)
    assert bool(decision.next) == goes_on
    assert bool(decision.kept) == goes_on


def test_in_the_last_round_only_ended_solutions_are_completions() -> None:
    pool = candidates([0.9, 0.8, 0.7, 0.1], c1=Ending.END, c2=Ending.END, c0=Ending.LENGTH)
    decision = decide(pool, max_steps=1)
    assert decision == Decision(completed=((1,), (2,)), pruned=((0,), (3,)))


def test_with_width_one_every_path_goes_on_alone() -> None:
    (group,) = decide(candidates([0.2, 0.1]), width=1).next
    assert [b.lineage for b in group.branches] == [(0, 0), (1, 0)]


def test_the_answer_is_sought_among_the_first_n_completions_or_the_best_n() -> None:
    done = candidates([0.1, 0.9, 0.5])
    first = build("beam", n=2, width=2).final(done)
    best = build("beam", n=2, width=2, sort_completed=True).final(done)
    assert [c.lineage for c in first] == [(0,), (1,)]
    assert [c.lineage for c in best] == [(1,), (2,)]
