"""The folder in which samples, their features and their labels lie.

`about.json` names the models and the settings, `contexts.jsonl` has a line for each context,
`labels.jsonl` the same with labels, and `features/` the mean states of each problem's samples.
"""

from __future__ import annotations

import shlex
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

from engine.errors import EngineError
from engine.protocol.events import Trouble
from engine.semantic.predictors import Subject


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What the samples of a folder are of."""

    draft: Subject
    target: Subject
    samples: int
    step_tokens: int
    most_steps: int
    context: int
    temperature: float
    seed: int
    problems: list[str]
    """SHA-256 of each."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """A context and the steps that both models sampled after it, the draft's first."""

    problem: int
    text: str
    """What the context says after the problem."""
    drafts: list[str]
    targets: list[str]
    ended: bool = False
    """The last of its problem."""


class Labelled(msgspec.Struct, frozen=True, kw_only=True):
    """A context's labels: shares of samples that mean the same."""

    problem: int
    draft: list[float]
    """Of the draft's steps, among the draft's own."""
    target: list[float]
    """Of all steps, the draft's first, among the target's."""


@dataclass(frozen=True, slots=True)
class Samples:
    """What a predictor learns from: mean states, labels, and the problem each is of."""

    means: np.ndarray
    """Shape (rows, layers, width)."""
    labels: np.ndarray
    problems: np.ndarray
    drafted: np.ndarray
    """Which rows the draft model wrote."""


