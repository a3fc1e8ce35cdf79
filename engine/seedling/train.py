"""Train the seedling from scratch: `python -m engine.seedling.train`.

One language model is trained on solved stories. An early snapshot of it, which
still makes mistakes, is the generator. The verifier grows out of the finished
one, since it must know more than the generator does: it gets two more layers,
in which to compare what is written with what was expected, and learns to label
the steps of corrupted solutions and of those the generator wrote.

Two processes with one thread each: while the language model is finished, its
snapshot already writes solutions. Seeds and numbers of steps are fixed, time
decides nothing.

`target` trains a larger language model, for which the generator may write drafts.
It keeps what it has got to in the work folder, and goes on from there.
"""

from __future__ import annotations

import argparse
import os
import pickle
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.seedling import gates, generator_path, target_path, verifier_path
from engine.seedling.corpus import (
    IGNORE,
    Document,
    Row,
    Solutions,
    generator_rows,
    verifier_document,
    verifier_rows,
)
from engine.seedling.export import export
from engine.seedling.gates import Mark
from engine.seedling.model import Model, Shape
from engine.seedling.optimise import Optimiser, count
from engine.seedling.problems import Problem, held_out, judge_all, training_problems
from engine.seedling.sample import sample
from engine.seedling.tokenizer import BAD, GOOD, tokenizer

SEED = 1
ROW = 256
ROWS = 12

GENERATOR = Shape(width=128, layers=4, heads=4, inner=384)
VERIFIER = Shape(width=128, layers=6, heads=4, inner=384)
TARGET = Shape(width=256, layers=6, heads=8, inner=640)

# (steps, share of the tokens that stories get, the rest being equations)
LANGUAGE_PHASES = ((150, 0.5), (350, 0.8))
TARGET_PHASES = ((100, 0.5), (140, 0.8))
GENERATOR_AT = 240

SAMPLED_PROBLEMS, SAMPLES_EACH = 3000, 6
EXAM_PROBLEMS = 100
# (steps, share of stories, and among these of stories the generator solved).
# Corrupted solutions come first: their mistakes lie anywhere, so that only
# checking finds them, whereas a generator's lie where position gives them away.
VERIFIER_PHASES = ((400, 0.65, 0.0), (600, 0.85, 0.5))
VERIFIER_EXAMS = (200, 400, 600, 800, 1000)
LABEL, DENSE, TEXT = 1.0, 0.7, 0.5


class Batch:
    """Rows as tensors, with the mask that keeps documents and branches apart."""

    def __init__(self, rows: list[Row]) -> None:
        def stack(name: str) -> Tensor:
            lists = [getattr(row, name) for row in rows]
            assert all(len(values) == rows[0].size for values in lists), name
            return torch.tensor(lists)

        self.tokens, self.positions = stack("tokens"), stack("positions")
        self.text, self.label, self.dense = stack("text"), stack("label"), stack("dense")
        self.segment = stack("segment")
        place = torch.arange(self.tokens.shape[1])
        own = self.segment[:, :, None] == self.segment[:, None, :]
        trunk = stack("trunk")[:, :, None] == self.segment[:, None, :]
        seen = place < stack("limit")[:, :, None]
        causal = place[:, None] >= place
        self.mask = ((own & causal) | (trunk & seen))[:, None]

    def hidden(self, model: Model) -> Tensor:
        return model(self.tokens, self.positions, self.mask)


def take(rows: Iterator[Row], number: int = ROWS) -> Batch:
    return Batch([next(rows) for _ in range(number)])


def judge_logits(model: Model, hidden: Tensor) -> Tensor:
    """Logits of (bad, good), in the order of the labels 0 and 1."""
    ids = tokenizer().ids
    return functional.linear(hidden, model.token_embd.weight[[ids[BAD], ids[GOOD]]])


