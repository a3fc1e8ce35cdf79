"""`sapwood score`: what a verifier says of a solution that is there already."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from app.exit_codes import ExitCode
from app.options import DEMONSTRATION

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("problem", required=False)
@click.argument("solution", required=False)
@click.option("--verifier", metavar="MODEL", default=DEMONSTRATION, help="Catalogue id or path.")
@click.option("--prm-format", metavar="NAME", help="Format of a verifier that is not known.")
@click.option("--context", type=click.IntRange(1), help="Longest solution in tokens.")
@click.option("--file", "path", type=_FILE, metavar="FILE", help="Solutions, a JSON object a line.")
@click.option(
    "--out", type=_FILE, metavar="FILE", help="Scores of --file; goes on with what it has."
)
@click.option("--json", "as_json", is_flag=True, help="Write the scores as a JSON object.")
def score(
    problem: str | None,
    solution: str | None,
    verifier: str,
    prm_format: str | None,
    context: int | None,
    path: Path | None,
    out: Path | None,
    as_json: bool,
) -> ExitCode:
    """Score each step of SOLUTION, an answer to PROBLEM, or of what standard input says where
    SOLUTION is '-' or absent.

    A step is what stands between blank lines; a score is the verifier's belief, from 0 to 1, that
    all is right so far. In a file each line has a problem and a solution, or a list of steps.
    """
    from app.score import Settings, score_file, score_one
    from engine.protocol import split_steps

    settings = Settings(verifier, prm_format, context)
    if path is not None:
        if problem is not None or as_json:
            raise click.UsageError("PROBLEM and --json mean nothing with --file.")
        return score_file(path, out, settings)
    if out is not None:
        raise click.UsageError("--out is for the scores of --file.")
    if problem is None:
        raise click.UsageError("There is no problem. Give one and its solution, or a --file.")
    steps = split_steps(_text(solution))
    if not problem.strip() or not steps:
        raise click.UsageError("The problem or the solution is empty.")
    return score_one(problem.strip(), steps, settings, as_json=as_json)


def _text(solution: str | None) -> str:
    """The solution as given, or as standard input has it."""
    if solution is None and sys.stdin.isatty():
        raise click.UsageError("There is no solution. Give one, or '-' to type it.")
    try:
        if solution is None or solution == "-":
            return sys.stdin.buffer.read().decode("utf-8-sig")
        solution.encode()
    except UnicodeError as error:
        raise click.UsageError("The solution is not UTF-8 text.") from error
    return solution
