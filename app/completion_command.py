"""`sapwood completion`: the script by which a shell completes commands and options."""

from __future__ import annotations

import click

from app import output
from app.errors import CommandError
from app.exit_codes import ExitCode

_VARIABLE = "_SAPWOOD_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(context: click.Context, shell: str) -> ExitCode:
    """Print the script that teaches SHELL to complete 'sapwood'.

    \b
    bash: add  eval "$(sapwood completion bash)"  to ~/.bashrc
    zsh:  add  eval "$(sapwood completion zsh)"   to ~/.zshrc
    fish: sapwood completion fish > ~/.config/fish/completions/sapwood.fish
    """
    from click.shell_completion import get_completion_class

    maker = get_completion_class(shell)
    assert maker is not None
    try:
        script = maker(context.find_root().command, {}, "sapwood", _VARIABLE).source()
    except (OSError, RuntimeError) as error:  # bash itself is asked for its version
        raise CommandError(ExitCode.USAGE, f"{shell} could not be asked: {error}.") from error
    output.data(script + "\n")
    return ExitCode.OK
