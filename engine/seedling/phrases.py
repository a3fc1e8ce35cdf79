"""The words of the stories: who, what, and how each event is told.

Every opening and event has phrasings that training uses (`seen`) and some that
it never does (`unseen`). The unseen ones are new sentences made of known words,
for a model of this size has no other source of meaning.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

Phrasing = str

NAMES = {
    "He": ("Tom", "Ben", "Sam", "Max", "Leo", "Jack", "Omar", "Ravi"),
    "She": ("Ana", "Mia", "Eva", "Lily", "Zoe", "Ruth", "Nora", "Ines"),
}
THINGS = (
    "apples", "pears", "plums", "nuts", "cookies", "candies", "marbles", "stamps",
    "cards", "coins", "shells", "stones", "books", "pens", "flowers", "eggs",
)  # fmt: skip
HOLDERS = ("boxes", "bags", "baskets", "jars")

DISTRACTOR_RATE = 0.25
DISTRACTORS = (
    "{friend} is {b} years old.",
    "{name} lives at number {b}.",
    "It is {b} degrees outside.",
)
QUESTION = "How many {things} does {name} have now?"

SMALL = tuple(range(2, 13))
FACTORS = tuple(range(2, 6))


@dataclass(frozen=True)
class Opening:
    """How a story begins; with an operation, its two numbers make a first step."""

    name: str
    seen: tuple[Phrasing, ...]
    unseen: tuple[Phrasing, ...]
    op: str | None = None
    step: str = ""
    first: tuple[int, ...] = SMALL
    second: tuple[int, ...] = SMALL
    fixed: int | None = None


@dataclass(frozen=True)
class Event:
    """A change of the quantity; `fixed` where the operand is a word ("half")."""

    name: str
    op: str
    step: str
    seen: tuple[Phrasing, ...]
    unseen: tuple[Phrasing, ...]
    second: tuple[int, ...] = SMALL
    fixed: int | None = None
    weight: int = 4
    question: str = QUESTION


OPENINGS = (
    Opening(
        "have",
        seen=(
            "{name} has {a} {things}.",
            "{name} starts with {a} {things}.",
            "There are {a} {things} in the box of {name}.",
        ),
        unseen=("{name} has a box with {a} {things}.",),
        first=tuple(range(5, 81)),
    ),
    Opening(
        "packs",
        op="*",
        step="At first there are {eq} {things}.",
        seen=(
            "{name} buys {a} {holders} of {b} {things} each.",
            "{name} has {a} {holders} with {b} {things} in each.",
        ),
        unseen=("There are {a} {holders} of {b} {things} each and {name} buys them.",),
        first=tuple(range(2, 10)),
        second=tuple(range(2, 10)),
    ),
    Opening(
        "colours",
        op="+",
        step="At first there are {eq} {things}.",
        seen=(
            "{name} has {a} old {things} and {b} new {things}.",
            "{name} finds {a} {things} in a box and {b} {things} in a bag.",
        ),
        unseen=("{name} buys {a} old {things} and then {b} new {things}.",),
        first=tuple(range(3, 61)),
    ),
    Opening(
        "more",
        op="+",
        step="At first there are {eq} {things}.",
        seen=("{friend} has {a} {things} and {name} has {b} more than {friend}.",),
        unseen=("{name} has {b} more {things} than {friend}, and {friend} has {a}.",),
        first=tuple(range(3, 61)),
    ),
    Opening(
        "fewer",
        op="-",
        step="At first there are {eq} {things}.",
        seen=("{friend} has {a} {things} and {name} has {b} fewer than {friend}.",),
        unseen=("{name} has {b} fewer {things} than {friend}, and {friend} has {a}.",),
        first=tuple(range(10, 91)),
    ),
)

EVENTS = (
    Event(
        "gain",
        "+",
        "Now there are {eq} {things}.",
        seen=(
            "{He} finds {b} more.",
            "{friend} gives {name} {b} {things}.",
            "Then {he} buys {b} more {things}.",
        ),
        unseen=("{friend} buys {b} {things} and gives them to {name}.",),
        weight=8,
    ),
    Event(
        "lose",
        "-",
        "That leaves {eq} {things}.",
        seen=(
            "{He} gives {b} {things} to {friend}.",
            "{He} loses {b} of them.",
            "Then {he} sells {b} {things}.",
        ),
        unseen=("{friend} buys {b} of them.",),
        weight=8,
    ),
    Event(
        "times",
        "*",
        "That makes {eq} {things}.",
        seen=("Soon {he} has {b} times as many.", "A wizard makes it {b} times as many."),
        unseen=("Then {he} has {b} times as many {things}.",),
        second=FACTORS,
    ),
    Event(
        "twice",
        "*",
        "That makes {eq} {things}.",
        seen=("Soon {he} has twice as many.", "A wizard doubles the {things}."),
        unseen=("Then {he} has twice as many {things}.",),
        fixed=2,
        weight=2,
    ),
    Event(
        "half",
        "/",
        "One part is {eq} {things}.",
        seen=("{He} keeps half of them.", "{He} gives half of the {things} to {friend}."),
        unseen=("Then {he} gives half of them to {friend}.",),
        fixed=2,
        weight=2,
    ),
    Event(
        "part",
        "/",
        "One part is {eq} {things}.",
        seen=("{He} fills {b} {holders} equally and keeps one of them.",),
        unseen=("Then {he} fills {b} {holders} with them equally and keeps one.",),
        second=FACTORS,
        weight=2,
    ),
)

CLOSINGS = (
    Event(
        "sell",
        "*",
        "The sale brings {eq} dollars.",
        seen=("{He} sells each of them for {b} dollars.",),
        unseen=("Then {he} sells the {things} for {b} dollars each.",),
        second=FACTORS,
        question="How many dollars does {name} get?",
    ),
    Event(
        "share",
        "/",
        "Each friend gets {eq} {things}.",
        seen=("{He} shares them equally with {b} friends.",),
        unseen=("{He} gives the {things} to {b} friends equally.",),
        second=FACTORS,
        question="How many {things} does each friend get?",
    ),
)


def cast(rng: random.Random) -> dict[str, str]:
    """The people and things of one story, by the names the phrasings use."""
    pronoun = rng.choice(sorted(NAMES))
    name = rng.choice(NAMES[pronoun])
    others = sorted(n for names in NAMES.values() for n in names if n != name)
    return {
        "name": name,
        "He": pronoun,
        "he": pronoun.lower(),
        "friend": rng.choice(others),
        "things": rng.choice(THINGS),
        "holders": rng.choice(HOLDERS),
    }
