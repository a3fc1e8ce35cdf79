"""Going on from a log: everything is told again, then only what is new."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.errors import EngineError
from engine.models.stop import StopSignal
from engine.protocol import (
    Answered,
    AnyEvent,
    BeamsSelected,
    Counters,
    DraftJudged,
    Event,
    NodeOpened,
    NodesPruned,
    Phase,
    RunFinished,
    RunResumed,
    Sampling,
    SolveRequest,
    StepFinished,
    StepScored,
    Stop,
    TextAppended,
    Throughput,
    WorkerRestarted,
)
from engine.runlog import read_run
from engine.search.policy import Ending
from engine.service.run import Run, open_run

begun: list[Run] = []
REQUEST = SolveRequest(problem="p", seed=1)


@pytest.fixture(autouse=True)
def close_runs() -> Iterator[None]:
    yield
    while begun:
        begun.pop().close()


def finished(lineage: tuple[int, ...], text: str = "a\n\n") -> StepFinished:
    return StepFinished(lineage=lineage, text=text, tokens=(1, 2), ending="step")


def answered(answer: str) -> Answered:
    return Answered(answer=answer, text=answer, lineage=(0,), score=0.5)


STORY: list[Event] = [
    NodeOpened(lineage=(0,)),
    finished((0,)),
    NodeOpened(lineage=(1,)),
    finished((1,)),
    StepScored(lineage=(0,), scores=(0.5,)),
    BeamsSelected(round=0, kept=((0,),)),
    NodesPruned(round=0, lineages=((1,),), reason="rank 2"),
    NodeOpened(lineage=(0, 0)),
    TextAppended(lineage=(0, 0), text="half of"),
]


def begin(
    path: Path, request: SolveRequest = REQUEST, *, resume: bool = True, cause: str = ""
) -> tuple[Run, list[AnyEvent]]:
    sent: list[AnyEvent] = []
    run = open_run(
        "r",
        replace(request, log=str(path), resume=resume),
        sent.append,
        stop=StopSignal(),
        beat=lambda: None,
    )
    begun.append(run)
    run.start(cause)
    return run, sent


def tell(path: Path, *events: Event) -> list[AnyEvent]:
    """A log of `events`, and what its run sent."""
    run, sent = begin(path, resume=False)
    for event in events:
        run.emit(event)
    run.close()
    return sent


def test_all_of_the_log_comes_first_and_the_numbers_go_on(tmp_path: Path) -> None:
    before = tell(tmp_path / "log", *STORY)
    run, sent = begin(tmp_path / "log")
    run.emit(Phase(name="searching"))
    assert sent[: len(before)] == before
    resumed, phase = sent[len(before) :]
    assert isinstance(resumed, RunResumed)
    assert resumed.nodes == 2
    assert [event.seq for event in sent] == list(range(len(sent)))
    assert phase.at >= before[-1].at
    assert list(read_run(tmp_path / "log")) == sent


def test_what_is_known_is_handed_to_the_search(tmp_path: Path) -> None:
    tell(tmp_path / "log", *STORY)
    run, _ = begin(tmp_path / "log")
    assert set(run.past.nodes) == {(0,), (1,)}
    assert run.past.nodes[0,].scores == (0.5,)
    assert run.past.nodes[1,].scores is None
    assert run.past.nodes[1,].tokens == (1, 2)
    assert run.past.nodes[1,].ending is Ending.STEP


def test_repetitions_are_not_told_twice(tmp_path: Path) -> None:
    tell(tmp_path / "log", *STORY)
    run, sent = begin(tmp_path / "log")
    told = len(sent)
    for event in STORY[:7]:
        run.emit(event)
    run.emit(finished((0,), "other words by a floating-point tie"))
    assert sent[told:] == []


def test_what_is_new_is_told(tmp_path: Path) -> None:
    tell(tmp_path / "log", *STORY)
    run, sent = begin(tmp_path / "log")
    told = len(sent)
    new: list[Event] = [
        NodeOpened(lineage=(0, 0)),
        StepScored(lineage=(1,), scores=(0.1,)),
        BeamsSelected(round=0, kept=((1,),)),
        BeamsSelected(round=1, kept=((0,),)),
        finished((0, 0)),
    ]
    for event in new:
        run.emit(event)
    assert [type(event) for event in sent[told:]] == [type(event) for event in new]


def test_the_latest_answer_counts_even_if_it_was_given_before(tmp_path: Path) -> None:
    tell(tmp_path / "log", answered("a"), answered("b"))
    run, sent = begin(tmp_path / "log")
    run.emit(answered("b"))
    run.emit(answered("a"))
    run.emit(answered("a"))
    answers = [event.answer for event in sent if isinstance(event, Answered)]
    assert answers == ["a", "b", "a"]


@pytest.mark.parametrize("cut", [1, 10, 60])
def test_a_torn_last_line_is_dropped_for_good(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "log"
    before = tell(path, *STORY[:4])
    path.write_bytes(path.read_bytes()[:-cut])
    assert list(read_run(path)) == before[:-1]
    run, sent = begin(path)
    run.emit(finished((1,)))
    run.close()
    assert sent[: len(before) - 1] == before[:-1]
    assert list(read_run(path)) == sent


@pytest.mark.parametrize("first", [b"", b'{"type":"run', b'{"type":"run_started","seq":0,"a'])
def test_a_log_without_one_whole_line_starts_anew(tmp_path: Path, first: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(first)
    _, sent = begin(path)
    assert [event.seq for event in sent] == [0]
    assert list(read_run(path)) == sent


def test_a_file_that_is_no_log_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_bytes(b"my notes, no newline")
    with pytest.raises(EngineError, match="not a run log"):
        begin(path)
    assert path.read_bytes() == b"my notes, no newline"


def test_a_damaged_middle_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "log"
    tell(path, *STORY)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = b"\0" * 40 + b"\n"
    path.write_bytes(b"".join(lines))
    with pytest.raises(EngineError, match="Line 3 of the run log"):
        begin(path)
    assert path.read_bytes() == b"".join(lines)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("problem", "another"),
        ("generator", "big"),
        ("verifier", "prm"),
        ("sampling", Sampling(temperature=0.1)),
        ("seed", 2),
    ],
)
def test_a_log_of_another_request_is_refused_by_name(
    tmp_path: Path, field: str, value: object
) -> None:
    tell(tmp_path / "log", *STORY)
    content = (tmp_path / "log").read_bytes()
    with pytest.raises(EngineError, match=f"its {field} differs"):
        begin(tmp_path / "log", replace(REQUEST, **{field: value}))
    assert (tmp_path / "log").read_bytes() == content


def test_more_time_is_not_another_request(tmp_path: Path) -> None:
    tell(tmp_path / "log", *STORY)
    begin(tmp_path / "log", replace(REQUEST, time_limit=60.0))


@pytest.mark.parametrize("stop", [Stop.CANCELLED, Stop.TIME])
def test_an_ending_before_the_end_is_taken_back(tmp_path: Path, stop: Stop) -> None:
    before = tell(tmp_path / "log", *STORY, RunFinished(stop=stop, counters=Counters()))
    run, sent = begin(tmp_path / "log")
    assert not run.finished
    assert [event.seq for event in sent] == list(range(len(before)))
    assert isinstance(sent[-1], RunResumed)


def test_what_a_run_cost_is_known_when_it_goes_on(tmp_path: Path) -> None:
    cost = Counters(seconds=3.5, generated_tokens=70, helper_tokens=90, steps_drafted=4)
    flow = Throughput(generated=60, verified=50, rate=1.0, beams=1)
    tell(tmp_path / "log", *STORY, flow, RunFinished(stop=Stop.CANCELLED, counters=cost))
    run, sent = begin(tmp_path / "log")
    assert sent[-1] == replace(sent[-1], nodes=2, spent=cost)
    assert run.spent == cost
    run.close()  # killed before anything else was told
    again, _ = begin(tmp_path / "log")
    assert replace(again.spent, seconds=3.5) == cost


def test_what_a_run_cost_that_was_killed_is_known_as_far_as_it_was_told(tmp_path: Path) -> None:
    story = [
        *STORY,
        Throughput(generated=60, verified=50, rate=1.0, beams=1),
        DraftJudged(lineage=(0, 0), accepted=True, probability=0.9),
        DraftJudged(lineage=(0, 1), accepted=False, probability=0.9),
    ]
    before = tell(tmp_path / "log", *story)
    run, _ = begin(tmp_path / "log")
    assert run.spent == Counters(
        seconds=before[-1].at,
        generated_tokens=60,
        verified_tokens=50,
        steps_drafted=2,
        steps_accepted=1,
    )


def test_a_complete_run_shows_itself_again_and_that_is_all(tmp_path: Path) -> None:
    before = tell(tmp_path / "log", *STORY, RunFinished(stop=Stop.COMPLETE, counters=Counters()))
    content = (tmp_path / "log").read_bytes()
    run, sent = begin(tmp_path / "log")
    assert run.finished
    assert sent == before
    assert (tmp_path / "log").read_bytes() == content


def test_a_lost_worker_is_on_record(tmp_path: Path) -> None:
    before = tell(tmp_path / "log", *STORY)
    _, sent = begin(tmp_path / "log", cause="it crashed")
    assert [type(event) for event in sent[len(before) :]] == [WorkerRestarted, RunResumed]
    assert list(read_run(tmp_path / "log")) == sent
