"""Measure the shipped pair: `python -m engine.seedling.evaluate`.

Through llama.cpp, on held-out stories: one greedy solution, eight sampled ones
put to the vote or to the verifier, and a beam search led by the verifier. Right
means that the boxed answer is right.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import get_args

import numpy as np

from engine.seedling import generator_path, target_path, verifier_path
from engine.seedling.corpus import SEPARATOR, prompt
from engine.seedling.gates import auc
from engine.seedling.lanes import Lanes
from engine.seedling.problems import Kind, Problem, boxed, held_out, judge_all
from engine.seedling.tokenizer import BAD, GOOD, MARKER, TURN_END, tokenizer

GENERATORS = {"generator": generator_path, "target": target_path}
LONGEST_STEP = 40
MOST_STEPS = 8


@dataclass
class Attempt:
    """A solution under way: its steps, their scores, where its caches are."""

    lane: int
    logits: np.ndarray
    steps: list[str] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    done: bool = False

    @property
    def answer(self) -> int | None:
        return boxed(self.steps[-1]) if self.done and self.steps else None


class Pair:
    """Generator and verifier with two banks of lanes, to fork from one to the other."""

    def __init__(self, generator: Path, width: int = 8, threads: int = 1) -> None:
        self.width = width
        self.generator = Lanes(generator, 2 * width + 1, threads=threads)
        self.verifier = Lanes(verifier_path(), 2 * width + 1, threads=threads)
        ids = tokenizer().ids
        self._end = ids[TURN_END]
        self._verdict = [ids[BAD], ids[GOOD]]

    def open(self, problem: Problem, count: int, score: bool = True) -> list[Attempt]:
        """`count` empty paths on the first bank, the story read once."""
        for model in (self.generator, self.verifier):
            model.clear()
        root = 2 * self.width
        logits = self.generator.extend({root: self.generator.tokenize(prompt(problem.text))})
        if score:
            self.verifier.extend({root: self.verifier.tokenize(problem.text + SEPARATOR)})
        paths = [Attempt(lane, logits[root]) for lane in range(count)]
        for path in paths:
            self._fork(root, path.lane)
        return paths

    def _fork(self, source: int, target: int) -> None:
        self.generator.fork(source, target)
        self.verifier.fork(source, target)

    def advance(self, paths: list[Attempt], temperature: float, rng: np.random.Generator) -> None:
        """One more step for every path that is not done."""
        written: dict[int, list[int]] = {path.lane: [] for path in paths if not path.done}
        writing = [path for path in paths if not path.done]
        while writing:
            going: list[Attempt] = []
            for path in writing:
                token = draw(path.logits, temperature, rng)
                if token == self._end:
                    path.done = True
                    continue
                written[path.lane].append(token)
                going.append(path)
            if not going:
                break
            logits = self.generator.extend({p.lane: [written[p.lane][-1]] for p in going})
            for path in going:
                path.logits = logits[path.lane]
            writing = [
                path
                for path in going
                if not tokenizer().tokens[written[path.lane][-1]].endswith("ĊĊ")
                and len(written[path.lane]) < LONGEST_STEP
            ]
        for path in paths:
            text = tokenizer().decode(written.get(path.lane, [])).strip()
            if text:
                path.steps.append(text)
            path.done = path.done or len(path.steps) >= MOST_STEPS

    def score(self, paths: list[Attempt]) -> None:
        """Score the newest step of every path that has an unscored one."""
        new = [path for path in paths if len(path.scores) < len(path.steps)]
        if not new:
            return
        logits = self.verifier.extend(
            {path.lane: self.verifier.tokenize(path.steps[-1] + MARKER) for path in new}
        )
        for path in new:
            bad, good = logits[path.lane][self._verdict]
            path.scores.append(float(1 / (1 + np.exp(bad - good))))

    def sampled(
        self, problem: Problem, count: int, temperature: float, seed: int, score: bool = True
    ) -> list[Attempt]:
        """Independent solutions, scored step by step."""
        rng = np.random.default_rng(seed)
        paths = self.open(problem, count, score)
        while not all(path.done for path in paths):
            self.advance(paths, temperature, rng)
            if score:
                self.score(paths)
        return paths

    def beam(self, problem: Problem, m: int, temperature: float, seed: int) -> list[Attempt]:
        """Beam search: the best width/m paths go on, each as `m` children."""
        rng = np.random.default_rng(seed)
        paths = self.open(problem, self.width)
        while True:
            self.advance(paths, temperature, rng)
            self.score(paths)
            best = sorted(paths, key=lambda p: -p.scores[-1] if p.scores else 0.0)
            best = best[: self.width // m]
            if all(path.done for path in best):
                return paths
            # Children take the bank that their parents are not on.
            base = 0 if paths[0].lane >= self.width else self.width
            children: list[Attempt] = []
            for parent in best:
                for _ in range(m):
                    lane = base + len(children)
                    self._fork(parent.lane, lane)
                    children.append(
                        Attempt(lane, parent.logits, [*parent.steps], [*parent.scores], parent.done)
                    )
            paths = children


def draw(logits: np.ndarray, temperature: float, rng: np.random.Generator) -> int:
    """A token; temperature 0 takes the likeliest."""
    if temperature == 0:
        return int(logits.argmax())
    return int((logits / temperature + rng.gumbel(size=logits.shape)).argmax())


AGGREGATES = {
    "min": lambda scores: min(scores, default=0.0),
    "last": lambda scores: scores[-1] if scores else 0.0,
    "prod": lambda scores: math.prod(scores) if scores else 0.0,
}


def majority(paths: list[Attempt]) -> int | None:
    """The commonest answer, the first one among equals."""
    votes = Counter(path.answer for path in paths if path.answer is not None)
    return votes.most_common(1)[0][0] if votes else None


def best(paths: list[Attempt], aggregate: str) -> int | None:
    return max(paths, key=lambda path: AGGREGATES[aggregate](path.scores)).answer


def interval(share: float, count: int) -> float:
    """Half the width of the 95 % interval of a share."""
    return 1.96 * math.sqrt(share * (1 - share) / count)


def measure(pair: Pair, problems: list[Problem], temperature: float) -> dict[str, list[bool]]:
    """For each way of answering: which of the problems it solves."""
    solved: dict[str, list[bool]] = defaultdict(list)
    within: list[float] = []
    lengths: dict[int, list[bool]] = defaultdict(list)
    for number, problem in enumerate(problems):
        greedy = pair.sampled(problem, 1, 0.0, number, score=False)[0]
        paths = pair.sampled(problem, pair.width, temperature, number)
        solved["greedy"].append(greedy.answer == problem.answer)
        lengths[len(problem.program)].append(greedy.answer == problem.answer)
        right = [path.answer == problem.answer for path in paths]
        solved["one sample"].append(right[0])
        solved["oracle of 8"].append(any(right))
        solved["majority of 8"].append(majority(paths) == problem.answer)
        for name in AGGREGATES:
            solved[f"best of 8, {name}"].append(best(paths, name) == problem.answer)
        beams = pair.beam(problem, 4, temperature, number)
        for name in ("last", "min"):
            solved[f"beam n=8 m=4, {name}"].append(best(beams, name) == problem.answer)
        rated = [
            (score, label)
            for path in paths
            for score, label in zip(path.scores, judge_all(problem, path.steps), strict=True)
        ]
        value = auc([s for s, good in rated if good], [s for s, good in rated if not good])
        if not math.isnan(value):
            within.append(value)
    print(f"AUC of sampled steps within a problem: {mean(within):.3f}")
    print(
        "greedy by number of equations: "
        + ", ".join(f"{n}: {sum(lengths[n])}/{len(lengths[n])}" for n in sorted(lengths))
    )
    return solved


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m engine.seedling.evaluate")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=2024)
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--kind", choices=get_args(Kind), default="parameters")
    parser.add_argument("--generator", choices=GENERATORS, default="generator")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    pair = Pair(GENERATORS[arguments.generator](), threads=arguments.threads)
    problems = held_out(arguments.count, arguments.seed, arguments.kind)
    solved = measure(pair, problems, arguments.temperature)
    for name, results in solved.items():
        share = mean(results)
        print(f"{name:22} {100 * share:5.1f} % ± {100 * interval(share, len(results)):.1f}")


if __name__ == "__main__":
    main()
