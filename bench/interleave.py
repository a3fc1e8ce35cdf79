"""Comparing ways of doing the same work on a machine whose speed drifts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import comb
from statistics import median


@dataclass
class Pairs:
    """Seconds of two contestants that were measured in turns."""

    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)

    def measure(self, ours: Callable[[], object], theirs: Callable[[], object]) -> None:
        """Time one pair; who goes first changes from pair to pair."""
        turns = [(self.ours, ours), (self.theirs, theirs)]
        for record, work in turns if len(self.ours) % 2 == 0 else reversed(turns):
            begin = time.perf_counter()
            work()
            record.append(time.perf_counter() - begin)

    @property
    def ratios(self) -> list[float]:
        """Of each pair, their time over ours: above 1 we are faster."""
        return [theirs / ours for ours, theirs in zip(self.ours, self.theirs, strict=True)]

    def summary(self, digits: int = 2) -> tuple[str, str]:
        """Median of the ratios, and their range."""
        ratios = self.ratios
        spread = f"{min(ratios):.{digits}f}–{max(ratios):.{digits}f}"  # noqa: RUF001
        return f"{median(ratios):.{digits}f}", spread


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Of the median, at 95 % or a little more, by order statistics; with fewer than six values,
    which can give no such interval, their range."""
    ordered = sorted(values)
    count = len(ordered)
    cut, tail = 0, 0.5**count
    while cut < count // 2 and (tail := tail + comb(count, cut + 1) * 0.5**count) <= 0.025:
        cut += 1
    return ordered[cut], ordered[count - 1 - cut]
