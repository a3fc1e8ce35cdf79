"""Asking a question again with other settings."""

from __future__ import annotations

import math
from typing import ClassVar

import msgspec
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Static

from app.options import GUIDED, MOST_PATHS, UNGUIDED
from app.printable import one_line
from engine.client.drafting import acceptance
from engine.errors import EngineError
from engine.protocol import Drafting, SolveRequest

_JUDGE = "rank with: a model that judges the solutions in words at the end, by id or path"
_DRAFT = (
    "draft with: a smaller model with the same tokens; accept: semantic or tokens; empty takes "
    "semantic where there are predictors"
)


class RetryScreen(ModalScreen[SolveRequest | None]):
    """Gives the request with what was changed, or None."""

    CSS_PATH = "dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "Close")]

    def __init__(self, request: SolveRequest) -> None:
        super().__init__()
        self._request = request

    def compose(self) -> ComposeResult:
        request = self._request
        drafting = request.drafting
        fields = {
            "policy": request.search.policy,
            "n": str(request.search.n),
            "width": str(request.search.width),
            "temperature": f"{request.sampling.temperature:g}",
            "seed": str(request.seed),
            "rank with": request.rerank or "",
            "draft with": drafting.draft if drafting is not None else "",
            "accept": drafting.accept if drafting is not None else "",
        }
        with Vertical(classes="dialog"):
            yield Static("Ask again, with these settings (Enter)", markup=False)
            for name, value in fields.items():
                with Horizontal(classes="field"):
                    yield Label(name)
                    yield Input(value, id=name.replace(" ", "-"), compact=True)
            yield Static(f"policies: {', '.join(self._policies())}", classes="hint", markup=False)
            yield Static(_JUDGE, classes="hint", markup=False)
            yield Static(_DRAFT, classes="hint", markup=False)
            yield Static(classes="trouble", markup=False)

    def action_close(self) -> None:
        self.dismiss(None)

    @on(Input.Submitted)
    def _send(self) -> None:
        try:
            self.dismiss(self._changed())
        except ValueError as error:
            self.query_one(".trouble", Static).update(str(error))

    def _changed(self) -> SolveRequest:
        """The request as the fields have it.

        Raises:
            ValueError: a field holds what it cannot; the words are for people.
        """
        policy = self._field("policy")
        if policy not in self._policies():
            raise ValueError("There is no such policy here.")
        request = self._request
        search = msgspec.structs.replace(
            request.search,
            policy=policy,
            n=self._whole("n", 1, MOST_PATHS),
            width=self._whole("width", 1, MOST_PATHS),
        )
        sampling = msgspec.structs.replace(request.sampling, temperature=self._temperature())
        return msgspec.structs.replace(
            request,
            search=search,
            sampling=sampling,
            seed=self._whole("seed", 0, 2**63 - 1),
            rerank=self._field("rank-with") or None,
            drafting=self._drafting(),
        )

    def _drafting(self) -> Drafting | None:
        """How steps are drafted; other settings of it stay with the models they were for."""
        draft, accept = self._field("draft-with"), self._field("accept")
        if not draft:
            if accept:
                raise ValueError("accept means nothing without a model to draft with.")
            return None
        if accept not in ("", "semantic", "tokens"):
            raise ValueError("accept is semantic or tokens.")
        before = self._request.drafting
        if before is not None and (draft, accept) == (before.draft, before.accept):
            return before
        try:
            able = acceptance(draft, self._request.generator)
        except EngineError as error:
            raise ValueError(one_line(f"{error.message} {error.advice}")) from None
        if accept == "semantic" and able != "semantic":
            raise ValueError("There are no predictors for these two models; tokens needs none.")
        return Drafting(draft=draft, accept="tokens" if accept == "tokens" else able)

    def _policies(self) -> tuple[str, ...]:
        return (*UNGUIDED, *GUIDED) if self._request.verifier else UNGUIDED

    def _field(self, name: str) -> str:
        return self.query_one(f"#{name}", Input).value.strip()

    def _whole(self, name: str, least: int, most: int) -> int:
        text = self._field(name)
        if not text.isdecimal() or not least <= int(text) <= most:
            raise ValueError(f"{name} is a whole number from {least} to {most}.")
        return int(text)

    def _temperature(self) -> float:
        try:
            number = float(self._field("temperature"))
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and number >= 0):
            raise ValueError("temperature is a number from 0 up.")
        return number