_Line = TypeVar("_Line", Context, Labelled)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Tells of a file that cannot be written in the block.

    Raises:
        EngineError: the system refused it.
    """
    try:
        yield
    except OSError as error:
        raise EngineError(
            Trouble.STORAGE,
            f"{path} cannot be written: {error.strerror or error}.",
            "Make room there, or name another folder.",
        ) from None


class Folder:
    """A folder of samples."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._about = path / "about.json"
        self._contexts = path / "contexts.jsonl"
        self._labels = path / "labels.jsonl"

    def begin(self, about: About) -> int:
        """Start or go on, maybe with more problems; returns how many of them are done.

        Raises:
            EngineError: the folder has samples of something else, is damaged, or cannot be written.
        """
        complete = self.contexts()
        done = complete[-1].problem + 1 if complete else 0
        more = True
        if self._about.exists():
            known = self.about()
            shared = min(done, len(about.problems))
            if msgspec.structs.replace(known, problems=about.problems) != about:
                raise self._other("models or settings")
            if known.problems[:shared] != about.problems[:shared]:
                raise self._other("problems")
            more = shared < len(about.problems)
        elif complete:
            raise self._damaged(self._about)
        with writing(self.path):
            (self.path / "features").mkdir(parents=True, exist_ok=True)
            if more:
                _replace(self._about, msgspec.json.encode(about))
            # What an interruption cut off is left out.
            _replace(self._contexts, b"".join(map(_line, complete)))
        return min(done, len(about.problems))

    def about(self) -> About:
        """Raises EngineError where nothing was collected."""
        try:
            return msgspec.json.decode(self._about.read_bytes(), type=About)
        except msgspec.DecodeError:
            raise self._damaged(self._about) from None
        except OSError:
            raise EngineError(
                Trouble.USAGE,
                f"{self.path} has no samples.",
                "Collect some with: sapwood probe collect",
            ) from None

    def contexts(self) -> list[Context]:
        """The contexts of problems that are complete.

        Raises:
            EngineError: they are damaged.
        """
        found: list[Context] = []
        waiting: list[Context] = []
        for line in _lines(self._contexts):
            context = self._decoded(line, Context, self._contexts)
            if waiting and waiting[0].problem != context.problem:
                waiting = []  # an interruption cut them off
            waiting.append(context)
            if context.ended:
                if not self._features(context.problem).exists():
                    raise self._damaged(self._features(context.problem))
                found += waiting
                waiting = []
        return found

    def add(self, contexts: list[Context], draft: np.ndarray, target: np.ndarray) -> None:
        """Add a problem.

        Args:
            draft: mean states of the draft model, rows as the contexts' drafts.
            target: those of the target, for each context its drafts and then its targets.

        Raises:
            EngineError: they cannot be written.
        """
        features = self._features(contexts[0].problem)
        with writing(self.path):
            np.savez(features, draft=draft.astype(np.float16), target=target.astype(np.float16))
            with self._contexts.open("ab") as file:
                file.write(b"".join(map(_line, contexts)))

    def label(self, labelled: Iterator[Labelled]) -> int:
        """Write labels, those of all contexts anew; returns how many.

        Raises:
            EngineError: they cannot be written.
        """
        lines = list(map(_line, labelled))
        with writing(self._labels):
            _replace(self._labels, b"".join(lines))
        return len(lines)

    def samples(self) -> tuple[Samples, Samples]:
        """What the draft's predictor and the target's learn from.

        Raises:
            EngineError: there are no labels, or samples were collected since.
        """
        labels: dict[int, list[Labelled]] = {}
        labelled = _lines(self._labels)
        for line in labelled:
            found = self._decoded(line, Labelled, self._labels)
            labels.setdefault(found.problem, []).append(found)
        collected = len(self.contexts())
        if len(labelled) != collected:
            raise EngineError(
                Trouble.USAGE,
                f"The samples in {self.path} have no labels."
                if not labels
                else f"The labels in {self.path} are older than its samples: there are "
                f"{len(labelled):,} for {collected:,} contexts.",
                f"Label them all with: sapwood probe label --data {shlex.quote(str(self.path))}",
            )
        drafts: list[tuple[np.ndarray, list[float], int, list[bool]]] = []
        targets: list[tuple[np.ndarray, list[float], int, list[bool]]] = []
        for problem, contexts in labels.items():
            draft, target = self._means(problem)
            own = [share for context in contexts for share in context.draft]
            drafts.append((draft, own, problem, [True] * len(own)))
            every = [share for context in contexts for share in context.target]
            drafted = [
                place < len(context.draft)
                for context in contexts
                for place in range(len(context.target))
            ]
            targets.append((target, every, problem, drafted))
        return _joined(drafts), _joined(targets)

    def _means(self, problem: int) -> tuple[np.ndarray, np.ndarray]:
        try:
            with np.load(self._features(problem)) as stored:
                return stored["draft"], stored["target"]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            raise self._damaged(self._features(problem)) from None

    def _decoded(self, line: bytes, kind: type[_Line], file: Path) -> _Line:
        try:
            return msgspec.json.decode(line, type=kind)
        except msgspec.DecodeError:
            raise self._damaged(file) from None

    def _other(self, what: str) -> EngineError:
        return EngineError(
            Trouble.USAGE,
            f"{self.path} has samples of other {what}.",
            "Choose another --data, or give the same models, options and problems as before; "
            "more problems may follow those.",
        )

    def _damaged(self, file: Path) -> EngineError:
        return EngineError(
            Trouble.USAGE,
            f"{file} is damaged or missing.",
            "Collect the samples again in another folder: sapwood probe collect --data FOLDER",
        )

    def _features(self, problem: int) -> Path:
        return self.path / "features" / f"{problem:06d}.npz"


def _joined(parts: list[tuple[np.ndarray, list[float], int, list[bool]]]) -> Samples:
    return Samples(
        np.concatenate([means for means, _, _, _ in parts]).astype(np.float32),
        np.array([share for _, shares, _, _ in parts for share in shares], np.float32),
        np.concatenate([np.full(len(shares), problem) for _, shares, problem, _ in parts]),
        np.array([drafted for _, _, _, flags in parts for drafted in flags]),
    )


def _line(what: Context | Labelled) -> bytes:
    return msgspec.json.encode(what) + b"\n"


def _replace(path: Path, content: bytes) -> None:
    part = path.with_suffix(".part")
    part.write_bytes(content)
    part.replace(path)


def _lines(path: Path) -> list[bytes]:
    """Whole lines; one that was cut off is left out."""
    try:
        return [line for line in path.read_bytes().split(b"\n")[:-1] if line]
    except (FileNotFoundError, NotADirectoryError):
        return []
