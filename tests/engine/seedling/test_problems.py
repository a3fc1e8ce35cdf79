"""The stories: what is true of every one of them."""

from __future__ import annotations

from itertools import islice

import pytest

from engine.seedling import phrases
from engine.seedling.problems import (
    LARGEST,
    LENGTHS,
    Equation,
    Kind,
    Problem,
    boxed,
    compute,
    equations,
    held_out,
    is_held_out,
    judge,
    judge_all,
    training_problems,
)


@pytest.fixture(scope="module")
def training() -> list[Problem]:
    return list(islice(training_problems(seed=5), 3000))


def everything(training: list[Problem]) -> list[Problem]:
    return [*training, *held_out(200, 3, "parameters"), *held_out(200, 3, "templates")]


def test_every_step_of_every_solution_is_true(training: list[Problem]) -> None:
    for problem in everything(training):
        for equation in problem.program:
            assert compute(equation.left, equation.op, equation.right) == equation.result
        assert judge_all(problem, problem.steps) == [True] * len(problem.steps)


def test_a_step_holds_one_equation_and_the_last_one_the_boxed_answer(
    training: list[Problem],
) -> None:
    for problem in everything(training):
        *working, last = problem.steps
        assert [equations(step) for step in working] == [[e] for e in problem.program]
        assert boxed(last) == problem.answer == problem.program[-1].result
        assert problem.solution == "\n\n".join(problem.steps)


def test_each_equation_goes_on_from_the_result_before_it(training: list[Problem]) -> None:
    for problem in everything(training):
        for before, after in zip(problem.program, problem.program[1:], strict=False):
            assert after.left == before.result


def test_numbers_stay_whole_and_in_range(training: list[Problem]) -> None:
    for problem in everything(training):
        used = {n for e in problem.program for n in (e.left, e.right, e.result)}
        assert all(0 <= number <= LARGEST for number in used | set(problem.numbers))


def test_all_lengths_occur_and_no_other(training: list[Problem]) -> None:
    assert {len(problem.program) for problem in training} == set(LENGTHS)


def test_the_same_seed_gives_the_same_stories(training: list[Problem]) -> None:
    assert list(islice(training_problems(seed=5), 50)) == training[:50]
    assert list(islice(training_problems(seed=6), 50)) != training[:50]
    assert held_out(20, seed=1) == held_out(20, seed=1)


@pytest.mark.parametrize("kind", ["parameters", "templates"])
def test_held_out_parameters_never_occur_in_training(training: list[Problem], kind: Kind) -> None:
    held = held_out(300, seed=9, kind=kind)
    assert not {p.program for p in held} & {p.program for p in training}
    assert not any(is_held_out(problem.program) for problem in training)
    assert len({problem.text for problem in held}) == 300


def test_unseen_phrasings_occur_in_every_held_out_template_and_nowhere_else(
    training: list[Problem],
) -> None:
    assert all("unseen" in problem.template for problem in held_out(100, 9, "templates"))
    assert not any("unseen" in problem.template for problem in training)
    assert not any("unseen" in problem.template for problem in held_out(100, 9, "parameters"))


def test_no_phrasing_is_both_seen_and_unseen() -> None:
    for part in (*phrases.OPENINGS, *phrases.EVENTS, *phrases.CLOSINGS):
        assert part.seen
        assert part.unseen
        assert not set(part.seen) & set(part.unseen)


@pytest.fixture
def problem() -> Problem:
    program = (Equation(14, "+", 5, 19), Equation(19, "-", 9, 10))
    return Problem(
        text="Tom has 14 apples. He finds 5 more. He loses 9 of them. How many are left?",
        steps=(
            "Now Tom has 14+5=19 apples.",
            "That leaves 19-9=10 apples.",
            "The answer is \\boxed{10}.",
        ),
        answer=10,
        template="test",
        program=program,
        frames=("Now Tom has {} apples.", "That leaves {} apples."),
        numbers=(14, 5, 9),
    )


@pytest.mark.parametrize(
    ("index", "step", "right"),
    [
        (0, "Now Tom has 14+5=19 apples.", True),
        (0, "So 5 + 14 = 19.", True),
        (0, "Now Tom has 14+5=18 apples.", False),
        (0, "Now Tom has 14+6=20 apples.", False),
        (0, "That leaves 14-5=9 apples.", False),
        (0, "14+5=19 and 19-9=10.", False),
        (0, "Tom has many apples.", False),
        (0, "The answer is \\boxed{10}.", False),
        (1, "9-19=10", False),
        (1, "Now Tom has 14+5=19 apples.", False),
        (2, "\\boxed{10}", True),
        (2, "The answer is \\boxed{19}.", False),
        (2, "10-9=1", False),
        (3, "The answer is \\boxed{10}.", False),
    ],
)
def test_a_step_is_judged_by_operation_operands_and_result(
    problem: Problem, index: int, step: str, right: bool
) -> None:
    assert judge(problem, index, step) is right


def test_nothing_is_right_after_a_wrong_step(problem: Problem) -> None:
    steps = ["14+5=18", "19-9=10", "The answer is \\boxed{10}."]
    assert judge_all(problem, steps) == [False, False, False]


def test_judging_stray_text_does_not_fail(problem: Problem) -> None:
    assert judge_all(problem, ["", "\\boxed{}", "1+1", "9" * 50]) == [False] * 4
