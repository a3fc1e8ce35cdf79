"""`sapwood doctor`: a report of the machine that can be pasted anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app import output
from app.exit_codes import ExitCode
from app.printable import one_line, printable

if TYPE_CHECKING:
    from engine.client.machine import Machine, SelfTest


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Write the report as a JSON object.")
def doctor(as_json: bool) -> ExitCode:
    """Look at this machine, try the engine for five seconds, and say what could be better.

    The report has no private data: the home folder is shown as ~.
    """
    import asyncio

    from engine.client.machine import describe, self_test

    machine = describe()
    test = asyncio.run(self_test())
    if as_json:
        report = {"machine": asdict(machine), "self_test": asdict(test)}
        text = json.dumps(report, default=_plain) + "\n"
    else:
        text = "".join(line + "\n" for line in _lines(machine, test))
    output.data(printable(_without_home(text)))
    return ExitCode.ENGINE if test.problem or machine.engine.problem else ExitCode.OK


def _without_home(text: str) -> str:
    home = str(Path.home())
    escaped = json.dumps(home)[1:-1]  # as it stands in JSON, where \\ is doubled
    return text.replace(escaped, "~").replace(home, "~")


def _plain(value: object) -> object:
    """What JSON has no word for: paths, and msgspec's structures."""
    import msgspec

    return str(value) if isinstance(value, Path) else msgspec.to_builtins(value)


def _lines(machine: Machine, test: SelfTest) -> Iterator[str]:
    from engine.client.planning import size_text

    engine, driver = machine.engine, machine.nvidia
    yield f"system     {machine.system}, Python {machine.python}"
    yield (
        f"memory     {size_text(machine.ram.free)} of {size_text(machine.ram.total)} "
        f"{machine.ram.name} free"
    )
    yield f"processor  {machine.cores} cores, {engine.threads} used for computing"
    for gpu in driver.gpus:
        yield (
            f"gpu        {gpu.name}, {size_text(gpu.free)} of {size_text(gpu.total)} free, "
            f"driver {driver.driver}"
        )
    if driver.problem:
        yield f"gpu        no NVIDIA GPU: {driver.problem}"
    if engine.problem:
        yield f"llama.cpp  {engine.problem}"
    else:
        kind = "can use a GPU" if engine.gpu else "processor only"
        yield f"llama.cpp  llama-cpp-python {engine.version}, {kind}"
        for device in engine.devices:
            memory = f"{size_text(device.free)} of {size_text(device.total)} free"
            yield f"           {device.name}: {one_line(device.description)}, {memory}"
        yield f"           {engine.system}"
    for model in machine.models:
        if model.bytes is not None:
            yield f"model      {one_line(model.id)} ({model.role}): {size_text(model.bytes)}"
    away = sum(model.bytes is None for model in machine.models)
    if away:
        yield f"           {away} more are known and not here: see 'sapwood models'"
    free = "unknown" if machine.disk_free is None else size_text(machine.disk_free)
    yield f"disk       {free} free for {machine.data}"
    if test.problem:
        yield f"self-test  failed after {test.seconds:.1f} s: {test.problem}"
    else:
        yield (
            f"self-test  answer {one_line(test.answer)[:40] or 'none'}, {test.tokens} tokens in "
            f"{test.seconds:.1f} s, the start of the engine included"
        )
    yield from (f"! {line}" for line in machine.advice)
