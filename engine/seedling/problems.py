"""Synthetic arithmetic stories, with the program that decides every step.

A story follows one quantity through a few events ("Tom has 14 apples. He finds
5 more. ..."). Its solution is one short sentence per event, each holding one
equation, and a last one holding the boxed answer. All numbers are whole and lie
between 0 and `LARGEST`. Because a story is written from a program, any step that
anyone proposes can be judged by rule (`judge`).

Held-out stories differ from the training ones twice over: a checksum of the
program decides on which side its parameters lie, and some phrasings are never
used in training at all.
"""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from engine.seedling import phrases
from engine.seedling.phrases import Event, Opening, Phrasing

LARGEST = 99
"""No number of a story exceeds this, so that each can be one token."""

HELD_OUT_SHARE = 8
"""One parameter tuple in this many is kept out of training."""

LENGTHS = (2, 3, 4, 5)
LENGTH_WEIGHTS = (35, 35, 20, 10)

Kind = Literal["parameters", "templates"]

_EQUATION = re.compile(r"(?<!\d)(\d+) ?([-+*/]) ?(\d+) ?= ?(\d+)(?!\d)")
_BOXED = re.compile(r"\\boxed\{(\d+)\}")


@dataclass(frozen=True)
class Equation:
    """`left op right = result`, true or not."""

    left: int
    op: str
    right: int
    result: int

    def __str__(self) -> str:
        return f"{self.left}{self.op}{self.right}={self.result}"

    def same_as(self, other: Equation) -> bool:
        """Equality up to the order of the operands of `+` and `*`."""
        if self == other:
            return True
        swapped = Equation(self.right, self.op, self.left, self.result)
        return self.op in "+*" and swapped == other


@dataclass(frozen=True)
class Problem:
    """A story, its solution, and what the solution is made of.

    `frames` are the sentences of the steps with a hole for the equation;
    `numbers` are all the numbers the story mentions, distractors included.
    """

    text: str
    steps: tuple[str, ...]
    answer: int
    template: str
    program: tuple[Equation, ...]
    frames: tuple[str, ...]
    numbers: tuple[int, ...]

    @property
    def solution(self) -> str:
        return "\n\n".join(self.steps)


def compute(left: int, op: str, right: int) -> int | None:
    """The result, or None where it is no whole number of the allowed range."""
    if op == "/":
        if right == 0 or left % right:
            return None
        return left // right
    result = {"+": left + right, "-": left - right, "*": left * right}[op]
    return result if 0 <= result <= LARGEST else None


def answer_step(answer: int) -> str:
    """The last step of a solution."""
    return f"The answer is \\boxed{{{answer}}}."


def boxed(text: str) -> int | None:
    """The number in the last `\\boxed{}` of `text`, if there is one."""
    found = _BOXED.findall(text)
    return int(found[-1]) if found else None


def equations(text: str) -> list[Equation]:
    """Every equation that `text` states."""
    return [Equation(int(a), op, int(b), int(c)) for a, op, b, c in _EQUATION.findall(text)]


def judge(problem: Problem, index: int, step: str) -> bool:
    """Is `step` right as step number `index` (from 0), all before it being right?

    Right operation, operands and result, or the right boxed answer; the words
    around them are free.
    """
    stated = equations(step)
    if index < len(problem.program):
        return (
            len(stated) == 1 and stated[0].same_as(problem.program[index]) and boxed(step) is None
        )
    return index == len(problem.program) and not stated and boxed(step) == problem.answer


def judge_all(problem: Problem, steps: Sequence[str]) -> list[bool]:
    """For every step: is everything right up to and including it?"""
    labels: list[bool] = []
    right = True
    for index, step in enumerate(steps):
        right = right and judge(problem, index, step)
        labels.append(right)
    return labels


def is_held_out(program: tuple[Equation, ...]) -> bool:
    """Which side of the split the parameters of a program lie on."""
    key = ",".join(str(equation) for equation in program)
    return zlib.crc32(key.encode()) % HELD_OUT_SHARE == 0


