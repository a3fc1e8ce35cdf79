"""How much work a question is worth, and the request that makes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Literal

from app.options import DEMONSTRATION, MOST_PATHS
from engine.protocol import Drafting, Sampling, Search, SolveRequest

Cache = Literal["f16", "q8_0", "q4_0"]


class Effort(Enum):
    """The choice beside the composer."""

    QUICK = "quick"
    """One path."""
    THINK = "think"
    """As many paths as suit the models and the machine."""
    DEEP = "deep"
    """Four times as many."""

    @property
    def label(self) -> str:
        return self.value

    @classmethod
    def named(cls, label: str) -> Effort:
        """The effort of that label; think for any other."""
        return next((effort for effort in cls if effort.label == label), cls.THINK)

    @property
    def next(self) -> Effort:
        efforts = list(Effort)
        return efforts[(efforts.index(self) + 1) % len(efforts)]


@dataclass(frozen=True, slots=True)
class Models:
    """The models that answer, and how. Without a verifier, paths are not guided but vote."""

    generator: str = DEMONSTRATION
    verifier: str | None = DEMONSTRATION
    prm_format: str | None = None
    n: int = 8
    """Paths of a question that is to be thought about."""
    width: int = 4
    context: int | None = None
    """Tokens of the longest path; None is the engine's own choice."""
    cache: Cache = "f16"
    """How the values of the caches are stored."""
    rerank: str | None = None
    """What judges the solutions of more than one path at the end."""
    draft: str | None = None
    """What drafts steps for the generator."""
    accept: Literal["semantic", "tokens"] = "tokens"
    """How drafts are accepted."""
    preset: str = field(default="", compare=False)
    """The preset of the catalogue that this is as it stands there."""

    @property
    def label(self) -> str:
        return label_of(self.request("", Effort.THINK))

    @property
    def drafting(self) -> Drafting | None:
        return Drafting(draft=self.draft, accept=self.accept) if self.draft else None

    @property
    def alone(self) -> Models:
        """The generator without a verifier."""
        return replace(self, verifier=None, prm_format=None, preset="")

    def paths(self, effort: Effort) -> int:
        """How many paths a question of that effort has in flight."""
        match effort:
            case Effort.QUICK:
                return 1
            case Effort.THINK:
                return self.n
            case Effort.DEEP:
                return min(MOST_PATHS, 4 * self.n)

    def request(self, problem: str, effort: Effort, *, seed: int = 0) -> SolveRequest:
        """What to ask the engine."""
        if effort is Effort.QUICK:
            return SolveRequest(
                problem=problem,
                generator=self.generator,
                drafting=self.drafting,
                search=Search(policy="greedy", n=1, width=1),
                sampling=Sampling(temperature=0.0),
                seed=seed,
                context=self.context,
                cache=self.cache,
            )
        policy = "beam" if self.verifier else "majority"
        return SolveRequest(
            problem=problem,
            generator=self.generator,
            verifier=self.verifier,
            prm_format=self.prm_format,
            rerank=self.rerank,
            drafting=self.drafting,
            search=Search(policy=policy, n=self.paths(effort), width=self.width),
            seed=seed,
            context=self.context,
            cache=self.cache,
        )


def label_of(request: SolveRequest) -> str:
    """The models of a question, on one line."""
    label = request.generator
    if request.verifier not in (None, request.generator):
        label += f" + {request.verifier}"
    if request.drafting is not None:
        how = "meaning" if request.drafting.accept == "semantic" else "tokens"
        label += f", drafted by {request.drafting.draft} (by {how})"
    return label + (f", ranked by {request.rerank}" if request.rerank else "")
