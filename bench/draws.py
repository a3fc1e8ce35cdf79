"""Are tokens of speculative decoding drawn from the target's distribution? `python -m bench.draws`.

A result and the word after it are drawn 10,240 times, with drafts of two tokens, and their counts
compared with the probabilities that the target alone gives them (chi-square).
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from contextlib import ExitStack

from bench.semantic import Bench
from engine import search
from engine.models.base import Span
from engine.models.kv_tree import KvTree
from engine.models.llama import LlamaModel
from engine.models.sampling import Sampler
from engine.protocol.events import Event, StepFinished
from engine.scheduling.paired import Drafter
from engine.scheduling.past import Past
from engine.scheduling.scheduler import Scheduler
from engine.scheduling.settings import EXACT, Limits
from engine.seedling.problems import held_out
from engine.semantic.judges import ByTokens, distribution
from engine.service.drafting import paired

PATHS = 64
SAMPLER = Sampler(1.5)
_LEAST = 5
"""Expected draws of a pair of tokens that is counted by itself."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.draws")
    parser.add_argument("--searches", type=int, default=160, help=f"of {PATHS} draws each")
    options = parser.parse_args()
    begin = time.perf_counter()
    with ExitStack() as stack:
        bench = Bench(stack, paths=PATHS + 6)
        target = bench.plain.target
        (problem,) = held_out(1, 0)
        prompt = bench.template.ask(target.vocabulary, problem.text)
        begun = problem.steps[0].partition("=")[0] + "="
        prompt += target.vocabulary.tokenize(begun)
        expected = _expected(target, prompt)
        drawn: Counter[tuple[int, ...]] = Counter()
        for seed in range(options.searches):
            drawn.update(_drawn(bench, prompt, seed))
    total = drawn.total()
    likely = {pair: share * total for pair, share in expected.items() if share * total >= _LEAST}
    rest = total - sum(likely.values())
    others = total - sum(drawn[pair] for pair in likely)
    chi = sum((drawn[pair] - count) ** 2 / count for pair, count in likely.items())
    chi += (others - rest) ** 2 / max(rest, 1e-9)
    freedom = len(likely)
    print(
        f"{total} draws, {freedom + 1} kinds, chi-square {chi:.1f}, {freedom} degrees of freedom, "
        f"p = {_tail(chi, freedom):.3f}, in {time.perf_counter() - begin:.0f} s"
    )


def _expected(target: LlamaModel, prompt: list[int]) -> dict[tuple[int, ...], float]:
    ids, shares = distribution(SAMPLER, target.forward([Span((0,), prompt)])[0])
    expected: dict[tuple[int, ...], float] = {}
    for token, share in zip(ids.tolist(), shares.tolist(), strict=True):
        if share > 1e-4:
            target.fork(0, 1)
            row = target.forward([Span((1,), [token])])[0]
            target.drop(1)
            following, chances = distribution(SAMPLER, row)
            for second, chance in zip(following.tolist(), chances.tolist(), strict=True):
                expected[token, second] = share * chance
    target.reset()
    return expected


def _drawn(bench: Bench, prompt: list[int], seed: int) -> list[tuple[int, ...]]:
    target, draft = bench.plain.target, bench.plain.draft
    heard: list[Event] = []
    scheduler = Scheduler(
        target,
        None,
        search.build("majority", n=PATHS, max_steps=1, step_tokens=2),
        SAMPLER,
        prompt=prompt,
        seed=seed,
        limits=Limits(2, 256),
        emit=heard.append,
        past=Past(),
        mode=paired(EXACT),
        drafter=Drafter(draft, KvTree(draft), ByTokens(2)),
    )
    for _ in scheduler.run():
        pass
    scheduler.close()
    return [event.tokens for event in heard if isinstance(event, StepFinished)]


def _tail(chi: float, freedom: int) -> float:
    """The chance of as much or more, by Wilson and Hilferty's approximation."""
    spread = 2 / (9 * freedom)
    z = ((chi / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
    return 0.5 * math.erfc(z / math.sqrt(2))


if __name__ == "__main__":
    main()
