"""What a run already knows of its tree when it resumes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.search.policy import Ending, Lineage


@dataclass(frozen=True, slots=True)
class PastNode:
    """A node that was finished before the interruption."""

    tokens: tuple[int, ...]
    text: str
    ending: Ending
    scores: tuple[float, ...] | None
    """None if it was not scored yet."""


@dataclass(frozen=True, slots=True)
class Past:
    """Finished nodes by lineage. Policies are pure, so deciding again from these nodes gives the
    same rounds, and only what is missing is computed."""

    nodes: Mapping[Lineage, PastNode] = field(default_factory=dict)
