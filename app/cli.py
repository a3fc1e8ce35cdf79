"""The entry point of `sapwood`: runs a command and tells how it ended, without a traceback.

It imports nothing at first, so that even a Ctrl-C while the rest is loading is met.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit with one of `ExitCode`."""
    try:
        code = _guarded(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def _guarded(arguments: list[str]) -> int:
    from app import output
    from app.errors import ReaderGoneError
    from app.exit_codes import ExitCode

    output.prepare()
    try:
        return run(arguments)
    except ReaderGoneError:
        return ExitCode.OK


def run(arguments: list[str]) -> int:
    """Run one command. Every error is one line on standard error.

    Raises:
        ReaderGoneError: nobody reads the output any more.
    """
    import os

    import click

    from app.commands import sapwood
    from app.errors import CommandError, ReaderGoneError
    from app.exit_codes import ExitCode

    try:
        return sapwood.main(arguments, prog_name="sapwood", standalone_mode=False) or ExitCode.OK
    except CommandError as error:
        return _report(error.code, error.message)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "sapwood"
        return _report(ExitCode.USAGE, f"{error.format_message()} See '{command} --help'.")
    except (click.exceptions.Abort, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    except ReaderGoneError:
        raise
    except Exception as error:
        if os.environ.get("SAPWOOD_DEBUG") == "1":
            raise
        return _report(
            ExitCode.ENGINE,
            f"Unexpected {type(error).__name__}: {error}. This is a defect of Sapwood."
            " SAPWOOD_DEBUG=1 shows where it is.",
        )


def _report(code: int, message: str) -> int:
    from app import output
    from app.printable import one_line

    output.narrate(f"sapwood: {one_line(message)}")
    return code


if __name__ == "__main__":
    main()