def training_problems(seed: int) -> Iterator[Problem]:
    """Training stories without end, the same ones for the same seed."""
    rng = random.Random(f"training-{seed}")
    while True:
        problem = _story(rng, unseen_phrasing=False)
        if not is_held_out(problem.program):
            yield problem


def held_out(count: int, seed: int, kind: Kind = "parameters") -> list[Problem]:
    """Distinct stories that training can never show.

    `parameters`: known phrasings with unseen parameters; `templates`: also at
    least one phrasing that no training story uses.
    """
    rng = random.Random(f"held-out-{kind}-{seed}")
    chosen: dict[str, Problem] = {}
    while len(chosen) < count:
        problem = _story(rng, unseen_phrasing=kind == "templates")
        if is_held_out(problem.program):
            chosen.setdefault(problem.text, problem)
    return list(chosen.values())


def _story(rng: random.Random, unseen_phrasing: bool) -> Problem:
    """Draw stories until one keeps all its numbers in range."""
    while True:
        problem = _try_story(rng, unseen_phrasing)
        if problem is not None:
            return problem


def _try_story(rng: random.Random, unseen_phrasing: bool) -> Problem | None:
    length = rng.choices(LENGTHS, LENGTH_WEIGHTS)[0]
    opening: Opening = rng.choice(phrases.OPENINGS)
    events = _draw_events(rng, length - (opening.op is not None))
    told: list[Opening | Event] = [opening, *events]

    # The place of the one phrasing that training never shows, if any.
    novel = rng.randrange(len(told)) if unseen_phrasing else None
    words = phrases.cast(rng)
    sentences: list[str] = []
    frames: list[str] = []
    program: list[Equation] = []
    numbers: list[int] = []
    names: list[str] = []
    value = 0
    for place, part in enumerate(told):
        pool: tuple[Phrasing, ...] = part.unseen if place == novel else part.seen
        phrasing = rng.choice(pool)
        names.append(f"{part.name}.{'unseen' if place == novel else 'seen'}{pool.index(phrasing)}")
        operands: dict[str, int] = {}
        if isinstance(part, Opening):
            value = operands["a"] = rng.choice(part.first)
        if part.op is not None:
            right = part.fixed if part.fixed is not None else _operand(rng, part, value)
            result = None if right is None else compute(value, part.op, right)
            if right is None or result is None or result < 1:
                return None
            operands["b"] = right
            program.append(Equation(value, part.op, right, result))
            frames.append(part.step.format(**words, eq="{}"))
            value = result
        sentences.append(phrasing.format(**words, **operands))
        numbers += [operands[key] for key in ("a", "b") if "{" + key + "}" in phrasing]

    if rng.random() < phrases.DISTRACTOR_RATE:
        distractor = rng.choice(phrases.DISTRACTORS)
        number = rng.randint(2, 30)
        numbers.append(number)
        sentences.insert(rng.randint(1, len(sentences)), distractor.format(**words, b=number))
        names.append("aside")
    question = events[-1].question if events else phrases.QUESTION
    sentences.append(question.format(**words))

    steps = [frame.format(eq) for frame, eq in zip(frames, program, strict=True)]
    return Problem(
        text=" ".join(sentences),
        steps=(*steps, answer_step(value)),
        answer=value,
        template="/".join(names),
        program=tuple(program),
        frames=tuple(frames),
        numbers=tuple(numbers),
    )


def _draw_events(rng: random.Random, count: int) -> list[Event]:
    """Events that may follow one another, a closing one in the last place only."""
    events = rng.choices(phrases.EVENTS, [event.weight for event in phrases.EVENTS], k=count - 1)
    last = [*phrases.EVENTS, *phrases.CLOSINGS]
    return [*events, rng.choices(last, [event.weight for event in last])[0]]


def _operand(rng: random.Random, part: Opening | Event, value: int) -> int | None:
    """An operand that keeps the result in range, or None when there is none."""
    assert part.op is not None
    fitting = [
        number
        for number in part.second
        if (result := compute(value, part.op, number)) is not None and result >= 1
    ]
    return rng.choice(fitting) if fitting else None
