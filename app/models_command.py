"""`sapwood models`: the models that are known, and having them on this machine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from app import output
from app.exit_codes import ExitCode
from app.models_convert import convert
from app.printable import one_line

if TYPE_CHECKING:
    from engine.client.models import Model, Suggestion

_json = click.option("--json", "as_json", is_flag=True, help="Write a JSON object a line.")
_id = click.argument("id", metavar="MODEL")
_ids = click.argument("ids", metavar="MODEL...", nargs=-1, required=True)


@click.group(invoke_without_command=True)
@click.pass_context
def models(context: click.Context) -> ExitCode | None:
    """The models Sapwood knows by name; without a further command, a list of them.

    Any other GGUF file can be used by its path.
    """
    return context.invoke(list_models) if context.invoked_subcommand is None else None


@models.command("list")
@_json
def list_models(as_json: bool = False) -> ExitCode:
    """List the models, and those that suit the memory that is free now."""
    from app.outcome import engine_errors
    from engine.client import models as known_models

    with engine_errors():
        found = known_models.known()
        suited = known_models.suggestion()
    if as_json:
        output.data("".join(json.dumps(_fields(model)) + "\n" for model in found))
        return ExitCode.OK
    output.data("".join(line + "\n" for line in _table(found)))
    output.narrate(_suggested(suited, found))
    return ExitCode.OK


@models.command()
@_id
@_json
def show(id: str, as_json: bool) -> ExitCode:
    """Show all that is known of a model."""
    from app.outcome import engine_errors
    from engine.client.models import named

    with engine_errors():
        found = named(id)
    for model in found:
        fields = _fields(model)
        if as_json:
            output.data(json.dumps(fields) + "\n")
            continue
        shown = {name: value for name, value in fields.items() if value not in (None, "")}
        lines = (f"{name:<11} {one_line(_text(name, value))}" for name, value in shown.items())
        output.data("\n".join(lines) + "\n\n")
    return ExitCode.OK


@models.command()
@_ids
@click.option("--force", is_flag=True, help="Download it though it does not fit into memory.")
@_json
def pull(ids: tuple[str, ...], force: bool, as_json: bool) -> ExitCode:
    """Download models, going on from where an earlier download stopped.

    Each is checked against the checksum of the hub. A model that this machine has no memory for
    is refused before it is downloaded. Ctrl-C stops at once and keeps what came.
    """
    import asyncio

    from app.outcome import engine_errors
    from app.pulling import pull_models
    from engine.client.models import named

    with engine_errors():
        wanted = [model for id in ids for model in named(id)]
        return asyncio.run(pull_models(wanted, force=force, as_json=as_json))


@models.command()
@click.argument("ids", metavar="[MODEL]...", nargs=-1)
@_json
def verify(ids: tuple[str, ...], as_json: bool) -> ExitCode:
    """Compare the files of models, or of all that are here, with the hub's checksums."""
    from app.outcome import engine_errors
    from app.pulling import verify_models
    from engine.client.models import known, named

    with engine_errors():
        chosen = [model for id in ids for model in named(id)] if ids else known()
        return verify_models([m for m in chosen if ids or m.path], as_json=as_json)


@models.command()
@_ids
def remove(ids: tuple[str, ...]) -> ExitCode:
    """Delete what was downloaded of models; other programs' files stay."""
    from app.outcome import engine_errors
    from engine.client import models as known_models
    from engine.client.planning import size_text

    with engine_errors():
        for model in [model for id in ids for model in known_models.named(id)]:
            freed = known_models.remove(model)
            told = f"Removed {model.id}, {size_text(freed)}." if freed else "Nothing was there."
            output.narrate(told)
    return ExitCode.OK


@models.command()
@_json
def where(as_json: bool) -> ExitCode:
    """Tell the folders of models and run logs, and the file for entries of your own."""
    from dataclasses import asdict

    from engine.client.models import places

    found = asdict(places())
    if as_json:
        output.data(json.dumps(found, default=str) + "\n")
    else:
        output.data("".join(f"{name:<9}  {one_line(str(p))}\n" for name, p in found.items()))
    return ExitCode.OK


models.add_command(convert)


def _fields(model: Model) -> dict[str, Any]:
    """What is known of a model, with the names that `--json` gives."""
    entry = model.entry
    return {
        "id": model.id,
        "role": model.role,
        "state": model.state.value,
        "bytes": model.bytes,
        "path": None if model.path is None else str(model.path),
        "file": entry.file,
        "repository": model.repository,
        "licence": entry.licence,
        "family": entry.family,
        "context": entry.context,
        "format": entry.format,
        "about": entry.about,
    }


def _text(name: str, value: Any) -> str:
    from engine.client.planning import size_text

    return size_text(value) if name == "bytes" else str(value)


def _table(found: list[Model]) -> list[str]:
    from engine.client.planning import size_text

    rows = [("model", "role", "state", "size", "licence")]
    rows += [
        (
            one_line(model.id),
            model.role,
            model.state.value,
            "" if model.bytes is None else size_text(model.bytes),
            one_line(model.entry.licence),
        )
        for model in found
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def _suggested(suited: Suggestion | None, found: list[Model]) -> str:
    from engine.client.models import State
    from engine.client.planning import parse_size, size_text

    if suited is None:
        return "Too little memory is free for any preset; the seedling always runs."
    preset = suited.preset
    pair = [id for id in (preset.generator, preset.verifier) if id is not None]
    away = [m.id for m in found if m.id in pair and m.state in (State.REMOTE, State.PARTLY)]
    said = (
        f"{size_text(suited.device.free)} of {suited.device.name} are free, as measured now; the "
        f"preset {suited.name} needs {size_text(parse_size(preset.free))}: {' + '.join(pair)}, "
        f"n {preset.n}, context {preset.context:,}, cache {preset.cache.value}."
    )
    use = f"use it with: sapwood solve --preset {suited.name}"
    if away:
        return f"{said} Get it with: sapwood models pull {' '.join(away)}; {use}"
    return f"{said} {use[0].upper()}{use[1:]}"
