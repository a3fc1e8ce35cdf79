"""Generative verifiers: a model that writes a critique and then a verdict (GenPRM, ThinkPRM).

They cost hundreds of tokens a judgement and so only rank what a search has completed. A score is
p(good) / (p(good) + p(bad)) where the model names its verdict. What it writes is text and nothing
else: code that is in it is never run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from math import exp

import msgspec
import numpy as np

from engine.errors import EngineError
from engine.models.base import Span, TokenModel
from engine.models.chat import ChatTemplate, Message
from engine.models.sampling import Draws, Sampler
from engine.protocol.events import Trouble


class CritiqueFormat(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of `[critiques]` in `models.toml`: how a model is asked for its verdict."""

    name: str = ""
    """Its key."""
    each_step: bool = False
    """A turn and a verdict for each step, instead of one for the whole solution."""
    system: str = ""
    opening: str
    """First turn of the user; uses `{problem}`, and `{solution}` or the first `{step}`."""
    begin: str = ""
    """How every critique begins; may use `{index}` of the step, from 1."""
    end: str
    """Text that ends a critique; written for the model if it comes to no end of its own."""
    verdict: str = ""
    """Text between that and the verdict."""
    good: str
    bad: str
    close: str = ""
    """Text after the verdict, before the next turn."""
    temperature: float = 0.6
    top_p: float = 0.95
    top_k: int = 20


@dataclass(frozen=True, slots=True)
class Solution:
    """What is to be judged."""

    lineage: tuple[int, ...]
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """A solution's scores: one a step, or one in all; none where it did not fit."""

    lineage: tuple[int, ...]
    scores: tuple[float, ...]


@dataclass(eq=False, slots=True)
class _Reading:
    """A solution while it is judged."""

    solution: Solution
    messages: list[Message]
    feed: list[int]
    """Tokens to compute next."""
    draws: Draws
    path: int = -1
    written: bytearray = field(default_factory=bytearray)
    """The critique so far."""
    count: int = 0
    """Its tokens."""
    deciding: bool = False
    """The verdict is read next."""
    scores: list[float] = field(default_factory=list)


