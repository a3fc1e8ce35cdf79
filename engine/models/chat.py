"""From a problem to the tokens of a prompt, by the chat template in the model's own file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from engine.errors import EngineError
from engine.models.base import Vocabulary
from engine.protocol.events import Trouble

Message = dict[str, str]

_HOLE = "\ue000{}\ue001"
"""Stands in a rendered conversation for a content that is to be tokenized by itself."""
_HOLES = re.compile("\ue000(\\d+)\ue001")

INSTRUCTION = "Please reason step by step, and put your final answer within \\boxed{}."
"""The system message with which problems are solved."""


class ChatTemplate:
    """A model's chat template.

    Args:
        source: the Jinja text; empty for a base model, which then gets a plain layout.
        bos, eos: texts of those tokens, for the template's use.
    """

    def __init__(self, source: str, *, bos: str = "", eos: str = "") -> None:
        self._bos = bos
        self._eos = eos
        self._template: jinja2.Template | None = None
        if source:
            environment = ImmutableSandboxedEnvironment(
                trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
            )
            environment.globals["raise_exception"] = _refuse
            try:
                self._template = environment.from_string(source)
            except jinja2.TemplateSyntaxError as error:
                raise EngineError(
                    Trouble.MODEL, f"The model's chat template cannot be read: {error}."
                ) from None

    def render(self, messages: Sequence[Message], **variables: Any) -> str:
        """The conversation as text, ending where the assistant's answer begins.

        Raises:
            EngineError: the template refuses these messages.
        """
        if self._template is None:
            return _plain(messages)
        try:
            return self._render(messages, **variables)
        except Exception as refusal:  # a template is a program out of a file: anything can come
            folded = _without_system(messages)
            if len(folded) == len(messages):
                raise EngineError(
                    Trouble.MODEL, f"The model's chat template refuses the prompt: {refusal}."
                ) from None
        return self.render(folded, **variables)

    def _render(self, messages: Sequence[Message], **variables: Any) -> str:
        assert self._template is not None
        return self._template.render(
            messages=list(messages),
            add_generation_prompt=True,
            bos_token=self._bos,
            eos_token=self._eos,
            **variables,
        )

    def layout(self, messages: Sequence[Message]) -> list[str]:
        """The conversation's text around its contents: before the first, between two, after all.

        With it a turn can be added to tokens that are computed already. A template that leaves
        out what was said before still gives the texts around the last contents.
        """
        holes = [{**message, "content": _HOLE.format(i)} for i, message in enumerate(messages)]
        return _HOLES.split(self.render(holes))[::2]

    def ask(self, vocabulary: Vocabulary, problem: str) -> list[int]:
        """A problem as tokens, after the system message with which all are solved."""
        messages = [
            {"role": "system", "content": INSTRUCTION},
            {"role": "user", "content": problem.strip()},
        ]
        return self.encode(vocabulary, messages)

    def encode(
        self, vocabulary: Vocabulary, messages: Sequence[Message], **variables: Any
    ) -> list[int]:
        """The conversation as tokens. The text of a message never becomes a control token."""
        if any(_names_a_control_token(vocabulary, message["content"]) for message in messages):
            contents = [message["content"] for message in messages]
            holes = [{**message, "content": _HOLE.format(i)} for i, message in enumerate(messages)]
            parts = _HOLES.split(self.render(holes, **variables))
        else:
            contents = []
            parts = [self.render(messages, **variables)]
        # A template may write the beginning-of-sequence token itself.
        written = bool(self._bos) and parts[0].startswith(self._bos)
        tokens = vocabulary.tokenize(parts[0], special=True, bos=not written)
        for hole, layout in zip(parts[1::2], parts[2::2], strict=True):
            tokens += vocabulary.tokenize(contents[int(hole)])
            tokens += vocabulary.tokenize(layout, special=True)
        return tokens


def _names_a_control_token(vocabulary: Vocabulary, text: str) -> bool:
    return vocabulary.tokenize(text, special=True) != vocabulary.tokenize(text)


def _refuse(message: str) -> None:
    raise jinja2.TemplateError(message)


def _without_system(messages: Sequence[Message]) -> list[Message]:
    """Fold a system message into the first user's turn, for templates that know none."""
    if not messages or messages[0]["role"] != "system" or len(messages) < 2:
        return list(messages)
    system, first, *rest = messages
    return [{**first, "content": f"{system['content']}\n\n{first['content']}"}, *rest]


def _plain(messages: Sequence[Message]) -> str:
    """A layout for base models, which have seen no chat."""
    system = next((m["content"] for m in messages if m["role"] == "system"), "")
    problem = next((m["content"] for m in messages if m["role"] == "user"), "")
    return f"{system}\n\nProblem: {problem}\n\nSolution:".lstrip()