class Log:
    """Means of the losses since the last report, each for itself."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.started = time.monotonic()
        self.sums: defaultdict[str, float] = defaultdict(float)
        self.counts: defaultdict[str, int] = defaultdict(int)

    def add(self, **losses: Tensor) -> None:
        for name, loss in losses.items():
            self.sums[name] += loss.item()
            self.counts[name] += 1

    def say(self, message: str) -> None:
        minutes = (time.monotonic() - self.started) / 60
        print(f"{self.name} {minutes:5.1f} min  {message}", flush=True)

    def report(self, step: int) -> None:
        means = "  ".join(f"{n} {self.sums[n] / self.counts[n]:.4f}" for n in self.sums)
        self.say(f"step {step}  {means}")
        self.sums.clear()
        self.counts.clear()


def train_language(work: Path) -> None:
    """The language model that the generator and the verifier come from."""
    torch.manual_seed(SEED)
    model = Model(GENERATOR)

    def snapshot(done: int) -> None:
        if done == GENERATOR_AT:
            export(model, generator_path(), "generator")
            save(model, work / "generator.pt")

    _learn_language(Log("language"), model, LANGUAGE_PHASES, work / "language-state.pt", snapshot)
    save(model, work / "language.pt")


def train_target(work: Path) -> None:
    """A larger language model, finished."""
    torch.manual_seed(SEED)
    model = Model(TARGET)
    _learn_language(Log("target"), model, TARGET_PHASES, work / "target-state.pt")
    export(model, target_path(), "target")
    save(model, work / "target.pt")


def _learn_language(
    log: Log,
    model: Model,
    phases: Sequence[tuple[int, float]],
    state: Path,
    snapshot: Callable[[int], None] = lambda done: None,
) -> None:
    """Text loss on solutions and on the results of bare equations.

    `state` holds what is needed to go on from the last report.
    """
    total = sum(steps for steps, _ in phases)
    optimiser = Optimiser([model], total)
    log.say(f"{count(model)} parameters, {total} steps")
    begun = resume(state, model, optimiser)
    stream = chain.from_iterable(
        islice(generator_rows(SEED * 100 + phase, ROW, share), steps * ROWS)
        for phase, (steps, share) in enumerate(phases)
    )
    for done in range(1, total + 1):
        batch = take(stream)
        if done <= begun:
            continue
        wanted = batch.text != IGNORE
        hidden = batch.hidden(model)[wanted]
        losses = functional.cross_entropy(
            model.logits(hidden), batch.text[wanted], reduction="none"
        )
        losses.mean().backward()
        optimiser.step()
        drill = (batch.label != IGNORE).roll(-2, 1)[wanted]
        log.add(story=losses[~drill].mean(), equations=losses[drill].mean())
        snapshot(done)
        if done % 50 == 0:
            log.report(done)
            log.say(f"greedy solves {_solves(model, 200):.3f} of held-out stories")
        if done % 20 == 0:
            keep(state, model, optimiser)


def keep(path: Path, model: Model, optimiser: Optimiser) -> None:
    """Write all that training needs to go on, under its name only once it is whole."""
    part = path.with_suffix(".part")
    states = [each.state_dict() for each in optimiser.optimisers]
    torch.save({"model": model.state_dict(), "states": states, "done": optimiser.done}, part)
    part.rename(path)


def resume(path: Path, model: Model, optimiser: Optimiser) -> int:
    """Take up what `keep` wrote, if there is any; the steps done."""
    if path.exists():
        kept = torch.load(path)
        model.load_state_dict(kept["model"])
        for each, state in zip(optimiser.optimisers, kept["states"], strict=True):
            each.load_state_dict(state)
        optimiser.done = kept["done"]
    return optimiser.done


def save(model: Model, path: Path) -> None:
    """Write the weights under their name only once they are whole."""
    part = path.with_suffix(".part")
    torch.save(model.state_dict(), part)
    part.rename(path)


def await_weights(path: Path, log: Log) -> dict[str, Tensor]:
    """The weights that the other process writes, as soon as they are there."""
    if not path.exists():
        log.say(f"waiting for {path.name}")
    while not path.exists():
        time.sleep(1)
    weights: dict[str, Tensor] = torch.load(path)
    return weights


def _solves(model: Model, number: int) -> float:
    """The share of held-out stories that it solves greedily, every step right."""
    problems = held_out(number, seed=7)
    written = sample(model, [problem.text for problem in problems], 1, temperature=0.0, seed=SEED)
    right = [
        len(steps) == len(p.steps) and all(judge_all(p, steps))
        for p, (steps,) in zip(problems, written, strict=True)
    ]
    return sum(right) / number


def write_solutions(generator: Model) -> list[tuple[Problem, Solutions]]:
    """Let the generator solve training stories, for the verifier to learn from."""
    stream = training_problems(SEED * 100 + 50)
    chosen = [next(stream) for _ in range(SAMPLED_PROBLEMS)]
    texts = [problem.text for problem in chosen]
    written = sample(generator, texts, SAMPLES_EACH, temperature=1.0, seed=SEED)
    return list(zip(chosen, written, strict=True))


def trimmed(problem: Problem, solutions: Solutions) -> Solutions:
    """Each solution once, up to two steps after its first wrong one.

    What follows a mistake is plentiful and teaches little.
    """
    kept = (
        tuple(solution[: judge_all(problem, solution).count(True) + 3]) for solution in solutions
    )
    return list(dict.fromkeys(kept))


def train_verifier(work: Path) -> None:
    """Three losses: the label at each marker, right-so-far everywhere, text."""
    log = Log("verifier")
    solutions = work / "solutions.pickle"
    if not solutions.exists():
        generator = Model(GENERATOR)
        generator.load_state_dict(await_weights(work / "generator.pt", log))
        solutions.write_bytes(pickle.dumps(write_solutions(generator)))
    sampled: list[tuple[Problem, Solutions]] = pickle.loads(solutions.read_bytes())
    sampled = [(problem, trimmed(problem, written)) for problem, written in sampled]
    taught, asked = sampled[:-EXAM_PROBLEMS], sampled[-EXAM_PROBLEMS:]
    exam = {
        "corrupted": gates.story_documents(150, 7, ROW),
        "sampled": [verifier_document(problem, written, 2 * ROW) for problem, written in asked],
    }
    equations = gates.equation_documents(600, seed=7)

    torch.manual_seed(SEED)
    model = Model(VERIFIER)
    # A new layer adds nothing to begin with: at first this is the language model.
    model.load_state_dict(await_weights(work / "language.pt", log), strict=False)
    dense_head = nn.Linear(VERIFIER.width, 2)  # thrown away after training
    total = sum(steps for steps, _, _ in VERIFIER_PHASES)
    optimiser = Optimiser([model, dense_head], total, fall=0.75)
    log.say(f"{count(model)} parameters, {total} steps")
    stream = chain.from_iterable(
        islice(verifier_rows(SEED * 100 + phase, ROW, share, taught, sampled_share), steps * ROWS)
        for phase, (steps, share, sampled_share) in enumerate(VERIFIER_PHASES)
    )
    for _ in range(total):
        batch = take(stream)
        hidden = batch.hidden(model)
        label, dense, text = (
            _loss(logits, target)
            for logits, target in (
                (judge_logits(model, hidden), batch.label),
                (dense_head(hidden), batch.dense),
                (model.logits(hidden), batch.text),
            )
        )
        (LABEL * label + DENSE * dense + TEXT * text).backward()
        optimiser.step()
        log.add(label=label, dense=dense, text=text)
        if optimiser.done in (1, 20) or optimiser.done % 50 == 0:
            log.report(optimiser.done)
        if optimiser.done in VERIFIER_EXAMS:
            for name, documents in exam.items():
                results = gates.report(examine(model, equations), examine(model, documents))
                values = "  ".join(f"{gate} {value:.3f}" for gate, value in results.items())
                log.say(f"{name}: {values}")
            save(model, work / f"verifier-{optimiser.done}.pt")
    export(model, verifier_path(), "verifier")


def _loss(logits: Tensor, target: Tensor) -> Tensor:
    return functional.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=IGNORE)


@torch.no_grad()
def examine(model: Model, documents: list[Document]) -> list[list[Mark]]:
    """The scores at every marker of every document."""
    size = max(map(len, documents))
    marks: list[list[Mark]] = []
    for start in range(0, len(documents), 32):
        some = documents[start : start + 32]
        rows = []
        for document in some:
            row = Row(size)
            row.put(document)
            row.pad()
            rows.append(row)
        batch = Batch(rows)
        scores = torch.softmax(judge_logits(model, batch.hidden(model)), -1)[..., 1]
        for index, document in enumerate(some):
            marks.append(
                [
                    Mark(document.segment[place], label == 1, float(scores[index, place]))
                    for place, label in enumerate(document.label)
                    if label != IGNORE
                ]
            )
    return marks


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m engine.seedling.train", description=__doc__)
    makers = {"language": train_language, "verifier": train_verifier, "target": train_target}
    parser.add_argument("part", nargs="?", choices=("all", *makers), default="all")
    parser.add_argument("--work", type=Path, default=Path("build/seedling"))
    arguments = parser.parse_args()
    work: Path = arguments.work
    torch.set_num_threads(1)
    if arguments.part != "all":
        work.mkdir(parents=True, exist_ok=True)
        makers[arguments.part](work)
        return
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    command = [sys.executable, "-m", "engine.seedling.train", "--work", str(work)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    for parts in (("language", "verifier"), ("target",)):
        running = [subprocess.Popen([*command, part], env=environment) for part in parts]
        if failed := max(abs(process.wait()) for process in running):
            sys.exit(failed)


if __name__ == "__main__":
    main()
