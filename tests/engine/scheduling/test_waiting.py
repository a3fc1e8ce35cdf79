"""Who starts next when not all fit."""

from __future__ import annotations

from engine.models.kv_tree import Stem
from engine.models.sampling import Draws
from engine.scheduling.node import Node
from engine.scheduling.waiting import Waiting

ROOT = Stem(None, range(10))
LEFT, RIGHT = Stem(ROOT, range(5)), Stem(ROOT, range(5))
LEFT_CHILD = Stem(LEFT, range(3))


def node(*lineage: int) -> Node:
    return Node(lineage, None, Draws(0, lineage), 10, False)


def order(waiting: Waiting) -> list[tuple[int, ...]]:
    found = []
    while waiting:
        found.append(waiting.next()[0].lineage)
        waiting.started()
    return found


def filled(prefix_order: bool) -> Waiting:
    waiting = Waiting(prefix_order)
    waiting.add([node(0)], LEFT)
    waiting.add([node(1)], RIGHT)
    waiting.add([node(2)], LEFT_CHILD)
    waiting.add([node(3)], LEFT)
    return waiting


def test_whoever_shares_most_with_the_last_one_is_next() -> None:
    assert order(filled(prefix_order=True)) == [(0,), (2,), (3,), (1,)]


def test_without_prefix_order_the_first_to_come_is_the_first() -> None:
    assert order(filled(prefix_order=False)) == [(0,), (1,), (2,), (3,)]


def test_it_is_known_whether_others_start_at_the_same_place() -> None:
    waiting = filled(prefix_order=False)
    waiting.next()
    assert waiting.shares_start()
    waiting.started()
    waiting.next()
    assert not waiting.shares_start()


def test_what_is_given_up_waits_no_more() -> None:
    gone = node(1)
    waiting = Waiting(prefix_order=True)
    waiting.add([gone, node(2)], LEFT)
    waiting.add([node(3)], RIGHT)
    waiting.remove([gone])
    assert order(waiting) == [(2,), (3,)]
