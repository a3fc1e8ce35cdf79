"""`sapwood plan`: how two models would share the memory, before anything is loaded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from app import output
from app.errors import CommandError
from app.exit_codes import ExitCode
from app.options import CACHES, DEMONSTRATION, MOST_PATHS, Size
from app.presets import filled, preset_option
from app.printable import one_line

if TYPE_CHECKING:
    from engine.client.planning import Option, Planned


@click.command()
@preset_option
@click.option("--generator", metavar="MODEL", help="Catalogue id or path.")
@click.option("--verifier", metavar="MODEL", help="Catalogue id or path.")
@click.option("--draft", metavar="MODEL", help="A model that drafts for the generator.")
@click.option("--n", type=click.IntRange(1, MOST_PATHS), help="Paths in flight. Default: 8.")
@click.option("--width", type=click.IntRange(1), help="Children of a survivor. Default: 4.")
@click.option("--context", type=click.IntRange(16), help="Tokens of a path. Default: 2048.")
@click.option("--gpu", metavar="NAME", help="Plan for another device, 'RTX 4070 Ti' for example.")
@click.option("--cache", type=click.Choice(CACHES), help="Values of the caches. Default: f16.")
@click.option(
    "--budget",
    type=Size(),
    metavar="SIZE",
    help="Memory to use, 6G for example. Default: the free.",
)
@click.option("--json", "as_json", is_flag=True, help="Write the plan as a JSON object.")
def plan(
    gpu: str | None,
    budget: int | None,
    as_json: bool,
    **options: Any,
) -> ExitCode:
    """Show how two models would share the memory, and why.

    Without further options it is the embedded pair, as 'sapwood solve' takes it; a generator alone
    is planned without a verifier. Nothing is loaded: sizes are estimates from the models' own
    files, times are those of paths of full length at the best rates of the device.
    """
    from app.outcome import engine_errors
    from engine.client.planning import CacheType, Job, plan_for

    given = {name: value for name, value in options.items() if value is not None}
    preset = given.get("preset")
    given = filled(given, to_run=False)
    generator = given.pop("generator", DEMONSTRATION)
    verifier = given.pop("verifier", DEMONSTRATION if generator == DEMONSTRATION else None)
    draft = given.pop("draft", None)
    asked = given.get("context")
    given["cache"] = CacheType(given.get("cache", CACHES[0]))
    job = Job(**given)
    with engine_errors(), _catalogue_besides(preset):
        found = plan_for(generator, verifier, job, gpu=gpu, limit=budget, draft=draft)
    if as_json:
        output.data(json.dumps(asdict(found) | {"estimate": True}) + "\n")
    else:
        output.data("\n".join(_lines(found, asked)) + "\n")
    if found.plan.chosen is None:
        message, advice = found.plan.refusal
        raise CommandError(ExitCode.MEMORY, f"{message} {advice}")
    return ExitCode.OK


@contextmanager
def _catalogue_besides(preset: str | None) -> Iterator[None]:
    """Where a model cannot be looked at, tell what the catalogue says that its preset needs.

    Raises:
        EngineError: the one that the plan raises.
    """
    from engine.client.planning import parse_size, size_text
    from engine.client.presets import preset as preset_named
    from engine.errors import EngineError
    from engine.protocol import Trouble

    try:
        yield
    except EngineError as error:
        if preset is None or error.trouble is not Trouble.MODEL:
            raise
        name, found = preset_named(preset)
        free = size_text(parse_size(found.free))
        says = f"By the catalogue, the preset {name} as it stands needs {free} of free memory."
        raise EngineError(error.trouble, f"{error.message} {says}", error.advice) from None


def _lines(found: Planned, asked: int | None) -> list[str]:
    """The plan for people.

    Args:
        asked: tokens of a path that were asked for, if any were.
    """
    from engine.client.planning import size_text

    plan = found.plan
    device, job = plan.budget.device, plan.job
    names = [one_line(m.name or "generator") for m in (found.generator, found.verifier) if m]
    lines = [
        f"{' + '.join(names)}, n {job.n}, context {job.context:,}, cache {job.cache.value}",
        f"{size_text(plan.budget.bytes)} of {device.name} may be used "
        f"({size_text(device.free)} of {size_text(device.total)} are free)",
    ]
    if asked is not None and job.context < asked:
        lines.append(
            f"Paths end at {job.context:,} tokens, not at {asked:,}: no more were these models "
            "made for."
        )
    if found.draft is not None:
        lines.append(
            f"{size_text(found.beside)} of it are the draft model's, "
            f"{one_line(found.draft.name or 'draft')}; the table counts the rest."
        )
    if found.note:
        lines.append(found.note)
    if plan.options:
        lines += ["", *_table(plan.options), "", _LEGEND]
    return lines


_LEGEND = (
    "The first is taken. Sizes are estimates, not measurements. Times are for all paths at full\n"
    "length, at the best rates of the device: for comparing plans. A run whose paths end earlier\n"
    "takes less, and no device keeps up its best rates, so that it can take more as well."
)


def _table(options: tuple[Option, ...]) -> list[str]:
    from engine.client.planning import size_text

    rows = [("", "strategy", "memory", "full length", "n", "context", "generator", "verifier")]
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
