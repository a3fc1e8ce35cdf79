"""Policies are made by name, and what cannot work is refused with a reason."""

from __future__ import annotations

from typing import Any

import pytest

from engine.search import CHOICES, POLICIES, SearchError, build


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_is_built_by_its_name(name: str) -> None:
    policy = build(name, n=8)
    branches = [branch for group in policy.start() for branch in group.branches]
    assert [branch.lineage for branch in branches] == [(i,) for i in range(len(branches))]
    assert len(branches) == (1 if name == "greedy" else 8)


def test_only_greedy_and_majority_do_without_a_verifier() -> None:
    assert {name for name in POLICIES if not build(name, n=8).guided} == {"greedy", "majority"}


def test_every_policy_has_its_own_way_to_choose_the_answer() -> None:
    assert CHOICES.keys() == POLICIES.keys()


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("magic", {}, "There is no policy 'magic'; there are greedy,"),
        ("beam", {"n": 0}, "n must be from 1 to 256, not 0."),
        ("majority", {"n": 257}, "n must be from 1 to 256, not 257."),
        (
            "beam",
            {"n": 3},
            "beam needs at least as many paths as its width: 3 < 4; lower the width to 3 or",
        ),
        ("dynamic", {"n": 3}, "dynamic needs at least as many paths"),
        ("dvts", {"n": 10}, "dvts needs n to be a multiple of its width: 10 is not one of 4."),
        ("beam", {"width": 0}, "width must be at least 1, not 0."),
        ("greedy", {"max_steps": 0}, "max_steps must be at least 1, not 0."),
        ("vg", {"step_tokens": 0}, "step_tokens must be at least 1, not 0."),
        ("beam", {"aggregate": "median"}, "There is no aggregate 'median'; use last,"),
    ],
)
def test_a_search_that_cannot_work_is_refused_with_a_reason(
    name: str, changes: dict[str, Any], message: str
) -> None:
    options: dict[str, Any] = {"n": 8, "width": 4} | changes
    with pytest.raises(SearchError) as refusal:
        build(name, **options)
    assert str(refusal.value).startswith(message)


def test_paths_that_do_not_branch_need_no_width() -> None:
    assert len(build("majority", n=2, width=4).start()) == 2
