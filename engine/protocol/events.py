"""Everything that can happen in a run, one small type each.

A node is named by its lineage (child indices from the root). `seq` counts the events of a run
from 0 without gaps; `at` is seconds since the run started, on the clock of the process that runs
it (a virtual one in simulation).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

from engine.protocol.request import VERSION, SolveRequest

Lineage = tuple[int, ...]


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Base of all events."""

    seq: int = -1
    at: float = 0.0


class RunStarted(Event, frozen=True, tag="run_started"):
    """First event of every run and first line of its log."""

    run: str
    request: SolveRequest
    version: int = VERSION
    started: str = ""
    """Wall-clock time, ISO 8601 with zone."""


class Phase(Event, frozen=True, tag="phase"):
    """What the engine is busy with now."""

    name: Literal["loading", "prefill", "searching", "checking", "judging"]
    model: str = ""
    note: str = ""
    """What the user should know of the model, e.g. that it is a demonstration."""
    done: float | None = None
    """Part of the work that is done, from 0 to 1, where it is known."""


class NodeOpened(Event, frozen=True, tag="node_opened"):
    """A node starts, or starts again after an interruption: its text is empty."""

    lineage: Lineage


class TextAppended(Event, frozen=True, tag="text_appended"):
    lineage: Lineage
    text: str


class StepDrafted(Event, frozen=True, tag="step_drafted"):
    """A draft model wrote what may become a node's next text."""

    lineage: Lineage
    text: str


class DraftJudged(Event, frozen=True, tag="draft_judged"):
    """A drafted step was read by the generator: it stands, or the generator writes the step."""

    lineage: Lineage
    accepted: bool
    probability: float
    """Of being accepted."""


class StepFinished(Event, frozen=True, tag="step_finished"):
    """A node is complete. `text` is exact; `tokens` are the ids as sampled."""

    lineage: Lineage
    text: str
    tokens: tuple[int, ...]
    ending: Literal["step", "end", "length", "context"]


class StepScored(Event, frozen=True, tag="step_scored"):
    """Scores of the node's own steps: one, or more where a node runs to the end."""

    lineage: Lineage
    scores: tuple[float, ...]


class NodesPruned(Event, frozen=True, tag="nodes_pruned"):
    """Nodes that are not continued; `reason` is for people (rank among which scores)."""

    round: int
    lineages: tuple[Lineage, ...]
    reason: str = ""


class BeamsSelected(Event, frozen=True, tag="beams_selected"):
    """A group of candidates was decided."""

    round: int
    kept: tuple[Lineage, ...]
    """Survivors, best first."""
    completed: tuple[Lineage, ...] = ()
    """Nodes that end a solution in this round."""


class DraftsPromoted(Event, frozen=True, tag="drafts_promoted"):
    """Nodes that were written ahead of a decision, which has now opened them."""

    lineages: tuple[Lineage, ...]


class DraftsDropped(Event, frozen=True, tag="drafts_dropped"):
    """Nodes that were written ahead of a decision, which went another way."""

    lineages: tuple[Lineage, ...]


class AnswerGroup(msgspec.Struct, frozen=True):
    """Equivalent answers counted together."""

    answer: str
    count: int
    weight: float
    """Sum of the aggregated scores."""


class Answered(Event, frozen=True, tag="answered"):
    """The answer, which is final when the run finishes as complete."""

    answer: str
    text: str
    lineage: Lineage
    score: float | None
    votes: tuple[AnswerGroup, ...] = ()
    correct: bool | None = None
    """Whether the answer is equivalent to `SolveRequest.expected`; None where none was given."""


