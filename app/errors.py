"""Errors that end a command, told in one plain line."""

from __future__ import annotations

from app.exit_codes import ExitCode


class CommandError(Exception):
    """A command cannot go on.

    Args:
        code: the exit status.
        message: what happened, what it means and what to do, in full sentences.
    """

    def __init__(self, code: ExitCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class ReaderGoneError(Exception):
    """Whoever read our output has closed it; there is nobody left to tell."""
