"""What the exit status of `sapwood` says."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes; they are part of the interface and keep their meaning."""

    OK = 0
    NO_ANSWER = 1
    USAGE = 2
    ENGINE = 3
    STOPPED = 4
    MEMORY = 5
    STORAGE = 6
    INTERRUPTED = 130


MEANINGS = {
    ExitCode.OK: "done",
    ExitCode.NO_ANSWER: "finished without an answer",
    ExitCode.USAGE: "wrong option or input",
    ExitCode.ENGINE: "a model or the engine failed",
    ExitCode.STOPPED: "stopped early by --time-limit or Ctrl-C; the best answer so far is printed",
    ExitCode.MEMORY: "out of memory",
    ExitCode.STORAGE: "a file could not be written in full",
    ExitCode.INTERRUPTED: "second Ctrl-C",
}

HELP = "Exit status:\n" + "\n".join(f"  {code:>3}  {text}" for code, text in MEANINGS.items())
"""The table as `--help` shows it."""
