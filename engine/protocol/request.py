"""What a client asks for."""

from __future__ import annotations

from typing import Literal

import msgspec

VERSION = 1
"""Version of the schema; raised when a reader of the old one would misread the new one."""


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """How the next token is drawn. Filters apply in the order top-k, top-p, min-p."""

    temperature: float = 0.8
    """0 takes the likeliest token."""
    top_p: float = 1.0
    top_k: int = 0
    """0 is no limit."""
    min_p: float = 0.0


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """Which paths are grown and how the answer is chosen."""

    policy: str = "beam"
    n: int = 8
    """Paths in flight."""
    width: int = 4
    """Children of each survivor (m)."""
    max_steps: int = 40
    step_tokens: int = 512
    """Cap on the tokens of one step."""
    aggregate: Literal["last", "min", "prod", "mean"] = "last"
    choose: Literal["best", "majority", "weighted", "first"] | None = None
    """None takes the policy's own way."""
    mode: Literal["exact", "baseline", "fasttts", "specscale"] = "exact"
    """How the search is run. `exact` changes nothing of what it finds; `fasttts` and `specscale`
    are those papers' own ways and approximate, `baseline` is the plain loop, to compare with."""


class Drafting(msgspec.Struct, frozen=True, kw_only=True):
    """A model that drafts steps, which the generator reads and accepts or writes again."""

    draft: str
    """Catalogue id or path of a smaller model with the same tokens."""
    accept: Literal["semantic", "tokens"] = "semantic"
    """`semantic` accepts whole steps by their meaning, and is approximate. `tokens` is speculative
    decoding: what is found is distributed as if the generator wrote alone."""
    probe: str | None = None
    """Folder with the two predictors that `semantic` needs; None takes what is shipped for the two
    models."""
    ahead: int | None = None
    """What is drafted before the generator reads: steps, 1 by default, or tokens, 4 by default.
    More than one step only where a node holds several."""
    floor: float = 0.0
    """Least ratio of the two probabilities with which a step may be accepted."""


class SolveRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One problem to solve."""

    problem: str
    expected: str | None = None
    """The known answer, to be compared with the one found; it never guides the search."""
    generator: str = "seedling"
    """Catalogue id or path of a GGUF file."""
    verifier: str | None = None
    """Catalogue id or path; None when the policy needs none."""
    prm_format: str | None = None
    """Name of the verifier's format, for a file whose format is not known."""
    drafting: Drafting | None = None
    rerank: str | None = None
    """Catalogue id or path of a model that judges the completed solutions in words at the end."""
    rerank_tokens: int = 1024
    """Tokens that one judgement may have."""
    search: Search = Search()
    sampling: Sampling = Sampling()
    seed: int = 0
    context: int | None = None
    """Longest path in tokens; None takes the smaller of the models' own and 2048."""
    cache: Literal["f16", "q8_0", "q4_0"] = "f16"
    """How the values of both models' caches are stored."""
    budget: int | None = None
    """Bytes that both models may take in all; None takes what is free, less a margin."""
    force: bool = False
    """Go on where the plan says that the models do not fit."""
    time_limit: float | None = None
    """Seconds after which the best answer so far is given."""
    log: str | None = None
    """Path of the run log; None writes none."""
    resume: bool = False
    """Go on from what `log` already holds."""


class ScoreRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One solution whose steps are to be scored."""

    problem: str
    steps: tuple[str, ...]
    verifier: str = "seedling"
    """Catalogue id or path."""
    prm_format: str | None = None
    """Name of the verifier's format, for a file whose format is not known."""
    context: int | None = None
    """Longest solution in tokens, problem included; None takes the smaller of the model's own and
    4096."""


def split_steps(solution: str) -> tuple[str, ...]:
    """The steps of a solution as a search sees them: what stands between blank lines."""
    parts = solution.replace("\r\n", "\n").split("\n\n")
    return tuple(step.strip() for step in parts if step.strip())
