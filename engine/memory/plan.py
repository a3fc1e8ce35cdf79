"""The plan: every known way of sharing a budget between two models, the quickest first.

Nothing here reads or loads anything. Times are bounds by roofline (`engine.memory.roofline`),
bytes those of `engine.memory.estimate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from engine.memory.devices import Device, Kind
from engine.memory.estimate import Facts
from engine.memory.options import Budget, Job, Moving, Option, Strategy
from engine.memory.roofline import Speed
from engine.memory.sizes import GIB, MIB, size_text
from engine.memory.strategies import LEAST_CONTEXT, Pair

MARGIN = GIB
"""Of the free memory, what is left to a GPU's driver and to other programs."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The quickest way that fits, which is taken, and those that are slower but take less memory;
    then, where none that fits holds all paths at once, reductions that do."""

    budget: Budget
    job: Job
    options: tuple[Option, ...]
    least: int
    """Bytes without which nothing fits, not even few short paths."""
    whole: int
    """Bytes with which all paths are held at once at full length."""

    @property
    def chosen(self) -> Option | None:
        return self.options[0] if self.options else None

    @property
    def limit_is_why(self) -> bool:
        """Whether it is what the user allows that is too little, and not what is free."""
        return self.budget.limited and self.least + 2 * MIB <= self.budget.device.free

    @property
    def refusal(self) -> tuple[str, str]:
        """What to say where nothing fits, and what to do."""
        free = self.budget.bytes
        message = (
            f"The models do not fit: they need at least {size_text(self.least)} of "
            f"{self.budget.device.name}, and {size_text(free)} may be used."
        )
        smaller = "choose smaller models or smaller quantisations of them, or a quantised cache."
        if self.limit_is_why:
            return message, f"Raise --budget to at least {self._enough}, or {smaller}"
        return message, f"Free {size_text(self.least - free)} more, {smaller}"

    @property
    def _enough(self) -> str:
        """Budgets to ask for, as the option takes them."""
        least, whole = _option_text(self.least), _option_text(self.whole)
        if self.whole + 2 * MIB > self.budget.device.free:
            return least
        job = self.job
        return f"{least} (all {job.n} paths of {job.context:,} tokens at once take {whole})"


def budget_for(
    device: Device, host: Speed, moving: Moving | None, limit: int | None = None
) -> Budget:
    """What may be used of a device: what is free, less the margin.

    Args:
        host: this machine's processor.
        moving: how fast models come back into its memory.
        limit: bytes that the user allows; taken as they are.
    """
    usable = max(0, device.free - MARGIN) if limit is None else limit
    if device.kind is Kind.GPU:
        moving = Moving(device.link, device.link) if device.link else None
    limited = limit is not None
    return Budget(device, usable, device.speed or host, host, moving, limited)


def make_plan(generator: Facts, verifier: Facts | None, job: Job, budget: Budget) -> Plan:
    """Every strategy that fits the budget; those that do what is asked come first."""
    longest = [model.trained_context or job.context for model in (generator, verifier) if model]
    job = replace(job, context=min(job.context, *longest))

    def pair(job: Job) -> Pair:
        return Pair(generator, verifier, job, budget)

    fitting = _as_asked(pair(job))
    options = list(_worth_it(fitting))
    if not any(option.generator.paths == job.n for option in fitting):
        options += sorted(_reduced(pair, job), key=_seconds)
    jobs = list(_smaller(job))
    if not options:
        fitting = next(filter(None, (_as_asked(pair(smaller)) for smaller in jobs)), [])
        options = list(_worth_it(fitting))
    least = min(pair(smaller).least() for smaller in jobs)
    return Plan(budget, job, tuple(options), least, pair(job).whole())


def _option_text(size: int) -> str:
    """A size that is enough for sure, as `--budget` takes it."""
    return f"{size // MIB + 2}M"


def _seconds(option: Option) -> float:
    return option.seconds


def _as_asked(pair: Pair) -> list[Option]:
    makers = (
        pair.collocated,
        pair.idle_cache,
        pair.idle_model,
        pair.idle_again,
        pair.fewer_layers,
    )
    return sorted((option for make in makers if (option := make()) is not None), key=_seconds)


def _worth_it(quickest_first: Iterable[Option]) -> Iterator[Option]:
    """Those that take less memory than all that are quicker."""
    least: int | None = None
    for option in quickest_first:
        if least is None:
            yield option
            least = option.bytes
        elif option.bytes < least:
            yield replace(option, why=f"{option.why}; {size_text(least - option.bytes)} less")
            least = option.bytes


def _reduced(pair: Callable[[Job], Pair], job: Job) -> Iterator[Option]:
    """The largest n, and the longest context, with which all paths fit at once."""
    counts = (replace(job, n=n) for n in _halves(job.n, job.width)[1:])
    contexts = (replace(job, context=c) for c in _halves(job.context, LEAST_CONTEXT)[1:])
    for strategy, jobs in ((Strategy.SMALLER_N, counts), (Strategy.SMALLER_CONTEXT, contexts)):
        yield from _first_whole(strategy, (pair(job).collocated() for job in jobs))


def _first_whole(strategy: Strategy, options: Iterable[Option | None]) -> Iterator[Option]:
    for option in options:
        if option is not None and option.generator.paths == option.job.n:
            job = option.job
            why = f"all {job.n} paths of {job.context:,} tokens at once"
            yield replace(option, strategy=strategy, why=why)
            return


def _smaller(job: Job) -> Iterator[Job]:
    """The job with ever fewer and then ever shorter paths."""
    for context in _halves(job.context, LEAST_CONTEXT):
        for n in _halves(job.n, job.width):
            yield replace(job, n=n, context=context)


def _halves(value: int, least: int) -> list[int]:
    """`value`, its half, and so on, down to `least`."""
    found = [value]
    while found[-1] // 2 >= least:
        found.append(found[-1] // 2)
    return found
