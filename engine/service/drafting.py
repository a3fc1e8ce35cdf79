"""What a run needs so that a second model drafts its steps."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import cast

from engine import catalogue
from engine.errors import EngineError
from engine.models.base import StatesModel
from engine.protocol.events import Trouble, Warned
from engine.protocol.request import Drafting, SolveRequest
from engine.scheduling.paired import Drafter
from engine.scheduling.settings import Mode
from engine.semantic.acceptance import Acceptance
from engine.semantic.features import all_layers
from engine.semantic.judges import ByMeaning, ByTokens, Judging
from engine.semantic.opening import check_same_files, check_same_vocabulary, check_two_models
from engine.semantic.predictors import Predictor, Role, Subject, digest_of, feature_in, load
from engine.semantic.shipped import shipped_probe
from engine.service.planning import Ask
from engine.service.shared import Shared

OUTPUTS = 64
"""Positions of a batch at which a generator reads drafts."""
_TOKENS = 4


def with_draft(ask: Ask, request: SolveRequest) -> Ask:
    """What is asked of the models, the draft model being one of them.

    Raises:
        EngineError: there is no such model, it cannot draft for the generator, or there are no
            predictors for the two.
    """
    drafting = request.drafting
    if drafting is None:
        return ask
    draft = catalogue.generator_file(drafting.draft)
    check_two_models(draft, ask.generator)
    try:
        inside = drafting.accept == "semantic" and all_layers(
            feature_in(_file(_probe(drafting, draft, ask.generator), "target"))
        )
    except EngineError:
        check_same_files(draft, ask.generator)  # no predictors would help against that
        raise
    outputs = max(ask.job.outputs, OUTPUTS)
    job = replace(ask.job, outputs=outputs)
    return replace(ask, job=job, draft=draft, all_layers=inside)


def drafter(request: SolveRequest, shared: Shared, ask: Ask) -> Drafter | None:
    """The part of a search that drafts.

    Raises:
        EngineError: the models have other tokens, or the predictors are other models'.
    """
    drafting = request.drafting
    if drafting is None:
        return None
    assert ask.draft is not None
    assert shared.draft_cache is not None
    draft, target = shared.draft_cache.model, shared.models.generator
    check_same_vocabulary(draft.vocabulary, target.vocabulary)
    judging: Judging
    if drafting.accept == "tokens":
        judging = ByTokens(drafting.ahead or _TOKENS)
    else:
        folder = _probe(drafting, ask.draft, ask.generator)
        small = _load(folder, "draft", ask.draft, draft)
        large = _load(folder, "target", ask.generator, target)
        if small.feature != large.feature:
            raise EngineError(
                Trouble.MODEL,
                f"The predictors in {folder} do not belong together: one reads {small.feature}, "
                f"the other {large.feature}.",
                "Name the folder of a pair as it was trained.",
            )
        rule = Acceptance(drafting.ahead or 1, drafting.floor)
        judging = ByMeaning(small.feature, small, large, rule)
    return Drafter(cast(StatesModel, draft), shared.draft_cache, judging)


def paired(mode: Mode) -> Mode:
    """The mode without what two models that write do not do: each path is written by itself, and
    nothing before it is decided."""
    how = replace(mode.mechanisms, drafts=False, deduplicate=False, early_scores=False)
    return replace(mode, mechanisms=how)


def approximate(drafting: Drafting) -> Warned | None:
    """What the user should know of a search with drafts."""
    if drafting.accept == "tokens":
        return None
    return Warned(
        code="approximate",
        message="Drafted steps are accepted by their meaning, which is approximate: what is found "
        "need not be what the generator would find alone. With --accept tokens it is distributed "
        "as if it wrote alone.",
    )


def _probe(drafting: Drafting, draft: Path, target: Path) -> Path:
    if drafting.probe is not None:
        return Path(drafting.probe).expanduser()
    if (shipped := shipped_probe(draft, target)) is not None:
        return shipped
    raise EngineError(
        Trouble.USAGE,
        "Steps can be accepted by their meaning only with predictors trained for the two models, "
        "and none are named.",
        "Name their folder with --probe (sapwood probe --help tells how they are made), or use "
        "--accept tokens, which needs none.",
    )


def _file(folder: Path, role: Role) -> Path:
    return folder / f"{role}.safetensors"


def _load(folder: Path, role: Role, path: Path, model: object) -> Predictor:
    states = cast(StatesModel, model)
    about = path.stat()
    digest = _digest(path, about.st_size, about.st_mtime_ns)
    subject = Subject(digest, states.name, states.depth, states.width)
    return load(_file(folder, role), role, subject)


@lru_cache(maxsize=8)
def _digest(path: Path, size: int, changed: int) -> str:
    """Kept while the file stays as it is: a large one takes seconds."""
    return digest_of(path)
