"""The bar of a download on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

from app.printable import one_line
from engine.client import pulling


class DownloadBar:
    """Bytes, speed and the time left, and why it waits if it does."""

    def __init__(self, console: Console) -> None:
        self._bar = Progress(
            DownloadColumn(binary_units=True),
            BarColumn(bar_width=None),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=console,
            refresh_per_second=4,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bar.add_task("", total=None)
        self._note = ""
        self._bar.start()

    def advance(self, progress: pulling.Progress) -> None:
        self._bar.update(self._task, completed=progress.done, total=progress.total)
        if progress.note and progress.note != self._note:
            self._bar.console.print(Text(one_line(f"{progress.file}: {progress.note}")))
        self._note = progress.note

    def close(self) -> None:
        self._bar.stop()
