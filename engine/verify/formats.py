"""Formats of process reward models: how a path is written down and read off.

A format is data (in `models.toml`): its text for a problem and some steps ends exactly where the
score of the last step is read, either as the softmax over the logits of a good and a bad token or
by the model's own head from its hidden state.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Literal

import msgspec
import numpy as np

from engine.errors import EngineError
from engine.models.base import Span, TokenModel, Vocabulary
from engine.models.chat import ChatTemplate, Message
from engine.protocol.events import Trouble
from engine.verify.heads import Head

_FIELD = re.compile(r"(\{problem\}|\{step\}|\{index\})")
_BEGINNINGS = ("1", "a", "(", "Step 2", "$", "\\", "**", "-", "#", ".")
"""How steps begin. What they all leave as it is, is taken to be so before any step."""


class PrmFormat(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of `[formats]` in `models.toml`."""

    name: str = ""
    """Its key."""
    style: Literal["marker", "turns", "end"]
    """`marker`: text with a marker token after each step, where the score is read.
    `turns`: a chat with a user turn a step, answered by the good token; the score is read where
    that answer is predicted.
    `end`: plain text; the score is read at the last token of a step that nothing follows."""
    head: bool = False
    """Scored by a head on the hidden state, and not by the logits of two tokens."""
    good: str = ""
    """Text of the token that stands for a right step."""
    bad: str = ""
    opening: str = "{problem}"
    """Layouts may name control tokens; what they are filled with is always plain text."""
    step: str = "{step}"
    """May use `{step}` and `{index}`, which counts from 1."""
    marker: str = ""
    after: str = ""
    """Text between a marker and the next step."""
    pieces: bool = False
    """Trained on text that was tokenized piece by piece (opening, then each step)."""
    lines: bool = False
    """The marker stands after each line of a step; the score is read at the last one."""
    good_id: int | None = None
    """Ids the tokens must have, where the model's documentation states them."""
    bad_id: int | None = None
    marker_id: int | None = None
    ids: dict[str, int] = {}
    """Ids that control tokens of the layouts must have."""

    def __post_init__(self) -> None:
        if not self.head and not (self.good and self.bad):
            raise ValueError("without a head, a good and a bad token are needed")
        if self.style == "marker" and not self.marker:
            raise ValueError("the style 'marker' needs a marker")


@dataclass(frozen=True, slots=True)
class StepTokens:
    """Tokens of a step after those of the steps before it; its score is read at the last one."""

    tokens: list[int]
    """They stay as they are whatever follows."""
    tail: list[int] = field(default_factory=list)
    """The step's end where no step follows. If one does, it becomes other tokens."""


