"""What a consumer is told across a loss."""

from __future__ import annotations

from engine.client.pending import PendingRun
from engine.protocol import (
    AnyEvent,
    NodeOpened,
    RunFailed,
    RunResumed,
    RunStarted,
    SolveRequest,
    Trouble,
    WorkerRestarted,
)

REQUEST = SolveRequest(problem="p", log="log")


def opened(seq: int) -> NodeOpened:
    return NodeOpened(seq=seq, lineage=(seq,))


def told(run: PendingRun) -> list[AnyEvent]:
    return [run.events.get_nowait() for _ in range(run.events.qsize())]


def lost_after(delivered: int) -> PendingRun:
    """A run whose worker was lost after that many events, with another one on its way."""
    run = PendingRun("r", REQUEST)
    run.order()
    run.deliver(RunStarted(seq=0, run="r", request=REQUEST))
    for seq in range(1, delivered):
        run.deliver(opened(seq))
    run.lost("it crashed")
    order = run.order()
    assert order.request.resume
    assert order.cause == "it crashed"
    told(run)
    return run


def test_only_what_was_missed_is_told_of_the_log() -> None:
    run = lost_after(3)
    run.deliver(RunStarted(seq=0, run="r", request=REQUEST), again=True)
    run.deliver(WorkerRestarted(seq=1, cause="an older one crashed"), again=True)
    for seq in range(2, 5):
        run.deliver(opened(seq), again=True)
    run.deliver(WorkerRestarted(seq=5, cause="it crashed"))
    run.deliver(RunResumed(seq=6, nodes=0))
    assert [event.seq for event in told(run)] == [3, 4, 5, 6]


def test_numbers_go_on_where_the_log_had_stopped_early() -> None:
    run = lost_after(10)
    for seq in range(4):
        run.deliver(opened(seq), again=True)
    run.deliver(WorkerRestarted(seq=4, cause="it crashed"))
    run.deliver(RunResumed(seq=5, nodes=0))
    run.deliver(opened(6))
    events = told(run)
    assert [type(event) for event in events] == [WorkerRestarted, RunResumed, NodeOpened]
    assert [event.seq for event in events] == [10, 11, 12]


def test_a_run_without_a_log_starts_again_but_once() -> None:
    run = lost_after(10)
    run.deliver(RunStarted(seq=0, run="r", request=REQUEST))
    run.deliver(WorkerRestarted(seq=1, cause="it crashed"))
    run.deliver(opened(2))
    events = told(run)
    assert [type(event) for event in events] == [WorkerRestarted, NodeOpened]
    assert [event.seq for event in events] == [10, 11]


def test_a_refusal_is_told_whatever_its_number() -> None:
    run = lost_after(10)
    run.deliver(RunFailed(trouble=Trouble.STORAGE, message="the disk is gone"))
    (failed,) = told(run)
    assert failed.seq == 10
    assert run.ended


def test_the_first_order_is_the_request_itself() -> None:
    order = PendingRun("r", REQUEST).order()
    assert order.request == REQUEST
    assert order.cause == ""
