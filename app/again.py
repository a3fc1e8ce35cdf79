"""A command as it was typed, to be typed again."""

from __future__ import annotations

import shlex

import click
from click.core import ParameterSource


def command_line(context: click.Context) -> str:
    """The command that is running, with the options it was given; ready for a shell."""
    words = context.command_path.split()
    for option in context.command.params:
        name = option.name or ""
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            words += [option.opts[0], str(context.params[name])]
    return shlex.join(words)
