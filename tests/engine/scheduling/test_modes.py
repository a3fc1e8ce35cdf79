"""The modes one can name: the plain loop finds what the default finds, shortcuts may not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from engine.models.base import Span
from engine.models.sampling import Sampler
from engine.models.simulated import SimulatedModel
from engine.models.simulated_text import Judge, Writer
from engine.protocol import DraftsDropped, DraftsPromoted, NodesPruned
from engine.scheduling.settings import EXACT, MODES, Mode
from tests.engine.scheduling.cases import Case, Circumstances, Search, begin

CASE = Case(
    "beam", n=8, width=4, max_steps=40, aggregate="last", sampler=Sampler(0.8), seed=3,
    step_tokens=300, context=4000, writer=Writer(3), judge=Judge(3),
)  # fmt: skip


def searched(mode: Mode, case: Case = CASE, capacity: int = 100_000) -> Search:
    generator = SimulatedModel(case.writer, capacity=capacity, paths=64)
    verifier = SimulatedModel(case.judge, capacity=100_000, paths=64)
    search = begin(case, Circumstances(clock=1), generator, verifier, mode=mode)
    for passes, _ in enumerate(search.scheduler.run()):
        assert passes < 20_000
    return search


def test_the_default_drafts_and_finds_what_the_plain_loop_finds() -> None:
    plain, exact = searched(MODES["baseline"]), searched(EXACT)
    assert exact.finished().outcome == plain.finished().outcome
    assert any(isinstance(event, DraftsPromoted) for event in exact.events)
    assert exact.scheduler.counts.decode_steps < plain.scheduler.counts.decode_steps
    assert exact.prm.fed_tokens < plain.prm.fed_tokens


@pytest.mark.parametrize("capacity", [1400, 1600, 1800])
def test_where_memory_is_short_drafts_leave_before_what_the_tree_keeps(capacity: int) -> None:
    eager = Mode(replace(EXACT.mechanisms, only_if_it_pays=False))
    without = Mode(replace(EXACT.mechanisms, drafts=False))
    drafted, plain = (searched(mode, capacity=capacity).scheduler for mode in (eager, without))
    assert drafted.counts.dropped > 0
    assert drafted.counts.evicted == plain.counts.evicted == 0
    assert drafted.counts.decode_steps < plain.counts.decode_steps


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Pass(SimulatedModel):
    """A model whose passes take as long whatever their rows."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(CASE.writer, capacity=100_000, paths=64)
        self.clock = clock

    def forward(self, spans: Sequence[Span], columns: Sequence[int] | None = None) -> np.ndarray:
        self.clock.now += 1
        return super().forward(spans, columns)


class Draw(Sampler):
    """A sampler that takes `price` seconds a row."""

    clock = Clock()
    price = 0.0

    def draw(self, logits: np.ndarray, uniforms: Iterable[float]) -> list[int]:
        self.clock.now += self.price
        return super().draw(logits, uniforms)


@pytest.mark.parametrize(("price", "drafts"), [(0.0, True), (1000.0, False)])
def test_whether_drafts_pay_depends_on_what_their_draws_take_as_well(
    price: float, drafts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(Draw, "clock", clock)
    monkeypatch.setattr(Draw, "price", price)
    case = Case(**{**vars(CASE), "sampler": Draw(0.8)})
    unsure = Mode(replace(EXACT.mechanisms, certainty=False))  # what is certain is always drafted
    verifier = SimulatedModel(case.judge, capacity=100_000, paths=64)
    search = begin(case, Circumstances(), Pass(clock), verifier, mode=unsure, clock=clock)
    for _ in search.scheduler.run():
        pass
    assert bool(search.scheduler.counts.drafted) == drafts


@pytest.mark.parametrize("name", ["fasttts", "specscale"])
def test_the_approximate_modes_end_with_as_many_solutions(name: str) -> None:
    found = searched(MODES[name])
    assert len(found.scheduler.completed) >= CASE.n
    assert any(isinstance(event, DraftsPromoted | DraftsDropped) for event in found.events)
    assert MODES[name].shortcuts.any


def test_perfect_scores_end_a_round_early() -> None:
    case = Case(**{**vars(CASE), "judge": Judge(3, mean=9.0)})
    events = searched(MODES["specscale"], case).events
    reasons = {event.reason for event in events if isinstance(event, NodesPruned)}
    assert "2 others are as good as can be" in reasons


def test_siblings_begin_with_a_part_of_the_first_draft_in_the_first_papers_way() -> None:
    found = searched(MODES["fasttts"])
    counts = found.scheduler.counts
    # What a sibling takes over is read again rather than drawn.
    assert counts.prefill > found.prompt
