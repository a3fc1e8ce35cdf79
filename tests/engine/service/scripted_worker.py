"""A worker whose solver grows a small tree by rule and, when told so, misbehaves.

Run as a program it serves a client like the real one. The first word of the problem says what
goes wrong, in the middle of the run; `once` before it makes only the first process do it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from engine.errors import EngineError
from engine.protocol import (
    Answered,
    BeamsSelected,
    Counters,
    NodeOpened,
    NodesPruned,
    Phase,
    RunFinished,
    StepFinished,
    StepScored,
    Stop,
    TextAppended,
    Trouble,
)
from engine.service.run import Run
from engine.service.scoring import Scoring
from engine.service.worker import main

Lineage = tuple[int, ...]


class CancelledError(Exception):
    pass


class ScriptedSolver:
    """Beam search over made-up words: `n` beams, `width` children, `max_steps` rounds."""

    def score(self, scoring: Scoring) -> Iterator[None]:
        yield
        self.words = scoring.request.problem.split()
        self.misbehave()
        scoring.emit(StepScored(lineage=(), scores=(0.5,) * len(scoring.request.steps)))
        scoring.emit(RunFinished(stop=Stop.COMPLETE, counters=Counters()))

    def solve(self, run: Run) -> Iterator[None]:
        yield
        self.run = run
        self.steps = 0
        self.words = run.request.problem.split()
        run.emit(Phase(name="searching"))
        stop = Stop.COMPLETE
        self.best: Lineage = ()
        try:
            self.search()
        except CancelledError:
            stop = Stop.CANCELLED
        text = "".join(_text(self.best[: i + 1]) for i in range(len(self.best)))
        run.emit(Answered(answer="42", text=text, lineage=self.best, score=0.5))
        run.emit(RunFinished(stop=stop, counters=Counters(nodes=self.steps)))

    def search(self) -> None:
        search = self.run.request.search
        beams: list[Lineage] = [(i,) for i in range(search.n)]
        for number in range(search.max_steps):
            for beam in beams:
                self.write(beam)
            for beam in beams:
                node = self.run.past.nodes.get(beam)
                if node is None or node.scores is None:
                    self.run.emit(StepScored(lineage=beam, scores=(_score(beam),)))
            ranked = sorted(beams, key=_score, reverse=True)
            kept = tuple(ranked[: search.n // search.width])
            self.run.emit(NodesPruned(round=number, lineages=tuple(ranked[len(kept) :])))
            self.run.emit(BeamsSelected(round=number, kept=kept))
            self.best = kept[0]
            beams = [(*beam, child) for beam in kept for child in range(search.width)]

    def write(self, lineage: Lineage) -> None:
        if lineage in self.run.past.nodes:
            return
        self.steps += 1
        self.run.emit(NodeOpened(lineage=lineage))
        words = _text(lineage).split(" ")
        for i, word in enumerate(words):
            self.pause()
            self.run.emit(TextAppended(lineage=lineage, text=word + " " * (i < len(words) - 1)))
            if self.steps == 5 and i == 2:
                self.misbehave()
        tokens = tuple(range(len(words)))
        self.run.emit(
            StepFinished(lineage=lineage, text=_text(lineage), tokens=tokens, ending="step")
        )

    def pause(self) -> None:
        for _ in range(200 if "slow" in self.words else 1):
            if self.run.stop.is_set:
                raise CancelledError
            time.sleep(0.001)

    def misbehave(self) -> None:
        match self.words:
            case ["once", what]:
                marker = Path(os.environ["SAPWOOD_HOME"]) / "once"
                if marker.exists():
                    return
                marker.touch()
            case [what, *_]:
                pass
            case _:
                return
        match what:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "hang":
                time.sleep(3600)
            case "exit":
                print("a reason: no error at all", file=sys.stderr, flush=True)
                os._exit(3)
            case "abort":
                os.write(2, b"GGML_ASSERT(1 == 2) failed\n")
                os.abort()
            case "print":
                print('{"type":"hello","version":1,"pid":1}', flush=True)
                os.write(1, b"native noise\n")
                ctypes.CDLL(None).puts(b"noise from C")
                ctypes.CDLL(None).fflush(None)
            case "memory":
                raise MemoryError
            case "defect":
                raise ValueError("no such thing")
            case "trouble":
                raise EngineError(Trouble.MODEL, "The model is damaged.", "Get it again.")
            case "full":
                import resource

                assert self.run.request.log is not None
                size = Path(self.run.request.log).stat().st_size
                resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, size + 100))

    def close(self) -> None:
        pass


def _text(lineage: Lineage) -> str:
    return f"node {'.'.join(map(str, lineage))} says so.\n\n"


def _score(lineage: Lineage) -> float:
    return sum((7 * child + 3 * depth) % 5 for depth, child in enumerate(lineage)) % 11 / 10


if __name__ == "__main__":
    main(ScriptedSolver)
