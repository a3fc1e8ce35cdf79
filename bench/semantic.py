"""Drafts by a second model: `python -m bench.semantic --data FOLDER`.

Every held-out problem is solved once by every way of writing, which take turns: one path, sampled.
FOLDER holds the labelled samples of `sapwood probe collect` and `label`, from which the predictors
are trained at the start, and kept there. Random acceptance accepts the share of steps that semantic
acceptance was measured to accept on other problems, once without and once with a floor.

`--noise` compares predictors that learnt from labels of which a part was replaced by random ones;
`--lengths` measures speculative decoding by the number of tokens drafted at once.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from app.accuracy import wilson
from bench.accuracy import difference_interval
from bench.table import markdown
from engine import answers, search, seedling
from engine.client import probing
from engine.models.kv_tree import KvTree
from engine.models.llama import LlamaModel, LlamaWeights
from engine.models.sampling import Sampler
from engine.models.stop import StopSignal
from engine.scheduling.paired import Drafter
from engine.scheduling.past import Past
from engine.scheduling.scheduler import Scheduler
from engine.scheduling.settings import EXACT, Limits
from engine.seedling.problems import Problem, held_out, training_problems
from engine.semantic.acceptance import Acceptance
from engine.semantic.data import Folder
from engine.semantic.features import FEATURES, Feature
from engine.semantic.judges import ByMeaning, ByTokens, Judging
from engine.semantic.predictors import load
from engine.service.drafting import paired

LIMITS = Limits(40, 256)
MAX_STEPS = 8
NOISES = (0.0, 0.1, 0.3, 0.5)
LENGTHS = (1, 2, 4, 8)
_TOKENS = 4
_CALIBRATION = 60
_TARGET, _DRAFT = "target alone", "draft alone"
_RANDOM = "random acceptance"
FLOOR = 0.9
"""Of the ratio of probabilities, in the way that has one."""


@dataclass(frozen=True)
class Models:
    """Caches on the two models' weights."""

    target: LlamaModel
    draft: LlamaModel


@dataclass(frozen=True)
class Way:
    """A way of writing."""

    name: str
    models: Models
    judging: Judging | None = None
    """None writes with the target alone."""


@dataclass
class Tally:
    """What came of a way so far."""

    solved: list[bool] = field(default_factory=list)
    seconds: float = 0.0
    tokens: int = 0
    by_target: int = 0
    """Of `tokens`, those that the target sampled."""
    by_draft: int = 0
    """Sampled by the draft model, whatever became of them."""
    drafted: int = 0
    accepted: int = 0
    """Steps."""


