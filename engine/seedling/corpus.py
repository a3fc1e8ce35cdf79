"""Training rows: what each model reads, and what it should say where.

A `Document` is a trunk of tokens with branches. The verifier's documents have
the story and its right solution as the trunk and wrong (or otherwise told)
solutions as branches that leave the trunk at a step: a branch sees the trunk up
to there and itself, which is exactly what it would see if it stood alone, and
the shared beginning is computed once. Documents are packed into rows of fixed
length, and what remains of a row is filled with bare equations.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from engine.seedling.corrupt import corrupt, false_result
from engine.seedling.problems import (
    LARGEST,
    Equation,
    Problem,
    compute,
    judge_all,
    training_problems,
)
from engine.seedling.tokenizer import MARKER, TURN, TURN_END, tokenizer

IGNORE = -100
"""A target that counts for nothing."""

SEPARATOR = "\n\n"
LISTS = ("tokens", "positions", "segment", "limit", "text", "label", "dense")
Solutions = Sequence[Sequence[str]]


@dataclass
class Document:
    """Tokens with their targets: next token, step label, right so far.

    `segment` is 0 on the trunk; `limit` is how much of the trunk a token sees.
    """

    tokens: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    segment: list[int] = field(default_factory=list)
    limit: list[int] = field(default_factory=list)
    text: list[int] = field(default_factory=list)
    label: list[int] = field(default_factory=list)
    dense: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.tokens)

    def cut(self, length: int) -> None:
        """Keep the first `length` tokens."""
        for name in LISTS:
            del getattr(self, name)[length:]

    def add(self, token: int, segment: int = 0, start: int = 0, dense: int = IGNORE) -> None:
        """Append a token; a branch (segment > 0) leaves the trunk at `start`."""
        first = self.segment.index(segment) if segment and segment in self.segment else len(self)
        self.positions.append(start + len(self) - first if segment else len(self))
        self.limit.append(start if segment else len(self) + 1)
        self.tokens.append(token)
        self.segment.append(segment)
        self.text.append(IGNORE)
        self.label.append(IGNORE)
        self.dense.append(dense)


@dataclass
class Row:
    """Documents side by side, none seeing another, in lists of equal length."""

    size: int
    tokens: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    segment: list[int] = field(default_factory=list)
    trunk: list[int] = field(default_factory=list)
    limit: list[int] = field(default_factory=list)
    text: list[int] = field(default_factory=list)
    label: list[int] = field(default_factory=list)
    dense: list[int] = field(default_factory=list)

    @property
    def room(self) -> int:
        return self.size - len(self.tokens)

    def put(self, document: Document) -> None:
        offset = len(self.tokens)
        assert len(document) <= self.room
        base = (self.segment[-1] + 1) if self.segment else 0
        self.tokens += document.tokens
        self.positions += document.positions
        self.segment += [base + segment for segment in document.segment]
        self.trunk += [base] * len(document)
        self.limit += [offset + limit for limit in document.limit]
        self.text += document.text
        self.label += document.label
        self.dense += document.dense

    def pad(self) -> None:
        while self.room:
            filler = Document()
            filler.add(0)
            self.put(filler)


def prompt(text: str) -> str:
    """What the generator is given for a story: the chat template, rendered."""
    return f"{TURN}user\n{text}{TURN_END}\n{TURN}assistant\n"


def generator_document(problem: Problem) -> Document:
    """Prompt and solution; every token of the solution is a target."""
    encode = tokenizer().encode
    opening = encode(prompt(problem.text))
    tokens = opening + encode(problem.solution + TURN_END)
    document = Document()
    for token in tokens:
        document.add(token)
    for index in range(len(opening), len(tokens)):
        document.text[index - 1] = tokens[index]
    return document


def verifier_opening(text: str) -> list[int]:
    return tokenizer().encode(text + SEPARATOR)


def verifier_step(step: str) -> list[int]:
    return tokenizer().encode(step + MARKER)


def verifier_document(problem: Problem, alternatives: Solutions, size: int) -> Document:
    """The right solution as the trunk, each alternative that fits as a branch."""
    document = Document()
    for token in verifier_opening(problem.text):
        document.add(token)
    reference = [verifier_step(step) for step in problem.steps]
    starts: list[int] = []
    for step in reference:
        starts.append(len(document))
        _add_step(document, step, step, right_before=True, right=True)
    segment = 0
    for steps in alternatives:
        shared = 0
        while shared < min(len(steps), len(reference)) and steps[shared] == problem.steps[shared]:
            shared += 1
        if shared == len(steps) or shared == len(reference):
            continue
        segment += 1
        before = len(document)
        labels = [True, *judge_all(problem, steps)]
        for index in range(shared, len(steps)):
            _add_step(
                document,
                verifier_step(steps[index]),
                reference[index] if index < len(reference) else [],
                right_before=labels[index],
                right=labels[index + 1],
                segment=segment,
                start=starts[shared],
            )
        if len(document) > size:
            document.cut(before)
    return document


def _add_step(
    document: Document,
    tokens: list[int],
    reference: list[int],
    *,
    right_before: bool,
    right: bool,
    segment: int = 0,
    start: int = 0,
) -> None:
    """One step and its marker, with targets.

    The next-token target is always the *right* token, up to and including the
    place where a step leaves the reference: the model should know what ought to
    stand there.
    """
    following = right_before
    previous = len(document) - 1 if right_before and segment == 0 else None
    if right or not right_before:
        so_far = [int(right)] * len(tokens)
    else:
        so_far = _right_so_far(tokens, reference)
    checked = tokenizer().checked
    for index, token in enumerate(tokens):
        expected = reference[index] if following and index < len(reference) else IGNORE
        if previous is not None:
            document.text[previous] = expected
        following = following and token == expected
        # Only numbers and signs can be wrong; words would thin out the signal.
        dense = so_far[index] if token in checked else IGNORE
        document.add(token, segment, start, dense=dense)
        previous = len(document) - 1
    document.label[-1] = int(right)


def _right_so_far(tokens: list[int], reference: list[int]) -> list[int]:
    """Where a wrong step turns wrong: at the first token of its numbers that does.

    Words before them may differ and leave the matter open.
    """
    numbers = tokenizer().checked

    def first(ids: list[int]) -> int:
        return next((place for place, token in enumerate(ids) if token in numbers), 0)

    start, reference_start = first(tokens), first(reference)
    same_words = tokens[:start] == reference[:reference_start]
    values = [1 if same_words else IGNORE] * start
    so_far = 1
    for place in range(start, len(tokens)):
        other = reference_start + place - start
        if other >= len(reference) or tokens[place] != reference[other]:
            so_far = 0
        values.append(so_far)
    return values


def equation_document(equation: Equation, right: bool, rng: random.Random) -> Document:
    """A bare equation with its label, true or with a false result."""
    stated = equation.result if right else false_result(equation, rng)
    shown = Equation(equation.left, equation.op, equation.right, stated)
    tokens = tokenizer().encode(str(shown) + MARKER)
    document = Document()
    for token in tokens:
        document.add(token)
    document.text[-3] = tokenizer().numbers[equation.result]
    document.dense[-2] = document.label[-1] = int(right)
    return document


def random_equation(rng: random.Random) -> Equation:
    """A true equation from all over the range of the stories."""
    while True:
        op = rng.choices("+-*/", (35, 35, 18, 12))[0]
        if op in "+-":
            left, right = rng.randint(1, 97), rng.randint(2, 12)
        elif op == "*":
            left, right = rng.randint(2, 48), rng.randint(2, 9)
        else:
            right = rng.randint(2, 5)
            left = right * rng.randint(1, LARGEST // right)
        result = compute(left, op, right)
        if result is not None and result >= 1:
            return Equation(left, op, right, result)


def story_equation(problems: Iterator[Problem], rng: random.Random) -> Equation:
    """A true equation as the stories use them."""
    return rng.choice(next(problems).program)


def generator_rows(seed: int, size: int, story_share: float) -> Iterator[Row]:
    """Rows of solved stories and of equations whose result is to be said."""
    return _rows(seed, size, story_share, generator_document, lambda rng: True)


def verifier_rows(
    seed: int,
    size: int,
    story_share: float,
    sampled: Sequence[tuple[Problem, Solutions]] = (),
    sampled_share: float = 0.0,
    branches: int = 6,
) -> Iterator[Row]:
    """Rows of stories with corrupted or sampled solutions, and of equations."""
    rng = random.Random(f"verifier-{seed}")

    def document(problem: Problem) -> Document:
        if sampled and rng.random() < sampled_share:
            return verifier_document(*rng.choice(sampled), size)
        return verifier_document(problem, [corrupt(problem, rng) for _ in range(branches)], size)

    return _rows(seed, size, story_share, document, lambda rng: rng.random() < 0.5)


def _rows(
    seed: int,
    size: int,
    story_share: float,
    document_of: Callable[[Problem], Document],
    equation_is_right: Callable[[random.Random], bool],
) -> Iterator[Row]:
    rng = random.Random(f"rows-{seed}")
    problems = training_problems(seed)
    waiting: list[Document] = []
    owed = 0.0
    while True:
        row = Row(size)
        # What one row takes too much of stories, the next ones give back.
        owed += size * story_share
        while owed > 0:
            while len(waiting) < 16:
                waiting.append(document_of(next(problems)))
            fitting = next((doc for doc in waiting if len(doc) <= row.room), None)
            if fitting is None:
                break
            waiting.remove(fitting)
            row.put(fitting)
            owed -= len(fitting)
        owed = min(owed, size)
        while row.room >= 6:
            wide = rng.random() < 0.5
            equation = random_equation(rng) if wide else story_equation(problems, rng)
            row.put(equation_document(equation, equation_is_right(rng), rng))
        row.pad()
        yield row
