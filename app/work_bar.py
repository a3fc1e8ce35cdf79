"""A bar on a terminal, for work whose parts are known by name."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn


class WorkBar:
    """What is being done, and how much of it."""

    def __init__(self, console: Console) -> None:
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            console=console,
            refresh_per_second=4,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bar.add_task("", total=1.0)
        self._doing = ""
        self._bar.start()

    def advance(self, doing: str, done: float) -> None:
        """Show `done`, from 0 to 1, of what is being done now."""
        if doing != self._doing:
            self._doing = doing
            self._bar.reset(self._task, total=1.0, description=doing)
        self._bar.update(self._task, completed=done)

    def close(self) -> None:
        self._bar.stop()
