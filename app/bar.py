"""The bar of a batch on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from app.progress import result_line
from app.results import Result


class Bar:
    """How many problems are done, how many answers are correct, and the time left."""

    def __init__(self, total: int, console: Console) -> None:
        self._bar = Progress(
            MofNCompleteColumn(),
            BarColumn(bar_width=None),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            TextColumn("ETA", markup=False),
            TimeRemainingColumn(),
            console=console,
            refresh_per_second=4,
            redirect_stdout=False,
            redirect_stderr=False,
            # One problem may take minutes; a shorter memory would never see two.
            speed_estimate_period=24 * 3600,
        )
        self._task = self._bar.add_task("", total=total)
        self._correct = self._judged = self._failed = 0
        self._bar.start()

    def done(self, result: Result) -> None:
        self._judged += result.correct is not None
        self._correct += result.correct is True
        self._failed += result.error is not None
        parts = [f"{self._correct}/{self._judged} correct"] if self._judged else []
        if self._failed:
            parts.append(f"{self._failed} failed")
        self._bar.update(self._task, advance=1, description=", ".join(parts))
        if result.error is not None:
            self.say(result_line(result))

    def say(self, line: str) -> None:
        self._bar.console.print(Text(line))

    def close(self) -> None:
        self._bar.stop()
