"""`sapwood chat`: a conversation through pipes."""

from __future__ import annotations

from typing import Any

import click

from app.exit_codes import ExitCode
from app.options import Number, request_from, request_options

_EFFORT = ("policy", "verifier", "n")


@click.command()
@click.option("--session", type=click.IntRange(1), metavar="NUMBER", help="Go on with this one.")
@request_options
@click.option("--time-limit", type=Number(0, min_open=True), help="Seconds for each message.")
@click.option("--quiet", is_flag=True, help="Write the answers alone.")
def chat(session: int | None, quiet: bool, **options: Any) -> ExitCode:
    """Answer each line of standard input, and keep the conversation as a session.

    Each line is a problem of its own: the models see no earlier ones. A single path is searched
    and told as it is written, unless --policy, --verifier or --n ask for more.
    """
    from app.chat import chat as talk

    if all(options[name] is None for name in _EFFORT):
        options["policy"] = "greedy"
    return talk(request_from("", options), session, quiet=quiet)
