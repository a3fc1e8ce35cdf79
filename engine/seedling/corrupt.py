"""Solutions with one mistake in them, of the kinds a weak generator makes.

After its mistake a solution goes on consistently, as a generator would: only
the first wrong step is wrong in itself.
"""

from __future__ import annotations

import random

from engine.seedling.problems import LARGEST, Equation, Problem, answer_step, compute

CONTINUE_RATE = 0.6
KINDS = {"result": 50, "right": 15, "left": 10, "op": 8, "skip": 8, "repeat": 4, "stop": 5}


def false_result(equation: Equation, rng: random.Random) -> int:
    """A wrong result that looks like a right one."""
    true = equation.result
    while True:
        draw = rng.random()
        if draw < 0.5:
            guess = true + rng.choice((-1, 1)) * rng.choice((1, 1, 2, 3, 4, 5))
        elif draw < 0.75:
            guess = true + rng.choice((-20, -10, -10, 10, 10, 20))
        elif draw < 0.85:
            other = compute(equation.left, rng.choice("+-*/"), equation.right)
            guess = true if other is None else other
        else:
            guess = rng.randint(0, LARGEST)
        if guess != true and 0 <= guess <= LARGEST:
            return guess


def corrupt(problem: Problem, rng: random.Random) -> list[str]:
    """A solution of `problem` that holds from some step on a mistake."""
    index = rng.randrange(len(problem.steps))
    if index == len(problem.program):
        return [*problem.steps[:index], _wrong_ending(problem, rng)]
    while True:
        kind = rng.choices(list(KINDS), list(KINDS.values()))[0]
        changed = _change(problem, index, kind, rng)
        if changed is not None:
            break
    step, value, done = changed
    steps = [*problem.steps[:index], step]
    while value is not None and rng.random() < CONTINUE_RATE:
        if done >= len(problem.program):
            steps.append(answer_step(value))
            break
        following = problem.program[done]
        result = compute(value, following.op, following.right)
        if result is None:
            break
        equation = Equation(value, following.op, following.right, result)
        steps.append(problem.frames[done].format(equation))
        value, done = result, done + 1
    return steps


def _change(
    problem: Problem, index: int, kind: str, rng: random.Random
) -> tuple[str, int | None, int] | None:
    """The wrong step, the value it leaves, and how many events it has told.

    None where this kind of mistake is impossible here.
    """
    true = problem.program[index]
    frame = problem.frames[index]
    left, op, right = true.left, true.op, true.right
    told = index + 1
    match kind:
        case "result":
            wrong = false_result(true, rng)
            return frame.format(Equation(left, op, right, wrong)), wrong, told
        case "stop":
            if index == 0:
                return None
            return answer_step(left), None, told
        case "right":
            right = _other_number(problem, right, rng)
        case "left":
            left = _other_number(problem, left, rng)
        case "op":
            op = rng.choice([o for o in "+-*/" if o != op])
        case "skip":
            if index + 1 >= len(problem.program):
                return None
            following = problem.program[index + 1]
            op, right, frame = following.op, following.right, problem.frames[index + 1]
            told = index + 2
        case "repeat":
            if index == 0:
                return None
            before = problem.program[index - 1]
            op, right, frame = before.op, before.right, problem.frames[index - 1]
            told = index
    result = compute(left, op, right)
    if result is None:
        # A generator states an impossible equation all the same.
        if kind not in ("left", "right", "op") or rng.random() < 0.7:
            return None
        result = rng.randint(0, LARGEST)
    wrong_equation = Equation(left, op, right, result)
    if wrong_equation.same_as(true):
        return None
    return frame.format(wrong_equation), result, told


def _wrong_ending(problem: Problem, rng: random.Random) -> str:
    last = problem.program[-1]
    if rng.random() < 0.15:
        result = compute(last.result, last.op, last.right)
        if result is not None:
            return problem.frames[-1].format(Equation(last.result, last.op, last.right, result))
    if rng.random() < 0.4:
        return answer_step(false_result(last, rng))
    return answer_step(_other_number(problem, last.result, rng))


def _other_number(problem: Problem, true: int, rng: random.Random) -> int:
    """Another number of the same story, or one that looks like `true`."""
    near_by = {*problem.numbers, *(equation.result for equation in problem.program)} - {true}
    if near_by and rng.random() < 0.6:
        return rng.choice(sorted(near_by))
    while True:
        if rng.random() < 0.6:
            guess = true + rng.choice((-10, -2, -1, 1, 2, 10))
        else:
            guess = rng.randint(1, LARGEST // 2)
        if guess != true and 1 <= guess <= LARGEST:
            return guess
