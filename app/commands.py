"""The commands of `sapwood`. What a command needs is imported when it runs: help is quick."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from app import output
from app.chat_command import chat
from app.completion_command import completion
from app.doctor import doctor
from app.exit_codes import HELP, ExitCode
from app.export_command import export
from app.models_command import models
from app.options import Number, request_from, request_options
from app.plan import plan
from app.probe_command import probe
from app.score_command import score
from app.sessions_command import sessions

_EPILOG = "\b\n" + HELP
_FILE = click.Path(path_type=Path)


@click.group(
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
@click.option("--version", is_flag=True, is_eager=True, help="Show the version and exit.")
@click.pass_context
def sapwood(context: click.Context, version: bool) -> ExitCode | None:
    """Answer a problem by searching over steps of reasoning, on this machine.

    Without a command, on a terminal, the app opens. Data goes to standard output, everything else
    to standard error.
    """
    if version:
        output.data(f"sapwood {_version()}\n")
    elif context.invoked_subcommand is None:
        if _has_screen():
            from app.tui.start import open_app

            return open_app()
        output.data(context.get_help() + "\n")
    return None


@sapwood.command(epilog=_EPILOG)
@click.argument("problem", required=False)
@request_options
@click.option("--time-limit", type=Number(0, min_open=True), help="Seconds, then the best so far.")
@click.option("--trace", type=_FILE, metavar="FILE", help="Write the log of the run there.")
@click.option("--resume", type=_FILE, metavar="FILE", help="Go on with the run of this log.")
@click.option(
    "--file", "problems", type=_FILE, metavar="FILE", help="Problems, a JSON object a line."
)
@click.option(
    "--out", type=_FILE, metavar="FILE", help="Results of --file; goes on with what it has."
)
@click.option(
    "--at-once",
    type=click.IntRange(1, 16),
    help="Problems of --file that are solved side by side. Default: 1.",
)
@click.option("--json", "as_json", is_flag=True, help="Write the events, a JSON object a line.")
@click.option("--quiet", is_flag=True, help="Write the answer alone.")
def solve(
    problem: str | None,
    time_limit: float | None,
    trace: Path | None,
    resume: Path | None,
    problems: Path | None,
    out: Path | None,
    at_once: int | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> ExitCode:
    """Solve PROBLEM, or what standard input says where it is '-' or absent.

    Without further options the embedded demonstration model answers; it knows simple arithmetic
    stories. Every run is logged, so that it can be resumed and replayed.
    """
    from app.display import Display

    if as_json and quiet:
        raise click.UsageError("--json and --quiet exclude each other.")
    if out and not problems:
        raise click.UsageError("--out is for the results of --file.")
    if at_once and not problems:
        raise click.UsageError("--at-once is for the problems of --file.")
    if problems:
        _refuse(problem=problem, trace=trace, resume=resume, json=as_json, with_="--file")
        from app.batch import solve_file

        template = request_from("", options | {"time_limit": time_limit})
        return solve_file(template, problems, out, at_once=at_once or 1, quiet=quiet)

    from app.solve import resume_run, solve_one

    display = Display.JSON if as_json else Display.QUIET if quiet else Display.AUTO
    if resume:
        _refuse(problem=problem, trace=trace, **options, with_="--resume")
        return resume_run(resume, time_limit, display)
    text = _problem(problem)
    request = request_from(text, options | {"time_limit": time_limit})
    return solve_one(request, trace, display)


@sapwood.command()
@click.argument("log", type=_FILE, metavar="FILE")
@click.option("--speed", type=Number(0), default=1.0, help="0 shows all at once.")
@click.option("--json", "as_json", is_flag=True, help="Write the events, a JSON object a line.")
@click.option("--text", "as_text", is_flag=True, help="Print the whole tree.")
def replay(log: Path, speed: float, as_json: bool, as_text: bool) -> ExitCode:
    """Show the run logged in FILE again."""
    from app import replay as again
    from app.display import Display

    if as_json and as_text:
        raise click.UsageError("--json and --text exclude each other.")
    if as_text:
        again.print_tree(log)
    else:
        again.replay(log, Display.JSON if as_json else Display.AUTO, speed)
    return ExitCode.OK


sapwood.add_command(chat)
sapwood.add_command(sessions)
sapwood.add_command(export)
sapwood.add_command(models)
sapwood.add_command(score)
sapwood.add_command(plan)
sapwood.add_command(probe)
sapwood.add_command(doctor)
sapwood.add_command(completion)


def _has_screen() -> bool:
    """Whether the app can be shown: on a terminal, or where Textual is served to a browser."""
    if os.environ.get("TEXTUAL_DRIVER"):
        return True
    return sys.stdin.isatty() and output.is_screen(sys.stdout) and output.is_screen(sys.stderr)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("sapwood")
    except PackageNotFoundError:
        return "(not installed)"


def _refuse(*, with_: str, **given: object) -> None:
    """Raise if an option was given that means nothing with another."""
    for name, value in given.items():
        if value is not None and value is not False:
            option = "PROBLEM" if name == "problem" else "--" + name.replace("_", "-")
            raise click.UsageError(f"{option} means nothing with {with_}.")


def _problem(argument: str | None) -> str:
    """The problem as given, or as standard input has it."""
    if argument is None and sys.stdin.isatty():
        raise click.UsageError("There is no problem. Give one, or '-' to type it.")
    try:
        if argument is None or argument == "-":
            text = sys.stdin.buffer.read().decode("utf-8-sig")
        else:
            text = argument
            text.encode()
    except UnicodeError as error:
        raise click.UsageError("The problem is not UTF-8 text.") from error
    if not text.strip():
        raise click.UsageError("The problem is empty.")
    return text.strip()
