"""`--preset`: the options that a preset of the catalogue stands for."""

from __future__ import annotations

from typing import Any

import click

preset_option = click.option(
    "--preset",
    metavar="NAME",
    help="Models, n, width, context and cache of a preset, for what is not given; 'auto' takes the "
    "one for the memory that is free now.",
)


def filled(given: dict[str, Any], *, to_run: bool) -> dict[str, Any]:
    """What was given, and for the rest what the preset among it says.

    Args:
        to_run: its models have to be on this machine.

    Raises:
        CommandError: there is no such preset, or a model of it is not here.
    """
    name = given.pop("preset", None)
    if name is None:
        return given
    from app.outcome import engine_errors
    from engine.client.presets import preset, refuse_missing

    with engine_errors():
        name, found = preset(name)
        says: dict[str, Any] = {
            "generator": found.generator,
            "verifier": found.verifier,
            "cache": found.cache.value,
            "n": found.n,
            "width": found.width,
            "context": found.context,
        }
        taken = {key: value for key, value in says.items() if value is not None} | given
        if to_run:
            refuse_missing(name, taken["generator"], taken.get("verifier"))
    return taken
