"""The app: its screens, its colours, and the engine behind them."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

import msgspec
from textual import events, on
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.worker import WorkerError

from app.tui.archive import Archive
from app.tui.clipboard import copy_natively
from app.tui.commands import commands
from app.tui.downloads import Downloads
from app.tui.effort import Effort, Models
from app.tui.key_queue import KeyQueue
from app.tui.messages import EffortChosen, ModelsWanted
from app.tui.runner import Engine, Runner
from app.tui.screens.chat import ChatScreen
from app.tui.screens.help import HelpScreen
from app.tui.screens.welcome import SAMPLE, WelcomeScreen
from app.tui.settings import Settings, save_settings
from app.tui.speeds import Speeds
from app.tui.themes import DARK, THEMES
from app.tui.turn import Standing
from app.tui.widgets.composer import Composer

if TYPE_CHECKING:
    from engine.client.models import Model

_TWICE = 2.0
"""Seconds within which a second Ctrl+C leaves."""
_LOOK = 0.2
"""Seconds between two looks at whether the first problem is solved."""


class SapwoodApp(App[None]):
    """Chat on the left, the reasoning on the right, the engine in a process of its own.

    Args:
        engine: solves what is asked.
        log_folder: where runs are logged; None keeps no logs.
        archive: keeps conversations; None keeps none.
        settings: what the user chose before.
    """

    TITLE = "Sapwood"
    CSS = "ToastRack { dock: top; align: right top; }"  # not over what is being written
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f1", "help", "Help", id="app.help"),
        Binding("ctrl+q", "quit", "Quit", priority=True, id="app.quit"),
    ]

    def __init__(
        self,
        engine: Engine,
        *,
        log_folder: Path | None,
        archive: Archive | None,
        settings: Settings,
    ) -> None:
        super().__init__()
        self._log_folder = log_folder
        self._archive = archive
        self._settings = settings
        self._runner = Runner(engine)
        self._keys = KeyQueue(self, super().on_event)
        self._models = settings.models
        self._interrupted = -_TWICE
        for theme in THEMES:
            self.register_theme(theme)
        known = settings.theme in self.available_themes
        self.theme = settings.theme if known else DARK.name
        self.set_keymap(settings.keys)

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            await self._keys.put(event)
        else:
            await super().on_event(event)

    async def on_mount(self) -> None:
        self._leave_when_asked()
        self.theme_changed_signal.subscribe(self, lambda theme: self.remember(theme=theme.name))
        self._work = self.run_worker(self._runner.work(), name="engine", exit_on_error=False)
        effort = Effort.named(self._settings.effort)
        speeds = Speeds(self._settings.took, lambda took: self.remember(took=took))
        self.downloads = Downloads(self._downloading, self._downloaded)
        self.chat = ChatScreen(
            self._runner, self._models, effort, self._log_folder, self._archive, speeds
        )
        await self.push_screen(self.chat)
        if self._archive is None:
            self.notify("Conversations are not kept; the reason is told at the end.")
        if not self._settings.welcomed:  # over a chat that has been drawn
            self.chat.call_after_refresh(self.call_later, self._welcome)

    def _leave_when_asked(self) -> None:
        """Give the terminal back as it was when the process is asked to end from outside."""
        if os.name == "nt" or threading.current_thread() is not threading.main_thread():
            return  # there are no such handlers
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, self.exit)

    async def on_unmount(self) -> None:
        """Wait until the engine's process and all downloads have ended."""
        await self.downloads.close()
        self._work.cancel()
        with suppress(WorkerError):
            await self._work.wait()

    def _welcome(self) -> None:
        self.push_screen(WelcomeScreen(self._models), self._welcomed)

    async def _welcomed(self, sample: str | None) -> None:
        self.remember(welcomed=True)
        if sample == SAMPLE:
            await self.chat.ask(sample, Effort.THINK)
            self.run_worker(self._offer(), exit_on_error=False)
        elif sample:
            self.chat.query_one(Composer).insert(sample)

    async def _offer(self) -> None:
        """Once the sample is solved, say which pair this machine has room for."""
        from app.tui.choices import suited

        turn = self.chat.turns[-1]
        choice = await asyncio.to_thread(suited)
        while turn.active:
            await asyncio.sleep(_LOOK)
        if choice is not None and choice.missing and turn.standing is Standing.DONE:
            self.notify(
                f"This machine has room for {choice.models.label}: F4 gets it.",
                timeout=15,
                markup=False,
            )

    @on(ModelsWanted)
    def _choose_models(self) -> None:
        from app.tui.screens.models import ModelsScreen  # what plans is not needed to start

        self.push_screen(ModelsScreen(self.chat.models, self.downloads), self._use)

    def _use(self, models: Models | None) -> None:
        if models is not None:
            self.chat.use(models)
            self.remember(models=models)

    def _downloading(self) -> None:
        running = [f"{d.model.id} {d.words}" for d in self.downloads.running]
        self.chat.tell_aside(f"downloading {', '.join(running)}" if running else "")

    def _downloaded(self, model: Model, words: str, fine: bool) -> None:
        self._downloading()
        severity = "information" if fine else "error"
        self.notify(f"{model.id}: {words}", severity=severity, timeout=10, markup=False)

    @on(EffortChosen)
    def _effort_chosen(self, event: EffortChosen) -> None:
        self.remember(effort=event.effort.label)

    def remember(self, **choices: object) -> None:
        """Keep a choice of the user for the next start."""
        changed = msgspec.structs.replace(self._settings, **choices)
        if changed != self._settings:
            self._settings = changed
            save_settings(changed)

    def get_system_commands(self, screen: Screen) -> Iterable[SystemCommand]:
        yield from super().get_system_commands(screen)
        yield from commands(self.chat)

    def copy_to_clipboard(self, text: str) -> None:
        """Copy with a tool of the system where there is one, else ask the terminal to do it."""
        self.run_worker(self._copy(text), group="copy", exclusive=True, exit_on_error=False)

    async def _copy(self, text: str) -> None:
        if await copy_natively(text):
            self.notify("Copied.", timeout=2)
        else:
            super().copy_to_clipboard(text)
            self.notify("Sent to the terminal's clipboard (OSC 52).", timeout=3)

    def action_help(self) -> None:
        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen())

    def action_help_quit(self) -> None:
        """Ctrl+C: stop what runs and say how to leave; the second leaves."""
        if monotonic() - self._interrupted < _TWICE:
            self.exit()
            return
        self._interrupted = monotonic()
        self.run_worker(self.chat.action_stop(), exit_on_error=False)
        self.notify("Ctrl+C again leaves.", timeout=_TWICE)
