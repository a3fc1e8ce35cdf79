"""Formats of token-logit process reward models: how a path is written down and read off.

A format is data (in `models.toml`): its text for a problem and some steps ends exactly where the
score of the last step is read, as the softmax over the logits of a good and a bad token.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

import msgspec

from engine.errors import EngineError
from engine.models.base import Vocabulary
from engine.models.chat import ChatTemplate, Message
from engine.protocol.events import Trouble


class PrmFormat(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of `[formats]` in `models.toml`."""

    name: str = ""
    """Its key."""
    style: Literal["marker", "turns"]
    """`marker`: plain text with a marker token after each step, where the score is read.
    `turns`: a chat with a user turn a step, answered by the good token; the score is read where
    that answer is predicted."""
    good: str
    """Text of the token that stands for a right step."""
    bad: str
    opening: str = "{problem}"
    step: str = "{step}"
    """May use `{step}` and `{index}`, which counts from 1."""
    marker: str = ""
    after: str = ""
    """Text between a marker and the next step."""
    pieces: bool = False
    """Trained on text that was tokenized piece by piece (opening, then each step)."""
    good_id: int | None = None
    """Ids the tokens must have, where the model's documentation states them."""
    bad_id: int | None = None
    marker_id: int | None = None


@dataclass(frozen=True, slots=True)
class BoundFormat:
    """A format checked against the vocabulary of a model."""

    format: PrmFormat
    vocabulary: Vocabulary
    template: ChatTemplate
    good: int
    bad: int
    marker: int | None

    def opening(self, problem: str) -> list[int]:
        """Tokens before the first step."""
        if self.format.pieces:
            return self.vocabulary.tokenize(self.format.opening.format(problem=problem), bos=True)
        # The end of an opening may merge with the beginning of a step. What every step leaves
        # as it is, is what these differ after.
        samples = [self._whole(problem, [step]) for step in ("1", "a", "(", "Step 2")]
        return [tokens[0] for tokens in takewhile(_all_equal, zip(*samples, strict=False))]

    def step(self, problem: str, steps: Sequence[str], before: Sequence[int]) -> list[int]:
        """Tokens of the last of `steps`, after the tokens `before` of all the others.

        The score of the step is read at the last one.

        Raises:
            EngineError: the model's chat template writes earlier turns anew.
        """
        if self.format.pieces:
            return self._by_itself(steps)
        whole = self._whole(problem, steps)
        if whole[: len(before)] == list(before):
            tokens = whole[len(before) :]
            if self.marker is None or tokens[-1:] == [self.marker]:
                return tokens
        elif self.format.style == "turns":
            raise EngineError(
                Trouble.MODEL,
                f"The verifier's chat template does not fit the format '{self.format.name}': it "
                "changes the turns before the last one.",
                "Choose another verifier.",
            )
        # A merge across the border, or of the marker: what is computed stays.
        return self._by_itself(steps)

    def _by_itself(self, steps: Sequence[str]) -> list[int]:
        assert self.marker is not None
        after = self.format.after if len(steps) > 1 else ""
        text = after + self._step(len(steps), steps[-1])
        return [*self.vocabulary.tokenize(text), self.marker]

    def _step(self, index: int, step: str) -> str:
        layout = self.format.step
        if "{index}" in layout and re.match(r"Step \d+\b", step):
            layout = "{step}" + layout.partition("{step}")[2]
        return layout.format(step=step, index=index)

    def _whole(self, problem: str, steps: Sequence[str]) -> list[int]:
        if self.format.style == "turns":
            return self.template.encode(self.vocabulary, list(self._turns(problem, steps)))
        opening = self.format.opening.format(problem=problem)
        written = (self._step(i, step) + self.format.marker for i, step in enumerate(steps, 1))
        return self.vocabulary.tokenize(opening + self.format.after.join(written), bos=True)

    def _turns(self, problem: str, steps: Sequence[str]) -> Iterator[Message]:
        for index, step in enumerate(steps):
            if index:
                yield {"role": "assistant", "content": self.format.good}
            layout = self.format.step if index else self.format.opening
            yield {"role": "user", "content": layout.format(problem=problem, step=step)}


def _all_equal(tokens: Sequence[int]) -> bool:
    return len(set(tokens)) == 1


def bind(format: PrmFormat, vocabulary: Vocabulary, template: ChatTemplate) -> BoundFormat:
    """Check a format against a model.

    Raises:
        EngineError: a marker or score token is not exactly one token of this vocabulary, or not
            the one that the format's model is known to have.
    """

    def single(role: str, text: str, expected: int | None) -> int:
        tokens = vocabulary.tokenize(text, special=True)
        if len(tokens) > 1 and vocabulary.piece(tokens[0]).strip() == b"":
            tokens = tokens[1:]  # a tokenizer that puts a space before every text
        if len(tokens) != 1 or (expected is not None and tokens[0] != expected):
            found = f"token {tokens[0]}" if len(tokens) == 1 else f"{len(tokens)} tokens"
            wanted = "one token" if expected is None else f"token {expected}"
            raise EngineError(
                Trouble.MODEL,
                f"This file is not a verifier of the format '{format.name}': its tokenizer reads "
                f"the {role} {text!r} as {found}, not as {wanted}.",
                "Choose a process reward model, and the format it was trained with.",
            )
        return tokens[0]

    marker = None
    if format.style == "marker":
        marker = single("step marker", format.marker, format.marker_id)
    return BoundFormat(
        format,
        vocabulary,
        template,
        good=single("good token", format.good, format.good_id),
        bad=single("bad token", format.bad, format.bad_id),
        marker=marker,
    )