class Bench:
    """Two models, opened once."""

    def __init__(self, stack: ExitStack, paths: int = 8) -> None:
        self.weights = [
            LlamaWeights(path) for path in (seedling.target_path(), seedling.generator_path())
        ]
        for weights in self.weights:
            stack.callback(weights.close)
        self.template = self.weights[0].template
        self.plain = self._open(stack, paths, all_layers=False)
        self.inside = self._open(stack, paths, all_layers=True)
        small = Models(self.plain.draft, self.plain.draft)
        self.target = Way(_TARGET, self.plain)
        self.draft = Way(_DRAFT, small)

    def _open(self, stack: ExitStack, paths: int, *, all_layers: bool) -> Models:
        models = [
            LlamaModel(
                weights,
                capacity=4096,
                paths=paths,
                outputs=64,
                stop=StopSignal(),
                all_layers=all_layers,
            )
            for weights in self.weights
        ]
        for model in models:
            stack.enter_context(closing(model))
        return Models(*models)

    def semantic(self, name: str, data: Path, kind: Feature, noise: float = 0.0) -> Way:
        """Semantic acceptance with predictors that are trained if they are not there."""
        pair = data / "pairs" / f"{kind}-{noise:g}"
        if not (pair / probing.TARGET_FILE).exists():
            probing.train(data, pair, kind, seed=0, noise=noise)
        about = Folder(data).about()
        draft = load(pair / probing.DRAFT_FILE, "draft", about.draft)
        target = load(pair / probing.TARGET_FILE, "target", about.target)
        report = probing.evaluate(data, pair, floor=0.0)
        print(
            f"{name}: correlation {report.draft.correlation:.3f} (draft), "
            f"{report.target.correlation:.3f} (target); accepts {report.agreement.accepted:.1%}; "
            f"the target means {report.agreement.meant_accepted:.1%} of what is accepted, "
            f"{report.agreement.meant_rejected:.1%} of the rest",
            flush=True,
        )
        models = self.plain if kind == "last" else self.inside
        return Way(name, models, ByMeaning(kind, draft, target))

    def floored(self, like: Way) -> Way:
        """Semantic acceptance with a floor."""
        assert isinstance(like.judging, ByMeaning)
        judging = replace(like.judging, acceptance=Acceptance(floor=FLOOR))
        return Way(f"{like.name}, floor {FLOOR}", like.models, judging)

    def random(self, like: Way) -> Way:
        """Random acceptance of as many steps as another way accepts."""
        tally = Tally()
        for number, problem in enumerate(islice(training_problems(77), _CALIBRATION)):
            self.solve(like, problem, number, tally)
        share = tally.accepted / max(1, tally.drafted)
        name = f"{_RANDOM} of {share:.0%}"
        print(f"{name}, as {like.name}", flush=True)
        judging = ByMeaning(
            "last", lambda rows: np.ones(len(rows)), lambda rows: np.full(len(rows), share)
        )
        return Way(name, self.plain, judging)

    def solve(self, way: Way, problem: Problem, seed: int, tally: Tally) -> None:
        """Write one path and add what came of it."""
        target, draft = way.models.target, way.models.draft
        policy = search.build("majority", n=1, max_steps=MAX_STEPS, step_tokens=LIMITS.step)
        begin = time.perf_counter()
        prompt = self.template.ask(target.vocabulary, problem.text)
        drafter = None if way.judging is None else Drafter(draft, KvTree(draft), way.judging)
        scheduler = Scheduler(
            target,
            None,
            policy,
            Sampler(0.8),
            prompt=prompt,
            seed=seed,
            limits=LIMITS,
            emit=lambda event: None,
            past=Past(),
            mode=paired(EXACT),
            drafter=drafter,
        )
        for _ in scheduler.run():
            pass
        tally.seconds += time.perf_counter() - begin
        choice = answers.choose(
            policy.final(scheduler.completed) or scheduler.frontier(),
            "first",
            partial(search.aggregate, "last"),
        )
        scheduler.close()
        right = choice is not None and answers.equivalent(choice.answer, str(problem.answer))
        tally.solved.append(right)
        counts = scheduler.counts
        tally.tokens += counts.generated
        by_draft_alone = way.models.target is way.models.draft
        tally.by_target += 0 if by_draft_alone else counts.generated - counts.accepted
        tally.by_draft += counts.generated if by_draft_alone else counts.helper
        tally.drafted += counts.steps_drafted
        tally.accepted += counts.steps_accepted


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.semantic", description=__doc__)
    parser.add_argument("--data", type=Path, help="labelled samples")
    parser.add_argument("--problems", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--noise", action="store_true")
    parser.add_argument("--lengths", action="store_true")
    options = parser.parse_args()
    if options.data is None and not options.lengths:
        parser.error("--data is needed for all but --lengths")
    with ExitStack() as stack:
        bench = Bench(stack)
        ways = list(_ways(bench, options))
        tallies = measure(bench, ways, held_out(options.problems, options.seed), options.seed)
    print(table(tallies))
    print(comparisons(tallies))


def _ways(bench: Bench, options: argparse.Namespace) -> Iterator[Way]:
    yield bench.target
    if options.lengths:
        yield bench.draft
        for length in LENGTHS:
            yield Way(f"{length} tokens drafted", bench.plain, ByTokens(length))
    elif options.noise:
        clean: Way | None = None
        for noise in NOISES:
            way = bench.semantic(f"{noise:.0%} of labels random", options.data, "last", noise)
            clean = clean or way
            yield way
        assert clean is not None
        yield bench.random(clean)
    else:
        yield bench.draft
        yield Way(f"speculative decoding, {_TOKENS} tokens", bench.plain, ByTokens(_TOKENS))
        semantic = [bench.semantic(f"semantic, {kind}", options.data, kind) for kind in FEATURES]
        yield from semantic
        floored = bench.floored(semantic[0])
        yield floored
        yield bench.random(semantic[0])
        yield bench.random(floored)


def measure(
    bench: Bench, ways: Sequence[Way], problems: Sequence[Problem], seed: int
) -> dict[str, Tally]:
    """What becomes of every problem with every way, which take turns."""
    tallies = {way.name: Tally() for way in ways}
    for way in ways:  # so that nobody pays for the first pass
        bench.solve(way, problems[0], 0, Tally())
    for number, problem in enumerate(problems, 1):
        for way in ways:
            bench.solve(way, problem, seed * 1_000_000 + number, tallies[way.name])
        if number % 25 == 0 or number == len(problems):
            told = (f"{name} {sum(t.solved)} in {t.seconds:.1f} s" for name, t in tallies.items())
            print(f"{number}/{len(problems)}: {', '.join(told)}", file=sys.stderr, flush=True)
    return tallies


def table(tallies: dict[str, Tally]) -> str:
    rows: list[list[str]] = []
    alone = tallies[_TARGET].seconds
    for name, tally in tallies.items():
        count = len(tally.solved)
        low, high = wilson(sum(tally.solved), count)
        rows.append(
            [
                name,
                f"{100 * sum(tally.solved) / count:.1f}",
                f"{100 * low:.1f} to {100 * high:.1f}",
                f"{tally.by_target / count:.1f}",
                f"{tally.by_draft / count:.1f}",
                f"{tally.by_target / max(1, tally.tokens):.0%}",
                f"{tally.accepted / tally.drafted:.0%}" if tally.drafted else "",
                f"{tally.seconds / count:.4f}",
                f"{tally.tokens / tally.seconds:.0f}",
                f"{alone / tally.seconds:.2f}",
            ]
        )
    header = [
        "",
        "pass@1, %",
        "95 %",
        "tokens by target",
        "by draft",
        "target's share",
        "steps accepted",
        "seconds",
        "tokens/s",
        "times target alone",
    ]
    return markdown("One path for each held-out problem, means", header, rows)


def comparisons(tallies: dict[str, Tally]) -> str:
    """Each way against the target alone, and against random acceptance."""
    rows: list[list[str]] = []
    rivals = [name for name in tallies if name == _TARGET or name.startswith(_RANDOM)]
    for rival in rivals:
        for name, tally in tallies.items():
            if name in (_TARGET, rival):
                continue
            paired_results = list(zip(tally.solved, tallies[rival].solved, strict=True))
            gained = sum(ours and not theirs for ours, theirs in paired_results)
            lost = sum(theirs and not ours for ours, theirs in paired_results)
            low, high = difference_interval(gained, lost, len(paired_results))
            rows.append(
                [
                    f"{name} - {rival}",
                    f"{100 * (gained - lost) / len(paired_results):+.1f}",
                    f"{100 * low:+.1f} to {100 * high:+.1f}",
                ]
            )
    return markdown("Paired differences of pass@1", ["", "points", "95 %"], rows)


if __name__ == "__main__":
    main()
