"""Opening the app on a terminal."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING

from app import output
from app.errors import CommandError
from app.exit_codes import ExitCode

if TYPE_CHECKING:
    from app.tui.app import SapwoodApp

_ESCAPE_DELAY = "25"
"""Milliseconds in which more may follow an Esc. Textual waits 100, all that a stop may take."""


def open_app() -> ExitCode:
    """Run the app until the user leaves it.

    Raises:
        CommandError: it broke.
    """
    os.environ.setdefault("ESCDELAY", _ESCAPE_DELAY)  # read when Textual is imported

    from app.logs import log_folder
    from app.printable import one_line
    from app.tui.app import SapwoodApp
    from app.tui.archive import open_archive
    from app.tui.settings import load_settings
    from app.tui.stderr_guard import stderr_guard
    from engine.client import LocalEngine
    from engine.places import log_dir

    folder = log_folder()
    archive = open_archive()
    if isinstance(archive, CommandError):
        output.narrate(f"warning: conversations are not kept: {one_line(archive.message)}")
        archive = None
    log = log_dir() / "app.log"
    with stderr_guard(log):
        app = SapwoodApp(
            LocalEngine(), log_folder=folder, archive=archive, settings=load_settings()
        )
        run(app)
    if app.return_code:
        raise CommandError(
            ExitCode.ENGINE,
            f"The app ended because of a defect of its own; {log} shows where. What was written is"
            " in the logs of the runs.",
        )
    return ExitCode.OK


def run(app: SapwoodApp) -> None:
    """Run the app on this terminal, with what stays to its end left out of garbage collections,
    which would hold up the keys for as long again."""
    gc.collect()
    gc.freeze()
    app.run()
