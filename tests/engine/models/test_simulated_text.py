"""The simulated text has the features of real text that schedules depend on."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from statistics import correlation, median

import numpy as np

from engine.models.base import Span
from engine.models.sampling import Draws, Sampler
from engine.models.simulated import SimulatedModel
from engine.models.simulated_text import (
    BAD,
    BEGIN,
    END,
    GOOD,
    MARKER,
    STOP,
    Judge,
    SimulatedVocabulary,
    Writer,
    lognormal,
)

SAMPLER = Sampler(0.8)


def siblings(writer: Writer, family: int, count: int = 4) -> list[list[int]]:
    """First steps of some solutions of one problem."""
    model = SimulatedModel(writer, capacity=100_000, paths=count)
    steps: list[list[int]] = [[] for _ in range(count)]
    streams = [Draws(family, (child,)) for child in range(count)]
    feed = {path: [6 + family % 20, 7, BEGIN] for path in range(count)}
    while feed:
        rows = model.forward([Span((path,), tokens) for path, tokens in feed.items()])
        for path, row in zip(list(feed), rows, strict=True):
            (token,) = SAMPLER.draw(row, [streams[path].uniform(len(steps[path]))])
            steps[path].append(token)
            feed[path] = [token]
            if token in (STOP, END):
                del feed[path]
    return steps


@cache
def families() -> list[list[list[int]]]:
    return [siblings(Writer(seed), seed) for seed in range(40)]


def solution(writer: Writer, seed: int) -> list[int]:
    model = SimulatedModel(writer, capacity=100_000, paths=1)
    draws, written, token = Draws(seed, ()), [], BEGIN
    while token != END:
        (row,) = model.forward([Span((0,), [token])])
        (token,) = SAMPLER.draw(row, [draws.uniform(len(written))])
        written.append(token)
    return written


def test_siblings_share_a_quarter_to_a_half_of_their_tokens() -> None:
    """As SpecScale measured at a temperature of 0.8."""
    total = sum(len(step) for family in families() for step in family)
    distinct = sum(
        len({tuple(step[:end]) for step in family for end in range(1, len(step) + 1)})
        for family in families()
    )
    assert 0.25 <= 1 - distinct / total <= 0.5


def test_steps_have_a_heavy_tail() -> None:
    lengths = [len(step) for family in families() for step in family]
    assert 30 <= median(lengths) <= 60
    assert max(lengths) > 4 * median(lengths)


def test_a_length_distribution_is_followed() -> None:
    assert {len(step) for step in siblings(Writer(lengths=(9,)), 0)} <= {9}
    points = lognormal(40, 0.5, points=101)
    assert (points[50], list(points)) == (40, sorted(points))


def test_a_solution_ends_with_an_answer() -> None:
    vocabulary = SimulatedVocabulary()
    counts = defaultdict(int)
    for seed in range(30):
        written = solution(Writer(1, lengths=(6,), fewest=3, ending=0.3), seed)
        counts[written.count(STOP) + 1] += 1
        text = b"".join(map(vocabulary.piece, written)).decode()
        assert text.endswith("}")
        assert text.count("boxed") == 1
    assert min(counts) == 3
    assert len(counts) > 3


def test_scores_are_distinct_and_persist_along_a_path() -> None:
    model = SimulatedModel(Judge(3), capacity=10_000, paths=200)
    parents = model.forward(
        [Span((path,), [6, path % 20 + 7, path % 7 + 7, MARKER]) for path in range(200)],
        (GOOD, BAD),
    ).copy()
    children = model.forward([Span((path,), [9, MARKER]) for path in range(200)], (GOOD, BAD))
    before, after = (rows[:, 0] - rows[:, 1] for rows in (parents, children))
    assert len(np.unique(after)) == len(np.unique(before)) == 140
    assert 0.6 <= correlation(before.tolist(), after.tolist()) <= 0.95


def test_a_row_is_the_same_in_any_batch() -> None:
    writer = Writer(5)
    states = [writer.after(writer.start, [6 + i % 24, i % 5 + 6]) for i in range(70)]
    together = writer.logits(states)
    for row, state in zip(together, states, strict=True):
        np.testing.assert_array_equal(writer.logits([state])[0], row)
