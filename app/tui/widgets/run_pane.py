"""One run: its tree, its timeline, the step under the cursor, and a finished run's past."""

from __future__ import annotations

import asyncio

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, Static, TabbedContent, TabPane

from app.errors import CommandError
from app.printable import one_line
from app.run_view import Node, RunView
from app.tui.feed import Change, Feed
from app.tui.keys import RUN
from app.tui.messages import FollowChanged, RoundChosen, Sought, StepHighlighted
from app.tui.replay import Replay, read_log
from app.tui.screens.compare import CompareScreen
from app.tui.search import Search
from app.tui.turn import Folds, Turn
from app.tui.widgets.node_detail import NodeDetail
from app.tui.widgets.reasoning_tree import ReasoningTree
from app.tui.widgets.scrubber import Scrubber
from app.tui.widgets.timeline import Timeline

_TICK = 0.1


class RunPane(Vertical):
    """Shows the run of a turn, live or as it was at a moment."""

    BINDINGS = RUN

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self._turn: Turn | None = None
        self._replay: Replay | None = None
        self._search = Search()
        self._nothing = Feed()

    def compose(self) -> ComposeResult:
        yield Static(id="run-title", markup=False)
        with TabbedContent(initial="tree-tab"):
            with TabPane("Tree", id="tree-tab"):
                yield ReasoningTree(id="tree")
            with TabPane("Timeline", id="timeline-tab"):
                yield Timeline(id="timeline")
        yield NodeDetail(id="detail")
        yield Scrubber()
        yield Input(placeholder="Search the steps; Enter finds the next", id="search")

    def on_mount(self) -> None:
        self._tree = self.query_one(ReasoningTree)
        self._timeline = self.query_one(Timeline)
        self._tabs = self.query_one(TabbedContent)
        self._detail = self.query_one(NodeDetail)
        self._scrubber = self.query_one(Scrubber)
        self._input = self.query_one("#search", Input)
        self._title = self.query_one("#run-title", Static)
        self._scrubber.display = self._input.display = False
        self._clock = self.set_interval(_TICK, self._play_on, pause=True)

    @property
    def node(self) -> Node | None:
        """The step under the cursor."""
        return self._tree.node

    @property
    def view(self) -> RunView:
        """What is shown, which in a replay is the past."""
        return self._feed.view

    @property
    def _feed(self) -> Feed:
        if self._replay is not None:
            return self._replay.feed
        return self._turn.feed if self._turn is not None else self._nothing

    def open(self, turn: Turn) -> None:
        """Show this turn from here on."""
        self._turn = turn
        self._leave_replay()
        self._tree.follow = turn.active
        self._show_all()
        if turn.view.leader is not None:
            self._tree.go_to(turn.view.leader)

    def close(self) -> None:
        """Show nothing."""
        self._turn = None
        self._leave_replay()
        self._show_all()

    def sync(self, turn: Turn, change: Change) -> None:
        """The turn has changed."""
        if turn is self._turn and self._replay is None:
            self._sync(change)

    def toggle_raw(self, raw: bool) -> None:
        self._tree.raw = self._detail.raw = raw
        self._show_all()

    # Commands

    def action_follow(self) -> None:
        self._tree.follow = not self._tree.follow
        self._tree.sync(Change())
        self._tell()

    def action_timeline(self) -> None:
        """From the tree to the timeline or back."""
        to_tree = self._tabs.active != "tree-tab"
        self.screen.set_focus(None)  # a focused widget would bring its own tab back
        self._tabs.active = "tree-tab" if to_tree else "timeline-tab"
        self.call_after_refresh((self._tree if to_tree else self._timeline).focus)

    def action_best(self) -> None:
        if self.view.leader is not None:
            self._tree.go_to(self.view.leader)
            self._tree.focus()

    def action_pruned(self) -> None:
        if self._turn is not None:
            self._turn.folds.all_pruned = not self._turn.folds.all_pruned
            self._turn.folds.unfolded.clear()
            self._tree.refold()
            self._tell()

    def action_compare(self) -> None:
        """Mark the step under the cursor; with another marked, show both paths side by side."""
        node, marked = self._tree.node, self._tree.marked
        if node is None or node.parent is None:
            return
        if marked is None or marked is node:
            self._tree.marked = None if marked is node else node
            if marked is None:
                self.notify("Marked. Go to another step and press c again to compare.", timeout=4)
        else:
            self._tree.marked = None
            self.app.push_screen(CompareScreen(marked, node, raw=self._tree.raw))

    def action_search(self) -> None:
        self._tabs.active = "tree-tab"
        self._input.display = True
        self._input.focus()

    def action_match(self, step: int) -> None:
        found = self._search.next(self.view, self._tree.node, step)
        if found is not None:
            self._tree.follow = False
            self._tree.go_to(found)
        self._tell()

    async def action_play(self) -> None:
        """Play the run from where it is shown, from the start if that is the end; or pause."""
        if self._scrubber.playing:
            self._pause()
            return
        if not await self._enter_replay():
            return
        assert self._replay is not None
        if self._replay.ended:
            self._moved(self._replay.seek(-1.0))
        self._tree.follow = True
        self._scrubber.playing = True
        self._clock.resume()

    async def action_round(self, step: int) -> None:
        if await self._enter_replay() and self._replay is not None:
            self._pause()
            replay = self._replay
            self._moved(replay.next_round() if step > 0 else replay.previous_round())

    # What happens below

    @on(Input.Submitted, "#search")
    def _find(self, event: Input.Submitted) -> None:
        event.stop()
        self._search.words = event.value
        self.action_match(1)

    @on(Input.Blurred, "#search")
    def _close_search(self) -> None:
        self._input.display = False

    def on_key(self, event: events.Key) -> None:
        if event.key == "escape" and self._input.has_focus:
            event.stop()
            self._tree.focus()

    @on(StepHighlighted)
    def _look_at(self, event: StepHighlighted) -> None:
        event.stop()
        self._show_detail()

    @on(FollowChanged)
    def _follow_changed(self, event: FollowChanged) -> None:
        event.stop()
        self._tell()

    @on(RoundChosen)
    async def _go_to_round(self, event: RoundChosen) -> None:
        event.stop()
        if await self._enter_replay() and self._replay is not None:
            self._pause()
            self._moved(self._replay.round(event.number))

    @on(Sought)
    def _seek(self, event: Sought) -> None:
        event.stop()
        if self._replay is not None:
            self._moved(self._replay.seek(event.share * self._replay.length))

    # The past

    async def _enter_replay(self) -> bool:
        """Read the log of the turn's run; False, told to the user, where that cannot be."""
        if self._replay is not None:
            return True
        turn = self._turn
        if turn is None or not turn.view.ended or turn.request.log is None:
            self.notify("Only a finished run with a log can be replayed.", markup=False)
            return False
        try:
            told = await asyncio.to_thread(read_log, turn.request.log)
        except CommandError as error:
            self.notify(one_line(error.message), severity="warning", markup=False)
            return False
        self._replay = Replay(told)
        self._replay.end()
        self._scrubber.length = self._replay.length
        self._scrubber.display = True
        self._show_all()
        return True

    def leave_replay(self) -> bool:
        """Show the run as it ended; False if it is not being replayed."""
        if self._replay is None:
            return False
        self._leave_replay()
        self._show_all()
        return True

    def _leave_replay(self) -> None:
        self._pause()
        self._replay = None
        self._scrubber.display = False

    def _pause(self) -> None:
        self._scrubber.playing = False
        self._clock.pause()

    def _play_on(self) -> None:
        if self._replay is not None:
            self._moved(self._replay.play(_TICK))
            if self._replay.ended:
                self._pause()

    def _moved(self, change: Change) -> None:
        assert self._replay is not None
        self._scrubber.at = self._replay.at
        if change.everything:
            self._show_all()
        else:
            self._sync(change)

    # Drawing

    def _show_all(self) -> None:
        folds = self._turn.folds if self._turn is not None else Folds()
        self._tree.open(self.view, folds)
        self._show_timeline()
        self._show_detail()
        self._tell()

    def _sync(self, change: Change) -> None:
        self._tree.sync(change)
        self._show_timeline()
        if self._tree.node is None or self._tree.node in change.nodes:
            self._show_detail()
        self._tell()

    @on(TabbedContent.TabActivated)
    def _show_timeline(self) -> None:
        if self._tabs.active == "timeline-tab":
            self._timeline.show(self.view)

    def _show_detail(self) -> None:
        self._detail.show(self._tree.node, self.view, self._feed.times)

    def _tell(self) -> None:
        """The line above the tree."""
        if self._turn is None:
            words = Text("The reasoning of a question is shown here.", style="dim")
            self._title.update(words, layout=False)
            return
        view = self.view
        parts = [f"{len(view.nodes)} steps"] if view.nodes else ["nothing written yet"]
        if self._replay is not None:
            parts.append("replay")
        elif self._tree.follow and not view.ended:
            parts.append("following")
        if self._turn.folds.all_pruned:
            parts.append("pruned shown")
        if self._search.words:
            parts.append(f"{self._search.count(view)} found")
        self._title.update(Text(" · ".join(parts)), layout=False)
