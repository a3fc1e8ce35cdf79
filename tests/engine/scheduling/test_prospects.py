"""Who is worth writing on before it is decided."""

from __future__ import annotations

import pytest

from engine.scheduling.prospects import survival
from engine.search.policy import Outlook


def ranked(count: int) -> tuple[tuple[int, ...], ...]:
    return tuple((place,) for place in range(count))


def test_what_nobody_can_push_out_is_certain() -> None:
    chances = survival(Outlook(ranked(3), outstanding=1, keeps=3))
    assert [chances.get((place,), 0.0) == 1.0 for place in range(3)] == [True, True, False]


def test_what_is_outranked_for_good_has_no_chance() -> None:
    outlook = Outlook(ranked(4), outstanding=2, keeps=2)
    assert list(outlook.lost) == [(2,), (3,)]
    assert set(survival(outlook)) == {(0,), (1,)}


def test_better_places_have_better_chances_and_none_is_certain_before_its_time() -> None:
    chances = survival(Outlook(ranked(4), outstanding=4, keeps=3))
    values = [chances[place,] for place in range(3)]
    assert values == sorted(values, reverse=True)
    assert 0 < values[-1] < values[0] < 1


def test_nothing_is_certain_while_the_search_may_end() -> None:
    outlook = Outlook(ranked(3), outstanding=0, keeps=2, open_end=True)
    assert list(outlook.sure) == []
    assert max(survival(outlook).values()) < 1


@pytest.mark.parametrize("outstanding", range(5))
def test_certainty_needs_fewer_outstanding_than_places(outstanding: int) -> None:
    outlook = Outlook(ranked(2), outstanding, keeps=3)
    assert len(outlook.sure) == min(2, max(0, 3 - outstanding))
