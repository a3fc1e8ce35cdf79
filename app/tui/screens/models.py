"""What can run on this machine, having it here, and choosing it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from app.printable import one_line
from app.tui.choices import Choice, Offer, drafted, look
from app.tui.costs import Cost, planned
from app.tui.downloads import Downloads
from app.tui.effort import Effort, Models
from app.tui.screens.confirm import ConfirmScreen
from app.tui.widgets.key_hints import KeyHints
from engine.client.models import Model, State
from engine.client.planning import size_text
from engine.errors import EngineError

_TICK = 0.3
_FORCING = (
    "By the plan this machine has too little memory to run it. It takes its room on the disk all "
    "the same, and A runs it anyway once it is here."
)
_UNKNOWN = "what memory it takes is not known before the hub can be asked"


class ModelsScreen(ModalScreen[Models | None]):
    """Pairs that suit classes of machines, and single models, each with whether it fits and, if
    not, why. Gives what is to answer from now on, or None."""

    CSS_PATH = "models.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Close"),
        Binding("x", "stop", "Stop download"),
        Binding("A", "force", "Download anyway"),
        Binding("v", "alone", "No verifier"),
        Binding("j", "judge", "Rank at the end"),
        Binding("d", "draft", "Draft"),
    ]

    def __init__(self, models: Models, downloads: Downloads) -> None:
        super().__init__()
        self._models = models
        self._downloads = downloads
        self._choices: dict[str, Choice] = {}
        self._costs: dict[str, Cost] = {}
        self._told: dict[str, str] = {}
        self._free = 0
        self._fetching = 0
        self._forcible = False

    def compose(self) -> ComposeResult:
        with Vertical(id="models"):
            yield Static("Looking at this machine …", id="machine", markup=False)
            yield OptionList(id="choices", markup=False)
            yield Static(id="about", markup=False)
        yield KeyHints()

    def on_mount(self) -> None:
        self._list = self.query_one("#choices", OptionList)
        self._about = self.query_one("#about", Static)
        self._list.focus()
        self._look()
        self.set_interval(_TICK, self._tell)

    @work(exclusive=True, exit_on_error=False)
    async def _look(self) -> None:
        """Say what there is, and then of each whether it fits."""
        try:
            offer = await asyncio.to_thread(look, self._models)
        except EngineError as error:
            self._about.update(one_line(f"{error.message} {error.advice}"))
            return
        self._fill(offer)
        while (id := self._next_to_plan()) is not None:
            models = self._choices[id].models
            self._costs[id] = await asyncio.to_thread(planned, models, Effort.THINK)
            self._tell()

    def _next_to_plan(self) -> str | None:
        """Of what is not planned yet, what is nearest to the cursor."""
        here = self._list.highlighted or 0
        waiting = [id for id in self._choices if id not in self._costs]
        return min(
            waiting, key=lambda id: abs(self._list.get_option_index(id) - here), default=None
        )

    def _fill(self, offer: Offer) -> None:
        here = self._list.highlighted
        self._list.clear_options()
        self._choices.clear()
        self._told.clear()
        suited = None
        for title, choices in (
            ("Pairs of generator and verifier", offer.pairs),
            ("Another generator", offer.generators),
            ("Another verifier", offer.verifiers),
        ):
            if choices:
                self._list.add_option(Option(Content.styled(title, "bold"), disabled=True))
            for choice in choices:
                id = f"choice-{len(self._choices)}"
                self._choices[id] = choice
                if choice.suits:
                    suited = self._list.option_count
                self._list.add_option(Option(Content(choice.title), id))
        self._free = offer.free
        words = f"{offer.machine}. Enter uses what is here, and downloads what is not."
        self.query_one("#machine", Static).update(words)
        self._list.highlighted = here if here is not None else suited or 1
        self._tell()

    def _tell(self) -> None:
        """Bring the rows up to date, and the line about the one under the cursor."""
        fetching = len(self._downloads.running)
        if fetching < self._fetching:  # something has come
            self._look()
        self._fetching = fetching
        for id, choice in self._choices.items():
            line = self._line(id, choice)
            if self._told.get(id) != line:
                self._told[id] = line
                self._list.replace_option_prompt(id, Content(line))
        self._tell_forcible()
        chosen = self._chosen
        if chosen is not None:
            about = [part.entry.about or part.entry.licence for part in chosen.parts]
            self._about.update(one_line(" ".join(filter(None, about))))

    def _tell_forcible(self) -> None:
        """Offer the key for a refused download where there is one."""
        forcible = bool(self._refused)
        if forcible != self._forcible:
            self._forcible = forcible
            self.refresh_bindings()

    @property
    def _refused(self) -> list[Model]:
        """What was refused of the choice under the cursor."""
        chosen = self._chosen
        return [p for p in chosen.parts if self._downloads.refused(p)] if chosen else []

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "force" or self._forcible

    def _line(self, id: str, choice: Choice) -> str:
        sign = "●" if choice.models == self._models else "★" if choice.suits else " "
        running = [d for part in choice.parts if (d := self._downloads.of(part)) is not None]
        state = running[0].words if running else choice.state
        ranks = choice.judge is not None and choice.judge == self._models.rerank
        judges = " · ranks at the end" if ranks else ""
        if any(map(self._downloads.refused, choice.parts)):
            state += ", refused: A downloads it anyway"
        writer = choice.writer
        drafts = " · drafts" if writer is not None and writer.id == self._models.draft else ""
        return f"{sign} {choice.title}\n      {state} · {self._fit(id, choice)}{judges}{drafts}"

    def _fit(self, id: str, choice: Choice) -> str:
        cost = self._costs.get(id)
        if cost is None:
            return "…"
        if not cost.trouble:
            return f"fits: {cost.words(None)}"
        if cost.unknown and choice.made_for is not None:  # as without a network
            fits = "fits" if choice.made_for <= self._free else "does not fit"
            return f"{fits}: made for {size_text(choice.made_for)} free"
        return _UNKNOWN if cost.unknown else cost.trouble

    @property
    def _chosen(self) -> Choice | None:
        option = self._list.highlighted_option
        return self._choices.get(option.id) if option is not None and option.id else None

    # Keys

    def action_close(self) -> None:
        self.dismiss(None)

    @on(OptionList.OptionHighlighted, "#choices")
    def _moved(self) -> None:
        self._tell()

    @on(OptionList.OptionSelected, "#choices")
    def _choose(self) -> None:
        choice = self._chosen
        if choice is None:
            return
        if not choice.missing:
            self.dismiss(choice.models)
        elif choice.can_be_had:
            for part in choice.missing:
                self._downloads.begin(part)
            self._tell()
        else:
            words = " ".join(part.entry.about for part in choice.missing)
            self.notify(f"It cannot be downloaded as it is. {words}", markup=False)

    def action_stop(self) -> None:
        choice = self._chosen
        for part in choice.parts if choice is not None else ():
            self._downloads.stop(part)

    def action_judge(self) -> None:
        """Have the model under the cursor rank the solutions at the end, or no more."""
        choice = self._chosen
        if choice is None or choice.judge is None:
            self.notify("Only a generator can rank: it judges the solutions in words.")
        elif choice.missing:
            self.notify("It is not here yet. Enter downloads it.")
        else:
            judge = None if choice.judge == self._models.rerank else choice.judge
            self.dismiss(replace(self._models, rerank=judge, preset=""))

    def action_draft(self) -> None:
        """Have the generator under the cursor draft for the one that answers, or no more."""
        writer = self._chosen.writer if self._chosen is not None else None
        if writer is None:
            self.notify("Only a generator can draft.")
        elif writer.id == self._models.generator:
            self.notify("It is the generator itself: it would write everything twice.")
        elif writer.state is not State.HERE:
            self.notify("It is not here yet. Enter downloads it.")
        else:
            draft = None if writer.id == self._models.draft else writer.id
            try:
                self.dismiss(drafted(self._models, draft))
            except EngineError as error:
                self.notify(one_line(f"{error.message} {error.advice}"), markup=False)

    @work
    async def action_force(self) -> None:
        """Download what was refused for want of memory all the same, if the user is sure."""
        refused = self._refused
        if refused and await self.app.push_screen_wait(
            ConfirmScreen("Download it anyway?", _FORCING)
        ):
            for part in refused:
                self._downloads.begin(part, force=True)
            self._tell()

    def action_alone(self) -> None:
        self.dismiss(self._models.alone)