class ModelMemory(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that one model takes, by the sizes of its file and of its cache's cells."""

    weights: int = 0
    cache_used: int = 0
    cache_free: int = 0
    """Reserved for tokens to come."""
    buffers: int = 0
    """For computing, logits and the vocabulary; an estimate."""
    offloaded: int = 0
    """Weights and cache that are off the device while another model works; in none of the above."""


class PathJudged(Event, frozen=True, tag="path_judged"):
    """Scores that a completed path was given by the model that ranks at the end: one a step, or
    one in all; none where it had no room."""

    lineage: Lineage
    scores: tuple[float, ...]


class Memory(Event, frozen=True, tag="memory"):
    """What the engine's memory is used for."""

    process: int
    """Resident bytes of the engine's process, as measured."""
    generator_cells: int
    generator_capacity: int
    verifier_cells: int = 0
    verifier_capacity: int = 0
    device: str = ""
    """Name of the memory that `budget` is of; empty in logs of older versions."""
    budget: int = 0
    """Bytes of `device` that may be used in all; 0 in logs of older versions."""
    generator: ModelMemory = ModelMemory()
    verifier: ModelMemory = ModelMemory()
    draft: ModelMemory = ModelMemory()


class Throughput(Event, frozen=True, tag="throughput"):
    """Sent about twice a second while searching."""

    generated: int
    """Tokens sampled so far."""
    verified: int
    """Tokens the verifier was fed so far."""
    rate: float
    """Sampled tokens a second, over the last interval."""
    beams: int
    """Paths being written now."""


class Warned(Event, frozen=True, tag="warned"):
    """Something the user should know; the run goes on."""

    code: str
    message: str


class WorkerRestarted(Event, frozen=True, tag="worker_restarted"):
    """The engine's process was lost (`cause`) and a new one runs; the run resumes or fails next."""

    cause: str


class Stop(StrEnum):
    """Why a run finished."""

    COMPLETE = "complete"
    TIME = "time"
    CANCELLED = "cancelled"


class Counters(msgspec.Struct, frozen=True, kw_only=True):
    """What a run cost, with all that came before where it was resumed."""

    seconds: float = 0.0
    generated_tokens: int = 0
    """Tokens sampled."""
    prefill_tokens: int = 0
    """Tokens fed to the generator without sampling: prompt, and paths computed again."""
    recomputed_tokens: int = 0
    """Of `prefill_tokens`, those whose cache had been dropped."""
    evicted_tokens: int = 0
    """Tokens whose cache was dropped, or moved to host memory, to make room."""
    restored_tokens: int = 0
    """Tokens whose cache came back from host memory."""
    draft_tokens: int = 0
    """Of `generated_tokens`, those sampled ahead of a decision."""
    dropped_tokens: int = 0
    """Of `draft_tokens`, those that were of no use."""
    verified_tokens: int = 0
    """Tokens fed to the verifier."""
    verifier_tree_tokens: int = 0
    """Unique tokens of the verifier's tree: what had to be fed at least."""
    decode_steps: int = 0
    nodes: int = 0
    completions: int = 0
    helper_tokens: int = 0
    """Sampled by a draft model."""
    accepted_tokens: int = 0
    """Of `generated_tokens`, those that a draft model wrote."""
    steps_drafted: int = 0
    """Steps that a draft model wrote and the generator judged."""
    steps_accepted: int = 0
    turns: int = 0
    """Where the models take turns: how often one left and the other came back."""
    turn_seconds: float = 0.0
    """Of `seconds`, what that took."""
    ties_flipped: int = 0
    """On resume: nodes whose text came out different from the log's (floating-point ties)."""


class RunResumed(Event, frozen=True, tag="run_resumed"):
    """The run goes on from its log, which holds `nodes` finished nodes."""

    nodes: int
    spent: Counters = Counters()
    """What it had cost until then, as far as the log tells; nothing in logs of older versions."""


class RunFinished(Event, frozen=True, tag="run_finished"):
    stop: Stop
    counters: Counters


class Trouble(StrEnum):
    """Kinds of failure; each has its exit code in the CLI."""

    USAGE = "usage"
    """The request cannot be done as asked."""
    MODEL = "model"
    """A model file is missing, damaged or of the wrong kind."""
    MEMORY = "memory"
    """Out of memory."""
    STORAGE = "storage"
    """A file could not be written."""
    ENGINE = "engine"
    """The engine's process was lost or has a defect."""


class RunFailed(Event, frozen=True, tag="run_failed"):
    """The run cannot go on. Whatever is in the log stays."""

    trouble: Trouble
    message: str
    """What happened and what it means."""
    advice: str = ""
    """What to do."""
    forcible: bool = False
    """Whether the same request with `force` is tried all the same."""