class Critic:
    """Judges solutions of one problem, several at once.

    Args:
        budget: tokens one critique may have.
        context: tokens that all turns of a solution may have.

    Raises:
        EngineError: a verdict is not one token of the model's vocabulary.
    """

    def __init__(
        self,
        model: TokenModel,
        template: ChatTemplate,
        format: CritiqueFormat,
        problem: str,
        *,
        seed: int,
        budget: int,
        context: int,
    ) -> None:
        self.model = model
        self._vocabulary = model.vocabulary
        self._template = template
        self._format = format
        self._problem = problem
        self._seed = seed
        self._budget = budget
        self._context = min(context, model.trained_context, model.capacity)
        self._sampler = Sampler(format.temperature, format.top_p, format.top_k)
        self._good, self._bad = self._single(format.good), self._single(format.bad)
        self._longest_end = len(self._tokens(format.end + format.verdict)) + 1
        self.fed_tokens = 0
        """Tokens computed so far."""

    def judge(self, solutions: Sequence[Solution]) -> Iterator[list[Judgement]]:
        """Judge all solutions, giving those that were finished after every pass.

        The caller may stop for good after any pass. What is drawn for a solution depends on the
        seed and its lineage alone.
        """
        self.model.reset()
        readings = [self._open(solution) for solution in solutions]
        fitting = [reading for reading in readings if self._fits(reading, 0)]
        yield [Judgement(r.solution.lineage, ()) for r in readings if r not in fitting]
        if not fitting:
            return
        stem = self._compute_stem(fitting)
        waiting, active = deque(fitting), list[_Reading]()
        free = list(range(1, self.model.max_paths))
        while waiting or active:
            while waiting and free and (not active or self._room(stem, len(active) + 1)):
                reading = waiting.popleft()
                reading.path = free.pop()
                self.model.fork(0, reading.path)
                del reading.feed[:stem]
                active.append(reading)
            self.fed_tokens += sum(len(reading.feed) for reading in active)
            rows = self.model.forward([Span((r.path,), r.feed) for r in active])
            done = [r for r, row in zip(active, rows, strict=True) if not self._advance(r, row)]
            for reading in done:
                self.model.drop(reading.path)
                free.append(reading.path)
            active = [reading for reading in active if reading not in done]
            yield [Judgement(r.solution.lineage, tuple(r.scores)) for r in done]

    # -- a solution's turns ---------------------------------------------------------------------

    def _open(self, solution: Solution) -> _Reading:
        format = self._format
        content = format.opening.replace("{problem}", self._problem)
        content = content.replace("{solution}", "\n".join(solution.steps))
        content = content.replace("{step}", solution.steps[0] if solution.steps else "")
        messages = [{"role": "system", "content": format.system}] if format.system else []
        messages.append({"role": "user", "content": content})
        feed = self._template.encode(self._vocabulary, messages) + self._tokens(self._begin(1))
        return _Reading(solution, messages, feed, self._draws(solution, 0))

    def _next_turn(self, reading: _Reading) -> bool:
        """Ask for the next step. False if there is none, or no room for it."""
        index = len(reading.scores)
        if not self._format.each_step or index >= len(reading.solution.steps):
            return False
        step = reading.solution.steps[index]
        reading.messages += [
            {"role": "assistant", "content": reading.written.decode(errors="replace")},
            {"role": "user", "content": step},
        ]
        *_, before, after = self._template.layout(reading.messages)
        good = reading.scores[-1] >= 0.5
        reading.feed = [
            self._good if good else self._bad,
            *self._tokens(self._format.close),
            *self._vocabulary.tokenize(before, special=True),
            *self._tokens(step),
            *self._vocabulary.tokenize(after, special=True),
            *self._tokens(self._begin(index + 1)),
        ]
        reading.written.clear()
        reading.count = 0
        reading.deciding = False
        reading.draws = self._draws(reading.solution, index)
        return self._fits(reading, self.model.length(reading.path))

    # -- writing one critique -------------------------------------------------------------------

    def _advance(self, reading: _Reading, logits: np.ndarray) -> bool:
        """Take what a pass gave for a solution. False when it is judged."""
        if reading.deciding:
            difference = float(logits[self._bad]) - float(logits[self._good])
            reading.scores.append(1.0 / (1.0 + exp(min(max(difference, -700.0), 700.0))))
            return self._next_turn(reading)
        (token,) = self._sampler.draw(logits, [reading.draws.uniform(reading.count)])
        reading.count += 1
        ends = self._vocabulary.is_end(token)
        if ends or reading.count > self._budget or not self._may_go_on(reading):
            reading.deciding = True
            reading.feed = self._tokens(self._format.end + self._format.verdict)
            return True
        reading.written += self._vocabulary.piece(token)
        reading.feed = [token]
        if self._format.end.strip().encode() in reading.written:
            reading.deciding = True
            verdict = self._format.verdict
            if reading.written.endswith(b"\n"):
                verdict = verdict.lstrip("\n")
            reading.feed += self._tokens(verdict)
        return True

    def _may_go_on(self, reading: _Reading) -> bool:
        length = self.model.length(reading.path) + 1 + self._longest_end
        return length <= self._context

    def _fits(self, reading: _Reading, length: int) -> bool:
        """Whether a turn and a verdict about it have room after `length` tokens."""
        return length + len(reading.feed) + self._longest_end < self._context

    # -- the cache ------------------------------------------------------------------------------

    def _compute_stem(self, readings: Sequence[_Reading]) -> int:
        """Compute what all prompts begin with, once; returns its length."""
        columns = zip(*(reading.feed[:-1] for reading in readings), strict=False)
        stem = [column[0] for column in takewhile(lambda c: len(set(c)) == 1, columns)]
        if stem:
            self.model.forward([Span((0,), stem, ())])
            self.fed_tokens += len(stem)
        return len(stem)

    def _room(self, stem: int, count: int) -> bool:
        """Whether `count` solutions can be judged side by side, each as long as may be."""
        return stem + count * (self._context - stem) <= self.model.capacity

    # -- words ----------------------------------------------------------------------------------

    def _tokens(self, text: str) -> list[int]:
        return self._vocabulary.tokenize(text)

    def _begin(self, index: int) -> str:
        return self._format.begin.replace("{index}", str(index))

    def _draws(self, solution: Solution, index: int) -> Draws:
        return Draws(self._seed, (-1, *solution.lineage, index))  # no node is named so

    def _single(self, text: str) -> int:
        tokens = self._tokens(text)
        if len(tokens) > 1 and self._vocabulary.piece(tokens[0]).strip() == b"":
            tokens = tokens[1:]  # a tokenizer that puts a space before every text
        if len(tokens) != 1:
            raise EngineError(
                Trouble.MODEL,
                f"{self.model.name} cannot give verdicts in the way '{self._format.name}': its "
                f"tokenizer reads {text!r} as {len(tokens)} tokens, not as one.",
                "Choose another model to rank with.",
            )
        return tokens[0]
