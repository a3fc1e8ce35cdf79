"""Messages between a client and the worker process, one JSON document a line."""

from __future__ import annotations

import msgspec

from engine.protocol.events import (
    Answered,
    BeamsSelected,
    DraftJudged,
    DraftsDropped,
    DraftsPromoted,
    Memory,
    NodeOpened,
    NodesPruned,
    PathJudged,
    Phase,
    RunFailed,
    RunFinished,
    RunResumed,
    RunStarted,
    StepDrafted,
    StepFinished,
    StepScored,
    TextAppended,
    Throughput,
    Warned,
    WorkerRestarted,
)
from engine.protocol.request import ScoreRequest, SolveRequest

AnyEvent = (
    RunStarted
    | RunResumed
    | Phase
    | NodeOpened
    | TextAppended
    | StepFinished
    | StepScored
    | NodesPruned
    | BeamsSelected
    | DraftsPromoted
    | DraftsDropped
    | Answered
    | PathJudged
    | StepDrafted
    | DraftJudged
    | Memory
    | Throughput
    | Warned
    | WorkerRestarted
    | RunFinished
    | RunFailed
)
"""All events, as the decoder must know them."""


class Solve(msgspec.Struct, frozen=True, tag_field="type", tag="solve"):
    """Client to worker: start (or resume) a run."""

    run: str
    request: SolveRequest
    cause: str = ""
    """Why an earlier worker was lost with this run; empty at the first try."""


class Score(msgspec.Struct, frozen=True, tag_field="type", tag="score"):
    """Client to worker: score a solution. It is a run of its own, whose one node is the root."""

    run: str
    request: ScoreRequest


class Cancel(msgspec.Struct, frozen=True, tag_field="type", tag="cancel"):
    """Client to worker: stop a run within one decode step and answer with the best so far."""

    run: str


class Shutdown(msgspec.Struct, frozen=True, tag_field="type", tag="shutdown"):
    """Client to worker: end the process."""


class Hello(msgspec.Struct, frozen=True, tag_field="type", tag="hello"):
    """Worker to client: ready for requests."""

    version: int
    pid: int


class Report(msgspec.Struct, frozen=True, tag_field="type", tag="report"):
    """Worker to client: something happened in a run."""

    run: str
    event: AnyEvent
    again: bool = False
    """Whether it happened before the run was resumed and is told again from the log."""


class Pulse(msgspec.Struct, frozen=True, tag_field="type", tag="pulse"):
    """Worker to client, every second: `progress` grows with every step the engine takes."""

    progress: int
    busy: bool


Message = Solve | Score | Cancel | Shutdown | Hello | Report | Pulse
