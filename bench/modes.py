"""What each mechanism of the scheduler gains on this machine, on real models.

`python -m bench.modes [--generators ...] [--n 4 8 16] [--problems 12] [--seconds S] [--equal]`
`python -m bench.modes --equality 100 [--generators ...] [--n 8]`

Beam search on held-out problems, verified by the seedling, by search-and-learn's loop
(`baseline`), with one mechanism after another added to it, by the default (`exact`), by the
default without drafts, and by the two papers' own ways. On each problem all take turns, in an
order that changes from problem to problem. A ratio is the other's seconds over the row's own, of
the same problem: above 1 the row is faster; shown are the median and its 95 % interval.

All but the approximate modes must come to the same tree. This is counted, node by node: tokens,
scores, decisions and answer. `--equality` does nothing else: at a higher temperature, it solves
problems with each mechanism alone and with each left out of all, on caches of ample and of scarce
memory, and compares with the loop that has none.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields, replace
from itertools import cycle, islice
from statistics import fmean, median

import llama_cpp

from bench.equality import COLUMNS, Equality, total
from bench.interleave import interval
from bench.no_drafts import NO_DRAFTS, NO_DRAFTS_MODE
from bench.searches import HOT, SMOLLM, Outcome, Pair, opened, solve
from bench.table import markdown
from engine.models.llama import default_threads
from engine.scheduling.settings import EXACT, MODES, Mechanisms, Mode
from engine.seedling.problems import Problem, held_out

GENERATORS = ("seedling", SMOLLM)
LADDER = (
    "deduplicate",
    "prefix_order",
    "early_scores",
    "drafts",
    "lookahead",
    "prune_early",
    "certainty",
    "only_if_it_pays",
)
"""Mechanisms in the order in which they are added."""
ABOUT_DRAFTS = ("early_scores", "lookahead", "prune_early", "certainty", "only_if_it_pays")
"""Mechanisms that do nothing where there are no drafts."""
PLAIN = replace(MODES["baseline"], whole_paths=False)
INCREMENTAL = "incremental verifier"


def modes() -> dict[str, Mode]:
    """All that are compared."""
    chosen = {"baseline": MODES["baseline"], INCREMENTAL: PLAIN}
    how = PLAIN.mechanisms
    for name in LADDER:
        how = replace(how, **{name: True})
        chosen[f"+ {name}"] = Mode(how)
    chosen["exact"] = EXACT
    chosen[NO_DRAFTS] = NO_DRAFTS_MODE
    return chosen | {name: MODES[name] for name in ("fasttts", "specscale")}


def variants() -> dict[str, Mode]:
    """Each mechanism alone, and all but each; drafts are written whether they pay or not."""
    switches = [f.name for f in fields(Mechanisms) if f.type == "bool"]
    everything = replace(EXACT.mechanisms, only_if_it_pays=False)
    chosen: dict[str, Mode] = {"whole paths alone": MODES["baseline"]}
    for name in switches:
        drafts = PLAIN.mechanisms.drafts or name in ABOUT_DRAFTS
        alone = replace(PLAIN.mechanisms, drafts=drafts)
        chosen[f"{name} alone"] = Mode(replace(alone, **{name: True}))
        other = name == "only_if_it_pays"  # off already
        chosen[f"all but {name}"] = Mode(replace(everything, **{name: other}))
    return chosen


Cell = tuple[str, int]
"""A generator and n."""


def race(
    cells: Mapping[Cell, Pair],
    chosen: Mapping[str, Mode],
    problems: Sequence[Problem],
    seconds: float,
) -> dict[Cell, dict[str, list[Outcome]]]:
    """Every mode on every problem, in turns; no problem is begun after `seconds`."""
    begin = time.monotonic()
    results = {cell: {name: list[Outcome]() for name in chosen} for cell in cells}
    for (_, n), pair in cells.items():  # what is computed first is slow
        solve(pair, problems[-1].text, EXACT, n=n, seed=0)
    for number, problem in enumerate(problems):
        if time.monotonic() - begin > seconds:
            break
        for (generator, n), pair in cells.items():
            _progress(f"problem {number + 1} of {len(problems)}: {generator}, n = {n}")
            first = number % len(chosen)
            for name in islice(cycle(chosen), first, first + len(chosen)):
                outcome = solve(pair, problem.text, chosen[name], n=n, seed=number)
                results[generator, n][name].append(outcome)
    return results


TIMES = (
    "mode",
    "to baseline",
    "95 %",
    "to no drafts",
    "95 %",
    "s a problem",
    "generator s",
    "verifier s",
    "decode steps",
    "rows",
    "generated",
    "verified",
    "recomputed",
    "dropped",
)


def times(generator: str, n: int, outcomes: Mapping[str, Sequence[Outcome]]) -> str:
    """Ratios are medians over problems, all else means."""
    rows: list[list[str]] = []
    for name, own in outcomes.items():
        label = f"{name} (approximate)" if modes()[name].shortcuts.any else name
        numbers = [
            (c.decode_steps, o.rows, c.generated, o.verifier.tokens, c.recomputed, c.dropped)
            for o in own
            for c in [o.counts]
        ]
        rows.append(
            [
                label,
                *_ratio(outcomes.get("baseline"), own),
                *_ratio(outcomes.get(NO_DRAFTS), own),
                f"{fmean(o.seconds for o in own):.3f}",
                f"{fmean(o.generator.seconds for o in own):.3f}",
                f"{fmean(o.verifier.seconds for o in own):.3f}",
                *(f"{fmean(column):,.0f}" for column in zip(*numbers, strict=True)),
            ]
        )
    count = max(map(len, outcomes.values()))
    return markdown(f"{generator}, n = {n}, {count} problems", TIMES, rows)


def _ratio(theirs: Sequence[Outcome] | None, ours: Sequence[Outcome]) -> tuple[str, str]:
    if theirs is None:
        return "-", "-"
    ratios = [a.seconds / b.seconds for a, b in zip(theirs, ours, strict=True)]
    low, high = interval(ratios)
    return f"{median(ratios):.2f}", f"{low:.2f} to {high:.2f}"


def sameness(results: Mapping[Cell, Mapping[str, Sequence[Outcome]]]) -> str:
    """The lossless modes against the plainest of those that verify only what is new."""
    rows: list[list[str]] = []
    plainest = INCREMENTAL
    for (generator, n), outcomes in results.items():
        plainest = INCREMENTAL if INCREMENTAL in outcomes else NO_DRAFTS
        whole, others = Equality(), Equality()
        for name, mode in modes().items():
            if name in outcomes and name != plainest and not mode.shortcuts.any:
                equality = whole if mode.whole_paths else others
                for first, other in zip(outcomes[plainest], outcomes[name], strict=True):
                    equality.compare(first, other)
        rows.append([f"{generator}, n = {n}: baseline", *whole.cells()])
        rows.append([f"{generator}, n = {n}: other lossless modes", *others.cells()])
    return markdown(f"Trees against those of '{plainest}'", ["", *COLUMNS], rows)


def equality(generator: str, n: int, runs: int, equal: bool) -> str:
    """Compares `runs` searches, spread evenly over the variants."""
    chosen = variants()
    results = {name: Equality() for name in chosen}
    count = -(-runs // len(chosen))
    problems = held_out(count, seed=2, kind="templates")
    with (
        opened(generator, n, equal=equal) as ample,
        opened(generator, n, paths=1, equal=equal) as scarce,
    ):
        for number, problem in enumerate(problems):
            first = solve(ample, problem.text, PLAIN, n=n, seed=number, temperature=HOT)
            for name in islice(chosen, runs - number * len(chosen)):
                _progress(f"{generator}: problem {number + 1} of {count}, {name}")
                pair = scarce if number % 2 else ample
                other = solve(pair, problem.text, chosen[name], n=n, seed=number, temperature=HOT)
                results[name].compare(first, other)
    results["all together"] = total(results.values())
    rows = [[name, *result.cells()] for name, result in results.items() if result.runs]
    title = f"{generator}, n = {n}: trees against those of a search without any mechanism"
    return markdown(title, ["", *COLUMNS], rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.modes")
    parser.add_argument("--generators", nargs="+", default=GENERATORS, help="of the catalogue")
    parser.add_argument("--n", nargs="+", type=int, default=(4, 8, 16))
    parser.add_argument("--problems", type=int, default=12)
    parser.add_argument(
        "--modes",
        nargs="+",
        choices=list(modes()),
        default=list(modes()),
        help=f"rows of the table; '{INCREMENTAL}' or '{NO_DRAFTS}' must be among them",
    )
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin none after")
    parser.add_argument("--equality", type=int, metavar="RUNS", help="compare trees, time nothing")
    parser.add_argument(
        "--equal", action="store_true", help="verify by a model as large as the generator"
    )
    options = parser.parse_args()
    if not {INCREMENTAL, NO_DRAFTS} & set(options.modes):
        parser.error(f"--modes: name '{INCREMENTAL}' or '{NO_DRAFTS}' too, to compare trees with")
    where = "GPU" if llama_cpp.llama_supports_gpu_offload() else f"{default_threads()} thread(s)"
    print(f"llama.cpp on {where}\n", flush=True)
    if options.equality:
        for generator in options.generators:
            print(equality(generator, options.n[0], options.equality, options.equal), flush=True)
        return
    with ExitStack() as stack:
        pairs = {
            g: stack.enter_context(opened(g, max(options.n), equal=options.equal))
            for g in options.generators
        }
        cells = {(g, n): pairs[g] for g in options.generators for n in options.n}
        chosen = {name: mode for name, mode in modes().items() if name in options.modes}
        results = race(cells, chosen, held_out(options.problems, seed=1), options.seconds)
    for (generator, n), outcomes in results.items():
        print(times(generator, n, outcomes), flush=True)
    print(sameness(results))


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
