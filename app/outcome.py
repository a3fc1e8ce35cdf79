"""What a finished run means for whoever called: the exit code and the line of an error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from app.errors import CommandError
from app.exit_codes import ExitCode
from app.printable import one_line
from app.run_view import RunView
from engine.errors import EngineError
from engine.protocol import RunFailed, Stop, Trouble

_CODES = {
    Trouble.USAGE: ExitCode.USAGE,
    Trouble.MODEL: ExitCode.ENGINE,
    Trouble.ENGINE: ExitCode.ENGINE,
    Trouble.MEMORY: ExitCode.MEMORY,
    Trouble.STORAGE: ExitCode.STORAGE,
}


_FORCE = "With --force it is done all the same."


def told(failed: RunFailed) -> str:
    """A failure in full, on one line."""
    return one_line(f"{failed.message} {failed.advice}")


def told_with_force(failed: RunFailed) -> str:
    """The same where the command line has an option to go on."""
    return f"{told(failed)} {_FORCE}" if failed.forcible else told(failed)


def code_for(failed: RunFailed) -> ExitCode:
    return _CODES[failed.trouble]


@contextmanager
def engine_errors() -> Iterator[None]:
    """Within the block an error of the engine ends the command.

    Raises:
        CommandError: with the code of its kind.
    """
    try:
        yield
    except EngineError as error:
        message = one_line(f"{error.message} {error.advice}")
        message += f" {_FORCE}" if error.forcible else ""
        raise CommandError(_CODES[error.trouble], message) from None


def exit_code(view: RunView, *, log_asked: bool) -> ExitCode:
    """The exit code of a run whose events have ended.

    Args:
        log_asked: the user named the log, so a log with gaps is a failure.

    Raises:
        CommandError: the run failed, or its events broke off.
    """
    if view.failed is not None:
        raise CommandError(code_for(view.failed), told_with_force(view.failed))
    if view.finished is None:
        raise CommandError(
            ExitCode.ENGINE, "The engine ended without a result. Its log shows how far it came."
        )
    if log_asked and any(warned.code == "log" for warned in view.warnings):
        return ExitCode.STORAGE
    if view.finished.stop is not Stop.COMPLETE:
        return ExitCode.STOPPED
    return ExitCode.OK if view.answered and view.answered.answer else ExitCode.NO_ANSWER
