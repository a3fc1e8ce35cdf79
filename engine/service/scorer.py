"""Scores solutions, keeping the verifier for the next one."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from engine.models.base import Interrupted
from engine.models.chat import ChatTemplate
from engine.models.gguf import read_header
from engine.models.llama import LlamaModel, LlamaWeights
from engine.protocol import Counters, RunFinished, StepScored, Stop
from engine.service.announcing import announce
from engine.service.judge import Judge, find_judge
from engine.service.scoring import Scoring
from engine.verify.prm import Prm

_CONTEXT = 4096
_PATHS = 2
"""The solution, and the problem it starts from."""


@dataclass(frozen=True, slots=True)
class _Held:
    path: Path
    context: int
    weights: LlamaWeights
    model: LlamaModel
    template: ChatTemplate

    def close(self) -> None:
        self.model.close()
        self.weights.close()


class Scorer:
    """One verifier at a time."""

    def __init__(self) -> None:
        self._held: _Held | None = None

    def close(self) -> None:
        """Give all memory back."""
        if self._held is not None:
            self._held.close()
            self._held = None

    def score(self, scoring: Scoring) -> None:
        """Emit the scores of all steps, and `RunFinished` last.

        Raises:
            EngineError: the verifier cannot be used, or the solution is too long for it.
        """
        started = time.monotonic()
        scoring.check()
        request = scoring.request
        judge = find_judge(request.verifier, request.prm_format)
        try:
            held = self._have(judge, request.context or _CONTEXT, scoring)
            prm = Prm(held.model, judge.bound(held.model, held.template), request.problem.strip())
            (judged,) = prm.score([(prm.root, request.steps)])
        except Interrupted:
            scoring.emit(RunFinished(stop=Stop.CANCELLED, counters=Counters()))
            return
        scoring.emit(StepScored(lineage=(), scores=judged.scores_since(prm.root)))
        counters = Counters(
            seconds=time.monotonic() - started,
            verified_tokens=prm.fed_tokens,
            verifier_tree_tokens=prm.unique_tokens(),
        )
        scoring.emit(RunFinished(stop=Stop.COMPLETE, counters=counters))

    def _have(self, judge: Judge, context: int, scoring: Scoring) -> _Held:
        """The verifier with an empty cache."""
        held = self._held
        if held is None or held.path != judge.path or held.context != context:
            self.close()
            held = self._held = _open(judge, context, scoring)
        held.model.reset()
        held.model.watch(scoring.stop)
        return held


def _open(judge: Judge, context: int, scoring: Scoring) -> _Held:
    header = read_header(judge.path)
    loading = announce(scoring, judge.path)

    def progress(done: float) -> bool:
        loading(header, done)
        return not scoring.stop.is_set

    weights = LlamaWeights(judge.path, header, progress)
    try:
        model = LlamaModel(
            weights,
            capacity=-(-min(context, weights.trained_context) // 256) * 256,
            paths=_PATHS,
            outputs=judge.markers,
            stop=scoring.stop,
        )
    except BaseException:
        weights.close()
        raise
    template = ChatTemplate(
        weights.header.text("tokenizer.chat_template"),
        bos=weights.vocabulary.bos.decode(errors="replace"),
        eos=weights.vocabulary.eos.decode(errors="replace"),
    )
    return _Held(judge.path, context, weights, model, template)
