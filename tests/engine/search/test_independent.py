"""Greedy, best-of-n and the votes grow paths that never wait for one another."""

from __future__ import annotations

import pytest

from engine.search import build
from engine.search.policy import Branch, Candidate, Ending, Group

from .driver import run, scripted


@pytest.mark.parametrize("name", ["best-of-n", "majority", "weighted"])
def test_each_path_is_a_group_of_its_own(name: str) -> None:
    assert build(name, n=3, max_steps=5).start() == tuple(
        Group((i,), 0, (Branch((), i),)) for i in range(3)
    )


def test_a_path_is_a_chain_of_first_children() -> None:
    write = scripted(lambda group, _: Ending.END if group.round == 2 else Ending.STEP, lambda _: 1)
    result = run(build("majority", n=2, max_steps=9), write)
    assert [c.lineage for c in result.final] == [(0, 0, 0), (1, 0, 0)]


def test_a_step_cut_by_its_token_cap_is_continued() -> None:
    write = scripted(lambda group, _: Ending.END if group.round else Ending.LENGTH, lambda _: 1)
    assert [c.lineage for c in run(build("greedy", n=1), write).final] == [(0, 0)]


@pytest.mark.parametrize("ending", [Ending.CONTEXT, Ending.LENGTH])
def test_a_path_that_never_ends_is_no_completion(ending: Ending) -> None:
    result = run(build("best-of-n", n=2, max_steps=3), scripted(lambda *_: ending, lambda _: 1))
    assert result.final == ()
    assert result.rounds[-1].decision.pruned == (result.rounds[-1].candidates[0].lineage,)


def test_the_last_round_writes_to_the_end_of_the_solution() -> None:
    write = scripted(lambda group, _: Ending.END if group.whole else Ending.STEP, lambda _: 1)
    result = run(build("greedy", n=1, max_steps=3), write)
    assert [r.group.whole for r in result.rounds] == [False, False, True]


def test_one_step_means_one_whole_solution() -> None:
    (group,) = build("greedy", n=1, max_steps=1).start()
    assert group.whole


def test_a_finished_path_leaves_the_others_alone() -> None:
    policy = build("weighted", n=2)
    group = policy.start()[1]
    decision = policy.decide(group, [Candidate((1,), "done", (0.5,), Ending.END)], ())
    assert (decision.next, decision.completed) == ((), ((1,),))
