"""Search policies: which steps to write next, as functions of the tree and its scores alone.

`build` makes a policy by name; `engine.search.policy` says what it is asked and what it answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from engine.search.aggregate import AGGREGATES, Aggregate, aggregate
from engine.search.beam import Beam
from engine.search.dvts import DiverseTrees
from engine.search.dynamic import DynamicBranching
from engine.search.granular import VaryingGranularity
from engine.search.independent import Independent
from engine.search.policy import Policy

__all__ = ["AGGREGATES", "CHOICES", "POLICIES", "SearchError", "aggregate", "build"]

MAX_PATHS = 256
"""The most paths the field's own experiments use."""

POLICIES: Mapping[str, str] = {
    "greedy": "One path, always the likeliest token.",
    "best-of-n": "n independent paths; the verifier's favourite is the answer.",
    "majority": "n independent paths; the commonest answer wins.",
    "weighted": "n independent paths; each votes with the verifier's score.",
    "beam": "n paths; after each step the best n/width go on with width children each.",
    "dvts": "n/width independent trees; each follows the best of width next steps.",
    "dynamic": "Beam search that gives better paths more children.",
    "vg": "Beam search with short first steps, so that mistakes are cut early.",
}

CHOICES: Mapping[str, Literal["first", "best", "majority", "weighted"]] = {
    "greedy": "first",
    "best-of-n": "best",
    "majority": "majority",
    "weighted": "weighted",
    "beam": "weighted",
    "dvts": "weighted",
    "dynamic": "weighted",
    "vg": "weighted",
}
"""How each policy's answer is chosen from its completions unless the user says otherwise."""

_INDEPENDENT = frozenset({"greedy", "best-of-n", "majority", "weighted"})


class SearchError(ValueError):
    """The search cannot be set up as asked; the message says why, for the user."""


def build(
    name: str,
    *,
    n: int,
    width: int = 4,
    max_steps: int = 40,
    aggregate: Aggregate = "last",
    filter_duplicates: bool = True,
    sort_completed: bool = False,
    step_tokens: int = 512,
) -> Policy:
    """The policy `name` (a key of `POLICIES`).

    Args:
        n: paths in flight, 1 to 256; `greedy` has one whatever is asked.
        width: children of each survivor; independent paths have none and ignore it.
        max_steps: rounds; the last one writes to the end of the solution.
        aggregate: how step scores rank paths.
        filter_duplicates: beam search drops unfinished paths that repeat another's text.
        sort_completed: beam search gives its best completions instead of its first.
        step_tokens: the request's cap on the tokens of a step; `vg` tightens it at first.

    Raises:
        SearchError: the numbers do not fit together or a name is unknown.
    """
    if name not in POLICIES:
        raise SearchError(f"There is no policy {name!r}; there are {', '.join(POLICIES)}.")
    if aggregate not in AGGREGATES:
        raise SearchError(f"There is no aggregate {aggregate!r}; use {', '.join(AGGREGATES)}.")
    if not 1 <= n <= MAX_PATHS:
        raise SearchError(f"n must be from 1 to {MAX_PATHS}, not {n}.")
    if max_steps < 1:
        raise SearchError(f"max_steps must be at least 1, not {max_steps}.")
    if step_tokens < 1:
        raise SearchError(f"step_tokens must be at least 1, not {step_tokens}.")

    if name not in _INDEPENDENT:
        _check_width(name, n, width)

    beam = (n, width, max_steps, aggregate, filter_duplicates, sort_completed)
    match name:
        case "greedy":
            return Independent(1, max_steps, guided=False)
        case "majority":
            return Independent(n, max_steps, guided=False)
        case "best-of-n" | "weighted":
            return Independent(n, max_steps, guided=True)
        case "dvts":
            return DiverseTrees(n, width, max_steps, aggregate)
        case "dynamic":
            return DynamicBranching(*beam)
        case "vg":
            return VaryingGranularity(*beam, step_tokens)
        case _:
            return Beam(*beam)


def _check_width(name: str, n: int, width: int) -> None:
    if width < 1:
        raise SearchError(f"width must be at least 1, not {width}.")
    if n < width:
        raise SearchError(
            f"{name} needs at least as many paths as its width: {n} < {width}; lower "
            f"the width to {n} or raise n."
        )
    if name == "dvts" and n % width:
        raise SearchError(f"dvts needs n to be a multiple of its width: {n} is not one of {width}.")
