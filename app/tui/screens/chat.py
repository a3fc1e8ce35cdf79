"""The main screen: the conversation, and beside it the reasoning of one of its turns."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
from textual import events, on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Input, Tab, Tabs

from app.errors import CommandError
from app.logs import new_log
from app.printable import one_line
from app.tui.archive import Archive
from app.tui.conversation import Conversation
from app.tui.costs import Cost, planned
from app.tui.effort import Effort, Models
from app.tui.keys import CHAT, SOMETIMES
from app.tui.messages import Asked, BranchChosen, EffortChosen, ModelsWanted, TurnSelected
from app.tui.replay import read_log
from app.tui.runner import Runner
from app.tui.screens.attach import AttachScreen
from app.tui.screens.confirm import ConfirmScreen
from app.tui.screens.export import ExportScreen
from app.tui.screens.retry import RetryScreen
from app.tui.screens.sessions import SessionsScreen
from app.tui.speeds import Speeds
from app.tui.turn import Standing, Turn
from app.tui.widgets.composer import Composer
from app.tui.widgets.effort_bar import EffortBar
from app.tui.widgets.key_hints import KeyHints
from app.tui.widgets.memory_line import MemoryLine
from app.tui.widgets.run_pane import RunPane
from app.tui.widgets.status_line import StatusLine
from app.tui.widgets.transcript import Transcript

_TICK = 0.1
"""Seconds between two looks at what the engine has told; a tree of `_LARGE` has every other."""
_LARGE = 1000
_FORCING = (
    "The models may take more memory than is free. Then all of this machine gets slow, and the "
    "system may end the engine or other programs; save what you have open elsewhere. Conversations "
    "here are safe."
)


class ChatScreen(Screen[None]):
    """Questions go to the runner; what it hears is shown a few times a second."""

    CSS_PATH = "chat.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 - not so declared
    VERTICAL_BREAKPOINTS = [(0, "-short"), (30, "-tall")]  # noqa: RUF012
    BINDINGS = CHAT

    def __init__(
        self,
        runner: Runner,
        models: Models,
        effort: Effort,
        log_folder: Path | None,
        archive: Archive | None,
        speeds: Speeds,
    ) -> None:
        super().__init__()
        self._runner = runner
        self.models = models
        self._pending: list[Turn] = []
        """Turns that may still have something to tell, in the order they were asked."""
        self.effort = effort
        self._log_folder = log_folder
        self._archive = archive
        self._speeds = speeds
        self._costs: dict[Effort, Cost] = {}
        self._conversation = Conversation()
        self._edited: Turn | None = None
        """The turn whose question is in the composer to be asked otherwise."""
        self._possible: list[bool | None] = []
        self._looks = 0

    def compose(self) -> ComposeResult:
        yield Tabs(Tab("Chat", id="show-chat"), Tab("Reasoning", id="show-run"), id="views")
        with Horizontal(id="panes"):
            yield Transcript(id="transcript")
            yield RunPane(id="run")
        with Vertical(id="ask"):
            yield Composer(id="composer")
            yield EffortBar(self.models)
        yield MemoryLine()
        yield StatusLine(self.models)
        yield KeyHints()

    def on_mount(self) -> None:
        self._transcript = self.query_one(Transcript)
        self.run_pane = self.query_one(RunPane)
        self._composer = self.query_one(Composer)
        self._bar = self.query_one(EffortBar)
        self._status = self.query_one(StatusLine)
        self._memory = self.query_one(MemoryLine)
        self._bar.effort = self.effort
        self._clock = self.set_interval(_TICK, self._tick, pause=True)
        for tabs in self.query(Tabs):  # keys reach all they do, and more directly
            tabs.can_focus = False
        self._composer.focus()
        self._tell_costs()
        self._estimate()

    def on_key(self, event: events.Key) -> None:
        """What is typed anywhere is meant for the composer, but for keys that do something."""
        typing = isinstance(self.focused, Composer | Input)
        if event.is_printable and event.character and not typing:
            active = self.active_bindings.get(event.key)
            if active is None or not active.enabled:
                event.stop()
                self.show_run(False)
                self._composer.focus()
                self._composer.insert(event.character)

    def on_unmount(self) -> None:
        for turn in self._pending:
            turn.take()
            self._record(turn)

    # Asking

    @on(Asked)
    async def _asked(self, event: Asked) -> None:
        edited = self._edited
        self._edit(None)
        if edited is None:
            await self.ask(event.text)
        else:
            await self._again(edited, event.text)

    async def _again(self, turn: Turn, problem: str) -> None:
        """Ask in the place of a turn; what was there stays on a branch of its own."""
        request = self.models.request(problem, self.effort, seed=secrets.randbelow(2**31))
        again = Turn(request, self.effort, self.models.preset)
        await self.begin(again, self._conversation.before(turn))

    def _edit(self, turn: Turn | None) -> None:
        """The composer holds the question of this turn, to be changed; None: a new question."""
        self._edited = turn
        self._bar.editing = turn is not None

    async def ask(self, problem: str, effort: Effort | None = None) -> None:
        """Have a problem solved after those that are waiting."""
        effort = effort or self.effort
        request = self.models.request(problem, effort, seed=secrets.randbelow(2**31))
        path = self._conversation.path
        turn = Turn(request, effort, self.models.preset)
        await self.begin(turn, path[-1] if path else None)

    async def begin(self, turn: Turn, before: Turn | None) -> None:
        """Put a turn into the conversation, and have it solved."""
        if turn.request.log is None:
            turn.request = msgspec.structs.replace(turn.request, log=new_log(self._log_folder))
        self._conversation.add(turn, before)
        self._keep(lambda archive: archive.begin(turn, before))
        await self._transcript.open(self._conversation.path, turn)
        self._send(turn)

    def _send(self, turn: Turn) -> None:
        self._pending.append(turn)
        self._runner.ask(turn)
        self._clock.resume()
        self._tell()

    @property
    def _current(self) -> Turn | None:
        """The turn that a stop is for."""
        return next((turn for turn in self._pending if turn.active), None)

    # Following

    async def _tick(self) -> None:
        self._looks += 1
        for turn in list(self._pending):
            if len(turn.view.nodes) > _LARGE and self._looks % 2:
                continue
            change = turn.take()
            if change is not None:
                self.run_pane.sync(turn, change)
                self._look_out(turn)
            await self._transcript.show(turn)
            if turn.view.ended and not turn.has_news:
                self._pending.remove(turn)
                self._learn(turn)
                self._record(turn)
        if not self._pending:
            self._clock.pause()
        self._tell()

    def _learn(self, turn: Turn) -> None:
        """Take what a question cost for an estimate of the next."""
        finished = turn.view.finished
        if turn.standing is Standing.DONE and finished is not None:
            self._speeds.learn(self.models, turn, finished.counters.seconds or finished.at)
            self._tell_costs()

    @property
    def turns(self) -> list[Turn]:
        """The turns of the open branch."""
        return self._conversation.path

    def tell_aside(self, words: str) -> None:
        """Say what goes on beside the questions."""
        self._status.aside = words
        self._tell()

    def use(self, models: Models) -> None:
        """Have what is asked from now on answered by these."""
        self.models = self._status.models = models
        self._costs = {}
        self._tell_costs()
        self._tell()
        self._estimate()

    @work(exclusive=True, group="estimate", exit_on_error=False)
    async def _estimate(self) -> None:
        """Plan each effort on this machine, which takes a moment."""
        for effort in Effort:
            cost = await asyncio.to_thread(planned, self.models, effort)
            self._costs = self._costs | {effort: cost}
            self._tell_costs()

    def _tell_costs(self) -> None:
        self._bar.tell(self.models, self._costs, self._speeds.of(self.models))

    def _record(self, turn: Turn) -> None:
        self._keep(lambda archive: archive.record(turn))

    def _look_out(self, turn: Turn) -> None:
        """Say aloud, once, what the user may not be looking at."""
        if turn.lost and not turn.told_lost:
            turn.told_lost = True
            self._warn(f"The engine was lost: {turn.lost}. It is started again and goes on.")

    def _warn(self, words: str) -> None:
        self.notify(words, severity="warning", markup=False)

    def _keep(self, save: Callable[[Archive], object]) -> None:
        """Save something; the answer matters more than that it is kept."""
        if self._archive is not None:
            try:
                save(self._archive)
            except CommandError as error:
                self._warn(one_line(error.message))

    def _tell(self) -> None:
        current = self._current
        behind = [turn for turn in self._pending if turn.standing is Standing.QUEUED]
        waiting = sum(turn is not current for turn in behind)
        shown = current or self._transcript.selected
        self._status.show(shown, waiting)
        self._memory.show(shown.view.memory if shown is not None else None)
        possible = [self.check_action(action, ()) for action in SOMETIMES]
        if possible != self._possible:  # a footer is made anew, which is not cheap
            self._possible = possible
            self.refresh_bindings()

    @on(TurnSelected)
    async def _selected(self, event: TurnSelected) -> None:
        turn = event.turn
        if turn.outlined and turn.request.log is not None:
            with suppress(CommandError):  # without its log, the outline is all there is
                turn.load(await asyncio.to_thread(read_log, turn.request.log))
                await self._transcript.show(turn)
        if turn is self._transcript.selected:
            self.run_pane.open(turn)
            self._tell()

    # Commands

    def action_back(self) -> None:
        """Leave a replay, stop editing, or go back to writing."""
        self._edit(None)
        if not self.run_pane.leave_replay():
            self.show_run(False)
            self._composer.focus()

    async def action_stop(self) -> None:
        """Stop what is going on, if anything is."""
        if (turn := self._current) is not None:
            self._runner.stop(turn)
            await self._transcript.show(turn)
            self._tell()

    def action_effort(self) -> None:
        self.choose(self.effort.next)

    def choose(self, effort: Effort) -> None:
        self.post_message(EffortChosen(effort))

    @on(EffortChosen)
    def _chosen(self, event: EffortChosen) -> None:
        self._bar.effort = self.effort = event.effort

    async def action_retry(self) -> None:
        """Ask the same again, with the effort that is chosen now and other random numbers."""
        if (turn := self._transcript.selected) is not None:
            await self._again(turn, turn.problem)

    @work
    async def action_retry_with(self) -> None:
        """Ask the same again, with settings that the user gives."""
        turn = self._transcript.selected
        if turn is None:
            return
        request = await self.app.push_screen_wait(RetryScreen(turn.request))
        if request is not None:
            request = msgspec.structs.replace(request, resume=False, log=None)
            await self.begin(Turn(request, turn.effort), self._conversation.before(turn))

    @work
    async def action_export(self) -> None:
        """Write the conversation into a file."""
        archive = self._archive
        if archive is None or archive.session is None:
            return
        path = await self.app.push_screen_wait(ExportScreen(archive.store, archive.session))
        if path is not None:
            self.notify(f"Written to {path}.", markup=False)

    def action_edit(self) -> None:
        """Put a question into the composer; sent again it begins a branch."""
        if (turn := self._transcript.selected) is not None:
            self.show_run(False)
            self._composer.write(turn.problem)
            self._edit(turn)

    @on(BranchChosen)
    async def _branch_chosen(self, event: BranchChosen) -> None:
        beside = self._conversation.beside(event.turn)
        turn = beside[(beside.index(event.turn) + event.step) % len(beside)]
        self._conversation.open(turn)
        path = self._conversation.path
        self._keep(lambda archive: archive.choose(path[-1]))
        await self._transcript.open(path, turn)
        self._tell()

    def action_models(self) -> None:
        self.post_message(ModelsWanted())

    @work
    async def action_attach(self) -> None:
        """Put the text of a file into the composer."""
        text = await self.app.push_screen_wait(AttachScreen())
        if text is not None:
            self.show_run(False)
            self._composer.insert_text(text)

    def action_copy_answer(self) -> None:
        if (turn := self._transcript.selected) is not None and turn.text:
            self.app.copy_to_clipboard(turn.text)

    def action_copy_step(self) -> None:
        if (node := self.run_pane.node) is not None and node.text:
            self.app.copy_to_clipboard(node.text)

    async def action_resume(self) -> None:
        """Go on with a run that broke off."""
        turn = self._transcript.selected
        if turn is not None and turn.resumable:
            turn.resume()
            self.run_pane.open(turn)
            await self._transcript.show(turn)
            self._send(turn)

    @work
    async def action_force(self) -> None:
        """Run what was refused for want of memory all the same, if the user is sure."""
        turn = self._transcript.selected
        if turn is None or not turn.refused:
            return
        if await self.app.push_screen_wait(ConfirmScreen("Run it anyway?", _FORCING)):
            request = msgspec.structs.replace(turn.request, force=True, resume=False, log=None)
            forced = Turn(request, turn.effort, turn.preset)
            await self.begin(forced, self._conversation.before(turn))

    async def action_new(self) -> None:
        """Begin a new conversation; what still runs goes on."""
        if self._archive is not None:
            self._archive.close()
        self._conversation = Conversation()
        await self._transcript.open([])
        self.run_pane.close()
        self._tell()

    @work
    async def action_sessions(self) -> None:
        """Open a conversation of before."""
        if self._archive is None:
            self._warn("Conversations are not kept this time.")
            return
        session = await self.app.push_screen_wait(SessionsScreen(self._archive.store))
        if session is not None:
            self._keep(lambda archive: self._reopen(archive.open(session)))

    def _reopen(self, conversation: Conversation) -> None:
        self.run_pane.close()
        self._conversation = conversation
        self._edit(None)
        path = conversation.path
        for turn in path:
            self._composer.remember(turn.problem)
        self.run_worker(self._transcript.open(path), exclusive=True)

    async def action_raw(self) -> None:
        await self._transcript.toggle_raw()
        self.run_pane.toggle_raw(self._transcript.raw)

    def action_toggle_run(self) -> None:
        self.show_run(not self.has_class("-run"))

    @on(Tabs.TabActivated, "#views")
    def _view_chosen(self, event: Tabs.TabActivated) -> None:
        event.stop()
        self.show_run(event.tab.id == "show-run")

    def show_run(self, run: bool) -> None:
        """Where only one fits: the run or the conversation. Where both do: the keys go there."""
        self.set_class(run, "-run")
        self.query_one("#views", Tabs).active = "show-run" if run else "show-chat"
        if run:
            self.query_one("#tree").focus()
        elif not self._transcript.has_focus:
            self._composer.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide from the footer what would do nothing now."""
        if not self.is_mounted:
            return True
        turn = self._transcript.selected
        match action:
            case "export":
                return self._archive is not None and self._archive.session is not None
            case "retry" | "retry_with" | "edit" | "raw":
                return turn is not None
            case "copy_answer":
                return turn is not None and bool(turn.text)
            case "stop":
                return self._current is not None
            case "resume":
                return turn is not None and turn.resumable
            case "force":
                return turn is not None and turn.refused
        return True
