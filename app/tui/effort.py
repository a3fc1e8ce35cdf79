"""How much work a question is worth, and the request that makes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from app.options import DEMONSTRATION
from engine.protocol import Sampling, Search, SolveRequest


class Effort(Enum):
    """The choice beside the composer. The value is the number of paths."""

    QUICK = 1
    THINK = 8
    DEEP = 32

    @property
    def label(self) -> str:
        return self.name.lower()

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
    """The models that answer. Without a verifier, paths are not guided but vote."""

    generator: str = DEMONSTRATION
    verifier: str | None = DEMONSTRATION
    prm_format: str | None = None

    @property
    def label(self) -> str:
        if self.verifier is None or self.verifier == self.generator:
            return self.generator
        return f"{self.generator} + {self.verifier}"

    def request(self, problem: str, effort: Effort, *, seed: int = 0) -> SolveRequest:
        """What to ask the engine."""
        if effort is Effort.QUICK:
            return SolveRequest(
                problem=problem,
                generator=self.generator,
                search=Search(policy="greedy", n=1, width=1),
                sampling=Sampling(temperature=0.0),
                seed=seed,
            )
        return SolveRequest(
            problem=problem,
            generator=self.generator,
            verifier=self.verifier,
            prm_format=self.prm_format,
            search=Search(policy="beam" if self.verifier else "majority", n=effort.value, width=4),
            seed=seed,
        )
