"""The answer of a run is voted for by its finished paths."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from engine.answers import Choice, Method, Votes, choose


@dataclass(frozen=True)
class Path:
    lineage: tuple[int, ...]
    text: str
    scores: tuple[float, ...]


METHODS: list[Method] = ["first", "best", "majority", "weighted"]


def paths(*answers: tuple[str, float]) -> list[Path]:
    return [
        Path((i,), rf"path {chr(97 + i)}: \boxed{{{answer}}}", (0.5, score))
        for i, (answer, score) in enumerate(answers)
    ]


def last(scores: tuple[float, ...]) -> float:
    return scores[-1] if scores else 0.0


def chosen(method: Method, *answers: tuple[str, float]) -> Choice:
    choice = choose(paths(*answers), method, last)
    assert choice is not None
    return choice


@pytest.mark.parametrize(
    ("method", "answer"), [("first", "1"), ("best", "2"), ("majority", "3"), ("weighted", "4")]
)
def test_each_method_has_its_own_winner(method: Method, answer: str) -> None:
    votes = [("1", 0.1), ("2", 0.9), ("3", 0.1), ("3", 0.1), ("3", 0.1), ("4", 0.6), ("4", 0.6)]
    assert chosen(method, *votes).answer == answer


def test_equivalent_answers_vote_together_and_the_best_path_speaks_for_them() -> None:
    choice = chosen("majority", ("7", 0.9), (r"\frac12", 0.25), ("0.5", 0.25), ("1/2", 0.5))
    assert choice.answer == "1/2"
    assert choice.lineage == (3,)
    assert choice.text.startswith("path d")
    assert choice.score == 0.5
    assert choice.votes == (Votes("7", 1, 0.9), Votes(r"\frac12", 3, 1.0))


@pytest.mark.parametrize("method", METHODS)
def test_of_equals_the_first_wins(method: Method) -> None:
    assert chosen(method, ("1", 0.5), ("2", 0.5)).answer == "1"


@pytest.mark.parametrize("method", METHODS)
def test_an_empty_answer_never_beats_another(method: Method) -> None:
    choice = chosen(method, ("", 0.9), ("", 0.9), ("7", 0.1))
    assert choice.answer == "7"
    assert choice.votes == (Votes("7", 1, 0.1),)


@pytest.mark.parametrize(
    ("method", "lineage"), [("first", 0), ("best", 1), ("majority", 1), ("weighted", 1)]
)
def test_paths_without_any_answer_still_give_a_text(method: Method, lineage: int) -> None:
    choice = chosen(method, ("", 0.1), ("", 0.9))
    assert (choice.answer, choice.lineage, choice.votes) == ("", (lineage,), ())


@pytest.mark.parametrize("method", METHODS)
def test_no_paths_give_no_choice(method: Method) -> None:
    assert choose([], method, last) is None


def test_unscored_paths_can_vote_by_majority() -> None:
    unscored = [Path((i,), f"The answer is {a}", ()) for i, a in enumerate("122")]
    choice = choose(unscored, "majority", last)
    assert choice is not None
    assert (choice.answer, choice.score) == ("2", 0.0)


def test_many_different_expressions_are_counted_without_delay() -> None:
    roots = [(rf"{a}\sqrt{{{b}}}", 0.5) for a in range(2, 8) for b in (2, 3, 5, 7)]
    assert len(chosen("majority", *roots).votes) == 24
