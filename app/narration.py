"""What a run has to say in words: its header line, its rounds, its end."""

from __future__ import annotations

from app.glyphs import Glyphs
from app.run_view import NOT_NEEDED, Round, RunView, State
from engine.protocol import AnyEvent, Phase, RunResumed, Stop, Warned, WorkerRestarted

PHASES = {
    "loading": "loading",
    "prefill": "reading the problem",
    "searching": "searching",
    "checking": "checking the answer",
    "judging": "judging the solutions",
}
_ENDINGS = {
    Stop.COMPLETE: "finished",
    Stop.TIME: "stopped at the time limit",
    Stop.CANCELLED: "stopped as you asked",
}


def clock(seconds: float) -> str:
    """Seconds as people read them."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def phase_line(phase: Phase, glyphs: Glyphs) -> str:
    """What the engine does now, with what the user should know of the model."""
    line = " ".join(part for part in (PHASES[phase.name], glyphs.one_line(phase.model)) if part)
    return line + (f" ({glyphs.one_line(phase.note)})" if phase.note else "")


def header(view: RunView, glyphs: Glyphs, seconds: float) -> str:
    """The state of the run on one line, the most telling first."""
    parts: list[str] = []
    if view.answered is not None:
        parts.append(f"best {answer_with_score(view, glyphs)}")
    parts.append(_activity(view.phase))
    if view.depth and view.request is not None:
        parts.append(f"depth {view.depth}/{view.request.search.max_steps}")
    if view.throughput is not None:
        flow = view.throughput
        parts += [f"{flow.beams} beams", f"{flow.generated} tokens", f"{flow.rate:.0f} tok/s"]
    if view.run:  # the engine itself takes a moment to start, which is not the run's
        parts.append(clock(seconds))
    return f" {glyphs.dot} ".join(parts)


def _activity(phase: Phase | None) -> str:
    if phase is None:
        return "starting"
    done = "" if phase.done is None else f" {phase.done:.0%}"
    return PHASES[phase.name] + done


def answer_with_score(view: RunView, glyphs: Glyphs) -> str:
    """The answer on one line, its score before it if it has one."""
    if view.answered is None or not view.answered.answer:
        return "none"
    answer = glyphs.one_line(view.answered.answer)
    score = view.answered.score
    return answer if score is None else f"{score:.2f}: {answer}"


def round_line(number: int, round: Round) -> str:
    """What one round decided."""
    parts = [f"round {number + 1}: kept {round.kept} of {round.candidates}"]
    if round.completed:
        parts.append(f"{round.completed} completed")
    if round.best is not None:
        parts.append(f"best {round.best:.2f}")
    return ", ".join(parts)


def notice(event: AnyEvent, glyphs: Glyphs) -> str | None:
    """The line for an event that people must hear of while the run goes on."""
    match event:
        case Warned():
            return f"warning: {glyphs.one_line(event.message)}"
        case WorkerRestarted():
            return f"the engine was lost ({glyphs.one_line(event.cause)}) and started again"
        case RunResumed():
            return f"going on from {event.nodes} finished steps"
    return None


def ending(view: RunView, glyphs: Glyphs) -> list[str]:
    """The end of a run: the winning path, the votes, what it cost. The answer itself is data."""
    lines: list[str] = []
    if view.answered is not None and view.leader is not None:
        lines += [
            f"{glyphs.label(node, scored=view.scored)} {glyphs.one_line(node.text)}"
            for node in view.leader.path()
        ]
        if len(view.answered.votes) > 1:
            lines.append(_votes(view, glyphs))
    if view.finished is not None:
        if not (view.answered and view.answered.answer):
            lines.append("no answer")
        lines.append(_cost(view, glyphs))
    return lines


def _votes(view: RunView, glyphs: Glyphs) -> str:
    assert view.answered is not None
    weighed = view.answered.score is not None
    tally = [
        f"{glyphs.one_line(vote.answer) or 'none'} x{vote.count}"
        + (f" ({vote.weight:.2f})" if weighed else "")
        for vote in view.answered.votes
    ]
    return "votes: " + f" {glyphs.dot} ".join(tally)


def _cost(view: RunView, glyphs: Glyphs) -> str:
    assert view.finished is not None
    cost = view.finished.counters
    pruned = sum(
        node.state is State.PRUNED and node.reason != NOT_NEEDED for node in view.nodes.values()
    )
    parts = [
        f"{_ENDINGS[view.finished.stop]} in {clock(cost.seconds or view.finished.at)}",
        f"{cost.nodes or len(view.nodes)} steps, {pruned} pruned",
        f"{cost.generated_tokens or sum(node.tokens for node in view.nodes.values())} tokens",
    ]
    if cost.steps_drafted:
        parts.append(f"{cost.steps_accepted} of {cost.steps_drafted} drafts accepted")
    elif cost.helper_tokens:
        parts.append(f"{cost.accepted_tokens} of {cost.helper_tokens} drafted tokens accepted")
    if cost.verified_tokens:
        parts.append(f"{cost.verified_tokens} verified")
    return f" {glyphs.dot} ".join(parts)
