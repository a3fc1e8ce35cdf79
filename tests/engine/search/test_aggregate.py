"""Step scores become one score of a path."""

from __future__ import annotations

import pytest

from engine.search.aggregate import AGGREGATES, Aggregate, aggregate


@pytest.mark.parametrize(
    ("how", "expected"), [("last", 0.5), ("min", 0.25), ("prod", 0.125), ("mean", 0.583333)]
)
def test_scores_are_joined_by_the_named_rule(how: Aggregate, expected: float) -> None:
    assert aggregate(how, (1.0, 0.25, 0.5)) == pytest.approx(expected)


@pytest.mark.parametrize("how", AGGREGATES)
def test_a_path_that_was_never_scored_has_no_merit(how: Aggregate) -> None:
    assert aggregate(how, ()) == 0.0
