"""Chooses the answer of a run from its finished paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from engine.answers.equivalence import equivalent
from engine.answers.extract import extract

Method = Literal["first", "best", "majority", "weighted"]


class Completion(Protocol):
    """A finished path."""

    @property
    def lineage(self) -> tuple[int, ...]: ...

    @property
    def text(self) -> str: ...

    @property
    def scores(self) -> tuple[float, ...]: ...


@dataclass(frozen=True, slots=True)
class Votes:
    """One answer of the tally."""

    answer: str
    """As its first voter wrote it."""
    count: int
    weight: float
    """Sum of its voters' scores."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen answer and the path that stands for it."""

    answer: str
    """Empty if no path gives an answer."""
    text: str
    lineage: tuple[int, ...]
    score: float
    votes: tuple[Votes, ...]
    """Every answer given, in the order of its first voter."""


@dataclass(frozen=True, slots=True)
class _Voter:
    path: Completion
    answer: str
    score: float


def choose(
    completions: Sequence[Completion],
    method: Method,
    aggregate: Callable[[tuple[float, ...]], float],
) -> Choice | None:
    """The answer of a run; None if there are no completions.

    Args:
        completions: finished paths; of equals the earlier wins.
        method: the `first` path, the path with the `best` score, the `majority` of equivalent
            answers, or `weighted`: the answer whose scores have the largest sum. The last three
            are the selections of search-and-learn.
        aggregate: turns the step scores of a path into one.

    An empty answer takes part only if there is no other. The winner of a vote is represented by
    its voter with the best score.
    """
    paths = [_Voter(c, extract(c.text), aggregate(c.scores)) for c in completions]
    voters = [voter for voter in paths if voter.answer] or paths
    if not voters:
        return None
    ballots = _ballots(voters)
    match method:
        case "first":
            winner = voters[0]
        case "best":
            winner = max(voters, key=lambda voter: voter.score)
        case "majority":
            winner = _spokesman(max(ballots, key=len))
        case "weighted":
            winner = _spokesman(max(ballots, key=_weight))
    return Choice(
        answer=winner.answer,
        text=winner.path.text,
        lineage=winner.path.lineage,
        score=winner.score,
        votes=tuple(Votes(b[0].answer, len(b), _weight(b)) for b in ballots if b[0].answer),
    )


def _ballots(voters: Sequence[_Voter]) -> list[list[_Voter]]:
    """The voters grouped by what they mean, in the order of each group's first."""
    ballots: list[list[_Voter]] = []
    as_written: dict[str, list[_Voter]] = {}
    for voter in voters:
        ballot = as_written.get(voter.answer) or _like(voter.answer, ballots)
        if ballot is None:
            ballot = []
            ballots.append(ballot)
        ballot.append(voter)
        as_written[voter.answer] = ballot
    return ballots


def _spokesman(ballot: list[_Voter]) -> _Voter:
    """The path to be shown for an answer: of those that give it, the one with the best score."""
    return max(ballot, key=lambda voter: voter.score)


def _like(answer: str, ballots: Sequence[list[_Voter]]) -> list[_Voter] | None:
    return next((b for b in ballots if equivalent(b[0].answer, answer)), None)


def _weight(ballot: Sequence[_Voter]) -> float:
    return sum(voter.score for voter in ballot)
