"""A verifier as it is found: its file, how it reads a solution, and its head if it has one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine import catalogue
from engine.memory.learnt import header_of
from engine.memory.options import HEAD_MARKERS, MARKERS
from engine.models.base import TokenModel
from engine.models.chat import ChatTemplate
from engine.protocol.events import Warned
from engine.verify.formats import BoundFormat, PrmFormat, bind
from engine.verify.heads import Head, head_of


@dataclass(frozen=True, slots=True)
class Judge:
    """What is known of a verifier before its weights are loaded."""

    path: Path
    format: PrmFormat
    head: Head | None
    warning: Warned | None = None
    """What the user should know of it."""

    @property
    def markers(self) -> int:
        """Positions that a batch of it needs room for at least."""
        return HEAD_MARKERS if self.head else MARKERS

    def bound(self, model: TokenModel, template: ChatTemplate) -> BoundFormat:
        """Its format, checked against its vocabulary.

        Raises:
            EngineError: the two do not fit together.
        """
        return bind(self.format, model.vocabulary, template, self.head)


def find_judge(name: str, format: str | None) -> Judge:
    """The verifier named by catalogue id or path.

    Raises:
        EngineError: the name or format is unknown, or a file of it cannot be used.
    """
    path, found = catalogue.verifier_file(name, format)
    warning = _other_format(path, found) if format else None
    return Judge(path, found, head_of(path) if found.head else None, warning)


def _other_format(path: Path, asked: PrmFormat) -> Warned | None:
    """A warning where a file says itself that it is of another format than the one asked for."""
    says = header_of(path).text("sapwood.prm.format") if path.is_file() else ""
    if not says or says == asked.name:
        return None
    return Warned(
        code="format",
        message=f"{path.name} says that it is of the format '{says}', and is read as one of the "
        f"format '{asked.name}', as was asked for: its scores may mean nothing. Leave out "
        "--prm-format to go by what the file says.",
    )
