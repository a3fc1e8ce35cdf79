"""The run as a list of rounds, for narrow terminals, screen readers and the hurried."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import OptionList

from app.narration import round_line
from app.run_view import RunView
from app.tui.messages import RoundChosen


class Timeline(OptionList):
    """A row a round."""

    def __init__(self, id: str) -> None:
        super().__init__(id=id, markup=False)
        self._told: list[str] = []
        self._rounds: list[int] = []

    def show(self, view: RunView) -> None:
        """Bring the rows up to date."""
        self._rounds = sorted(view.rounds)
        lines = [round_line(number, view.rounds[number]) for number in self._rounds]
        if view.answered is not None:
            lines.append(f"answer {view.answered.answer or 'none'}")
        if len(lines) < len(self._told):
            self.clear_options()
            self._told = []
        for place, line in enumerate(lines):
            if place >= len(self._told):
                self.add_option(Content(line))
            elif line != self._told[place]:
                self.replace_option_prompt_at_index(place, Content(line))
        self._told = lines

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option_index < len(self._rounds):
            self.post_message(RoundChosen(self._rounds[event.option_index]))
