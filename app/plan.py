"""`sapwood plan`: how two models would share the memory, before anything is loaded."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from app import output
from app.errors import CommandError
from app.exit_codes import ExitCode
from app.options import CACHES, Size
from app.printable import one_line

if TYPE_CHECKING:
    from engine.client.planning import Option, Planned


@click.command()
@click.option("--generator", metavar="MODEL", default="seedling", help="Catalogue id or path.")
@click.option("--verifier", metavar="MODEL", help="Catalogue id or path.")
@click.option("--n", type=click.IntRange(1), default=8, help="Paths in flight. Default: 8.")
@click.option("--width", type=click.IntRange(1), default=4, help="Children of a survivor.")
@click.option("--context", type=click.IntRange(16), default=2048, help="Tokens of a path.")
@click.option("--gpu", metavar="NAME", help="Plan for another device, 'RTX 4070 Ti' for example.")
@click.option("--cache", type=click.Choice(CACHES), default="f16", help="Values of the caches.")
@click.option(
    "--budget",
    type=Size(),
    metavar="SIZE",
    help="Memory to use, 6G for example. Default: the free.",
)
@click.option("--json", "as_json", is_flag=True, help="Write the plan as a JSON object.")
def plan(
    generator: str,
    verifier: str | None,
    n: int,
    width: int,
    context: int,
    cache: str,
    gpu: str | None,
    budget: int | None,
    as_json: bool,
) -> ExitCode:
    """Show how two models would share the memory, and why.

    Nothing is loaded: sizes are estimates from the models' own files, times are lower bounds.
    """
    from app.outcome import engine_errors
    from engine.client.planning import CacheType, Job, plan_for

    job = Job(n=n, width=width, context=context, cache=CacheType(cache))
    with engine_errors():
        found = plan_for(generator, verifier, job, gpu=gpu, limit=budget)
    if as_json:
        output.data(json.dumps(asdict(found) | {"estimate": True}) + "\n")
    else:
        output.data("\n".join(_lines(found)) + "\n")
    if found.plan.chosen is None:
        message, advice = found.plan.refusal
        raise CommandError(ExitCode.MEMORY, f"{message} {advice}")
    return ExitCode.OK


def _lines(found: Planned) -> list[str]:
    from engine.client.planning import size_text

    plan = found.plan
    device, job = plan.budget.device, plan.job
    names = [one_line(m.name or "generator") for m in (found.generator, found.verifier) if m]
    lines = [
        f"{' + '.join(names)}, n {job.n}, context {job.context:,}, cache {job.cache.value}",
        f"{size_text(plan.budget.bytes)} of {device.name} may be used "
        f"({size_text(device.free)} of {size_text(device.total)} are free)",
    ]
    if found.note:
        lines.append(found.note)
    if plan.options:
        lines += ["", *_table(plan.options), "", _LEGEND]
    return lines


_LEGEND = (
    "The first is taken. Sizes are estimates, not measurements; times are what bandwidth and\n"
    "peak rates allow at best."
)


def _table(options: tuple[Option, ...]) -> list[str]:
    from engine.client.planning import size_text

    rows = [("", "strategy", "memory", "time", "n", "context", "generator", "verifier")]
    for place, option in enumerate(options):
        verifier = option.verifier
        rows.append(
            (
                "*" if place == 0 else "",
                option.strategy.value,
                size_text(option.bytes),
                _time(option.seconds),
                str(option.job.n),
                f"{option.job.context:,}",
                f"{option.generator.paths} paths",
                f"{verifier.paths} paths" if verifier else "none",
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    for place, option in reversed(list(enumerate(options))):
        lines.insert(place + 2, f"   {option.why}")
    return lines


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