@dataclass(frozen=True, slots=True)
class BoundFormat:
    """A format checked against the vocabulary of a model."""

    format: PrmFormat
    vocabulary: Vocabulary
    template: ChatTemplate
    pair: tuple[int, int] | None
    """The good and the bad token, unless a head scores."""
    marker: int | None
    head: Head | None = None

    def scores(self, model: TokenModel, spans: Sequence[Span]) -> np.ndarray:
        """Append the spans; scores from 0 to 1 at their wanted positions, in order.

        Raises:
            EngineError: the model computes no numbers.
        """
        if self.head is not None:
            found = self.head(model.hidden(spans))
        else:
            found = _softmax_first(model.forward(spans, self.pair))
        if not np.isfinite(found).all():
            raise EngineError(
                Trouble.MODEL,
                f"{model.name} gives scores that are no numbers: its file is damaged.",
                "Download it again, or choose another verifier.",
            )
        return found

    def opening(self, problem: str) -> list[int]:
        """Tokens before the first step."""
        if self.format.pieces:
            return self._tokens(_fill(self.format.opening, {"problem": problem}), bos=True)
        # The end of an opening may merge with the beginning of a step.
        return _common(self._whole(problem, [step]) for step in _BEGINNINGS)

    def step(self, problem: str, steps: Sequence[str], before: Sequence[int]) -> StepTokens:
        """Tokens of the last of `steps`, after the tokens `before` of all the others.

        Args:
            before: of the opening and of each step, without tails.

        Raises:
            EngineError: the model's chat template writes earlier turns anew.
        """
        if self.format.pieces:
            return StepTokens(self._by_itself(steps))
        whole = self._whole(problem, steps)
        tokens = whole[len(before) :]
        if tokens and whole[: len(before)] == list(before):
            if self.format.style == "end":
                return self._ending(problem, steps, whole, len(before))
            if self.marker is None or tokens[-1] == self.marker:
                return StepTokens(tokens)
        elif self.format.style == "turns":
            raise EngineError(
                Trouble.MODEL,
                f"The verifier's chat template does not fit the format '{self.format.name}': it "
                "changes the turns before the last one.",
                "Choose another verifier.",
            )
        # A merge across the border, or of the marker: what is computed stays.
        return StepTokens(self._by_itself(steps))

    def _ending(
        self, problem: str, steps: Sequence[str], whole: list[int], start: int
    ) -> StepTokens:
        """A step whose last characters may be one token with the separator after them."""
        followed = (self._whole(problem, [*steps, step]) for step in _BEGINNINGS[:2])
        stays = max(start, len(_common([whole, *followed])))
        return StepTokens(whole[start:stays], whole[stays:])

    def _by_itself(self, steps: Sequence[str]) -> list[int]:
        marker = [] if self.marker is None else [self.marker]
        before = [_Part(self.format.after, layout=True)] if len(steps) > 1 else []
        tokens: list[int] = []
        for line in steps[-1].split("\n") if self.format.lines else [steps[-1]]:
            tokens += self._tokens([*before, *self._step(len(steps), line)]) + marker
            before = []
        return tokens or self.vocabulary.tokenize("\n")  # the score needs a place

    def _step(self, index: int, step: str) -> list[_Part]:
        layout = self.format.step
        if "{index}" in layout and re.match(r"Step \d+\b", step):
            layout = "{step}" + layout.partition("{step}")[2]
        return _fill(layout, {"step": step, "index": str(index)})

    def _whole(self, problem: str, steps: Sequence[str]) -> list[int]:
        if self.format.style == "turns":
            return self.template.encode(self.vocabulary, list(self._turns(problem, steps)))
        parts = _fill(self.format.opening, {"problem": problem})
        for index, step in enumerate(steps, 1):
            if index > 1:
                parts.append(_Part(self.format.after, layout=True))
            parts += [*self._step(index, step), _Part(self.format.marker, layout=True)]
        return self._tokens(parts, bos=True)

    def _tokens(self, parts: Sequence[_Part], *, bos: bool = False) -> list[int]:
        """Tokens of parts that follow each other; no step or problem becomes a control token."""
        tokenize = self.vocabulary.tokenize
        if all(tokenize(p.text, special=True) == tokenize(p.text) for p in parts if not p.layout):
            return tokenize("".join(part.text for part in parts), special=True, bos=bos)
        tokens = tokenize("", bos=bos)
        for part in parts:
            tokens += tokenize(part.text, special=part.layout)
        return tokens

    def _turns(self, problem: str, steps: Sequence[str]) -> Iterator[Message]:
        for index, step in enumerate(steps):
            if index:
                yield {"role": "assistant", "content": self.format.good}
            layout = self.format.step if index else self.format.opening
            yield {"role": "user", "content": layout.format(problem=problem, step=step)}


@dataclass(frozen=True, slots=True)
class _Part:
    text: str
    layout: bool
    """Written by the format, so that control tokens are read in it."""


def _fill(layout: str, contents: Mapping[str, str]) -> list[_Part]:
    pieces = _FIELD.split(layout)
    return [
        _Part(contents[piece[1:-1]], layout=False) if index % 2 else _Part(piece, layout=True)
        for index, piece in enumerate(pieces)
    ]


def _softmax_first(pair: np.ndarray) -> np.ndarray:
    """Softmax over two columns, the first one's share."""
    difference = pair[:, 1].astype(np.float64) - pair[:, 0]
    return 1.0 / (1.0 + np.exp(np.clip(difference, -700, 700)))


def _common(texts: Iterable[Sequence[int]]) -> list[int]:
    """The tokens that all begin with."""
    columns = zip(*texts, strict=False)
    return [column[0] for column in takewhile(lambda column: len(set(column)) == 1, columns)]


def bind(
    format: PrmFormat, vocabulary: Vocabulary, template: ChatTemplate, head: Head | None = None
) -> BoundFormat:
    """Check a format against a model.

    Args:
        head: the model's, for a format that is scored by one.

    Raises:
        EngineError: a marker or score token is not exactly one token of this vocabulary, or not
            the one that the format's model is known to have; or there is no head.
    """
    if format.head and head is None:
        raise EngineError(
            Trouble.MODEL,
            f"A verifier of the format '{format.name}' scores with a head of its own, and this "
            "file comes without one.",
            "Convert it from its checkpoint with: sapwood models convert",
        )

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

    for text, expected in format.ids.items():
        single("control token", text, expected)
    marker = pair = None
    if format.style == "marker":
        marker = single("step marker", format.marker, format.marker_id)
    if not format.head:
        pair = (
            single("good token", format.good, format.good_id),
            single("bad token", format.bad, format.bad_id),
        )
    return BoundFormat(format, vocabulary, template, pair, marker, head if format.head else None)
