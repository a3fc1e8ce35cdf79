"""What a search policy sees and what it decides: plain data, no model, no clock.

A policy is asked twice: `start` names the first nodes to write, and `decide` is called for a
group once every branch of it is finished (and scored, if the policy is guided). Both are pure
functions of their arguments, so the order in which nodes happen to finish never changes a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

Lineage = tuple[int, ...]
"""Child indices from the root to a node: the node's name, whenever it is computed."""


class Ending(StrEnum):
    """Why a node stopped growing."""

    STEP = "step"
    """The step delimiter was written; the path can go on."""
    END = "end"
    """The model ended the solution."""
    LENGTH = "length"
    """The token cap of the step cut it; the path can go on."""
    CONTEXT = "context"
    """The context is full; the path cannot go on and is not a finished solution."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A node to be written: child number `child` of `parent`."""

    parent: Lineage
    child: int

    @property
    def lineage(self) -> Lineage:
        return (*self.parent, self.child)


@dataclass(frozen=True, slots=True)
class Group:
    """Branches that are decided together. Groups do not wait for one another."""

    key: Lineage
    """Which independent part of the search this is: `()` for one pool, `(i,)` for tree `i`."""
    round: int
    branches: tuple[Branch, ...]
    whole: bool = False
    """Write to the end of the solution instead of the end of the step."""
    step_tokens: int | None = None
    """A tighter cap on the tokens of each branch than the request's own."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A finished branch as the policy sees it."""

    lineage: Lineage
    text: str
    """The whole path, from the first step on."""
    scores: tuple[float, ...]
    """One a step of the path, in [0, 1]; empty when the policy is not guided."""
    ending: Ending

    @property
    def can_continue(self) -> bool:
        return self.ending in (Ending.STEP, Ending.LENGTH)


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a group's candidates, and what is written next."""

    next: tuple[Group, ...] = ()
    kept: tuple[Lineage, ...] = ()
    """Survivors, best first."""
    completed: tuple[Lineage, ...] = ()
    """Candidates that join the completions, in that order."""
    pruned: tuple[Lineage, ...] = ()


@dataclass(frozen=True, slots=True)
class Outlook:
    """Where the scored candidates of a group stand while others are outstanding.

    `ranked` holds every scored candidate that may still survive or be displaced, best first; those
    from place `keeps` on are outranked for good (SpecScale, early pruning). The first
    `keeps - outstanding` cannot be displaced any more, unless `open_end`: then the search may end
    with this group, and nothing is certain but the lost.
    """

    ranked: tuple[Lineage, ...]
    outstanding: int
    """Candidates that are not scored yet."""
    keeps: int
    """Most candidates that survive."""
    open_end: bool = False

    @property
    def lost(self) -> Sequence[Lineage]:
        """Outranked by as many as survive."""
        return self.ranked[self.keeps :]

    @property
    def sure(self) -> Sequence[Lineage]:
        """In the best `keeps` whatever the outstanding scores are."""
        return () if self.open_end else self.ranked[: max(0, self.keeps - self.outstanding)]


class Policy(Protocol):
    """A search strategy. See `engine.search` for the ones there are."""

    @property
    def guided(self) -> bool:
        """Whether `decide` needs scores, i.e. whether a verifier must be present."""
        ...

    def start(self) -> tuple[Group, ...]:
        """The groups to write first."""
        ...

    def decide(
        self, group: Group, candidates: Sequence[Candidate], completed: Sequence[Candidate]
    ) -> Decision:
        """Decide a group.

        Args:
            candidates: the finished branches, in the order of `group.branches`.
            completed: what this group's key has completed in earlier rounds, in order.
        """
        ...

    def follow(self, group: Group, lineage: Lineage) -> Group | None:
        """What `decide` is likely to open for one candidate of `group`, if that survives.

        Speculation writes these branches ahead of the decision. None where nothing is decided
        between a step and the next, or nothing follows.
        """
        ...

    def outlook(
        self, group: Group, scored: Sequence[Candidate], completed: Sequence[Candidate]
    ) -> Outlook | None:
        """Where the candidates of a group stand that are finished and scored, before the others
        are. It never changes what is decided, only what is worth writing ahead.

        Args:
            scored: some of the group's candidates, in the order of `group.branches`.
            completed: as in `decide`.

        Returns:
            None where ranks decide nothing.
        """
        ...

    def final(self, completed: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """The completions that take part in the answer, in order.

        Args:
            completed: all completions of the run, ordered by group key, then by round, then
                as `Decision.completed` gave them.
        """
        ...
