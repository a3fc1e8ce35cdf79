"""The options of `sapwood solve`, and the request they make."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from app.presets import filled, preset_option

if TYPE_CHECKING:
    from engine.protocol import Drafting, SolveRequest

DEMONSTRATION = "seedling"
"""The embedded pair, generator and verifier in one."""

UNGUIDED = ("greedy", "majority")
GUIDED = ("best-of-n", "weighted", "beam", "dvts", "dynamic", "vg")
CACHES = ("f16", "q8_0", "q4_0")

MOST_PATHS = 256
"""Paths that a search can have in flight."""

_F = TypeVar("_F", bound=Callable[..., Any])


class Number(click.FloatRange):
    """A finite number in a range; `nan` is in none."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


class Size(click.ParamType):
    """A size in bytes, written as 6G or 900M."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        from engine.client.planning import parse_size

        try:
            return parse_size(value)
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)


_OPTIONS = (
    preset_option,
    click.option("--generator", metavar="MODEL", help="Writes the steps. Catalogue id or path."),
    click.option("--verifier", metavar="MODEL", help="Scores the steps. Catalogue id or path."),
    click.option("--draft", metavar="MODEL", help="Drafts steps for the generator to accept."),
    click.option(
        "--accept",
        type=click.Choice(("semantic", "tokens")),
        help="How drafts are accepted. Default: semantic, whole steps by their meaning, which is "
        "approximate; tokens is speculative decoding, which is not.",
    ),
    click.option("--probe", metavar="FOLDER", help="Predictors that semantic needs."),
    click.option(
        "--ahead",
        type=click.IntRange(1),
        help="Steps or tokens drafted before they are read. Default: 1 step, or 4 tokens.",
    ),
    click.option(
        "--floor", type=Number(0, 1), help="Least ratio at which a step is accepted. Default: 0."
    ),
    click.option("--rerank", metavar="MODEL", help="Judges what is found, in words, at the end."),
    click.option(
        "--rerank-tokens", type=click.IntRange(1), help="Most tokens of a judgement. Default: 1024."
    ),
    click.option("--prm-format", metavar="NAME", help="Format of a verifier that is not known."),
    click.option(
        "--policy",
        type=click.Choice((*UNGUIDED, *GUIDED)),
        help="How paths are searched. Default: beam with a verifier, majority without.",
    ),
    click.option("--n", type=click.IntRange(1, MOST_PATHS), help="Paths in flight. Default: 8."),
    click.option("--width", type=click.IntRange(1), help="Children of a survivor. Default: 4."),
    click.option("--max-steps", type=click.IntRange(1), help="Most steps of a path. Default: 40."),
    click.option(
        "--step-tokens", type=click.IntRange(1), help="Most tokens of a step. Default: 512."
    ),
    click.option(
        "--aggregate",
        type=click.Choice(("last", "min", "prod", "mean")),
        help="Makes one score of those of a path. Default: last.",
    ),
    click.option(
        "--choose",
        type=click.Choice(("best", "majority", "weighted", "first")),
        help="How the answer is chosen. Default: as the policy does.",
    ),
    click.option(
        "--mode",
        type=click.Choice(("exact", "baseline", "fasttts", "specscale")),
        help="How the search is run. Default: exact, the fastest way that changes nothing; "
        "fasttts and specscale are approximate, baseline is the plain loop.",
    ),
    click.option("--temperature", type=Number(0), help="0 takes the likeliest. Default: 0.8."),
    click.option("--top-p", type=Number(0, 1, min_open=True), help="Default: 1, no limit."),
    click.option("--top-k", type=click.IntRange(0), help="Default: 0, no limit."),
    click.option("--min-p", type=Number(0, 1), help="Default: 0, no limit."),
    click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Default: 0."),
    click.option("--context", type=click.IntRange(1), help="Longest path in tokens."),
    click.option("--cache", type=click.Choice(CACHES), help="Values of the caches. Default: f16."),
    click.option("--budget", type=Size(), metavar="SIZE", help="Memory to use, 6G for example."),
    click.option("--force", is_flag=True, default=None, help="Go on though the models do not fit."),
)


def request_options(command: _F) -> _F:
    """Add the options that say how to solve."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def request_from(problem: str, options: dict[str, Any]) -> SolveRequest:
    """The request for a problem; what was not given is as a preset that was says, or keeps its
    default.

    The demonstration pair comes with its verifier. Other generators have none unless it is
    named, and are then searched without one.

    Raises:
        CommandError: there is no such preset, or a model of it is not here.
    """
    from engine.protocol import Sampling, Search, SolveRequest

    given = {name: value for name, value in options.items() if value is not None}
    given = filled(given, to_run=True)
    generator = given.pop("generator", DEMONSTRATION)
    verifier = given.pop("verifier", None)
    policy = given.pop("policy", None)
    if verifier is None and generator == DEMONSTRATION and policy not in UNGUIDED:
        verifier = DEMONSTRATION
    if policy is None:
        policy = "beam" if verifier else "majority"

    def take(kind: type[Search] | type[Sampling]) -> dict[str, Any]:
        return {name: given.pop(name) for name in kind.__struct_fields__ if name in given}

    drafting = _drafting(given)
    return SolveRequest(
        problem=problem,
        drafting=drafting,
        generator=generator,
        verifier=verifier,
        search=Search(policy=policy, **take(Search)),
        sampling=Sampling(**take(Sampling)),
        **given,
    )


def _drafting(given: dict[str, Any]) -> Drafting | None:
    """How steps are drafted, taken out of the options."""
    from engine.protocol import Drafting

    found = {name: given.pop(name) for name in Drafting.__struct_fields__ if name in given}
    if found and "draft" not in found:
        raise click.UsageError(f"--{next(iter(found))} means nothing without --draft.")
    if found.get("accept") == "tokens":
        for name in ("probe", "floor"):
            if name in found:
                raise click.UsageError(f"--{name} means nothing with --accept tokens.")
    return Drafting(**found) if found else None
