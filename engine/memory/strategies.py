"""The ways in which two models share a budget."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from engine.memory.devices import Kind
from engine.memory.estimate import WORKER, CacheType, Facts, Setting, attention_bytes, predict
from engine.memory.options import MARKERS, Budget, Job, Option, Share, Strategy
from engine.memory.roofline import Load, Speed, Split, Work, best

ROUNDS = 10
"""Turns that generator and verifier take: the steps a path is given in FastTTS's experiments."""
LEAST_CONTEXT = 512
_READ = 1.25
"""Tokens that a verifier reads for each that was written: it frames the steps in its own way."""
_OPENING = 0.01
"""Seconds to open a file, a cache and a graph, whatever their size (measured: 5 to 20 ms)."""
_ENTRY = 0.6e-6
"""Seconds to read past an entry of a vocabulary or a merge in the header of a file that is opened
(measured, besides mapping it: 55 ms for SmolLM2's 98,052, 0.2 s for Gemma 3's 262,144)."""
_CELLS = 256
"""llama.cpp rounds a cache up to a multiple of this."""
_MOST_PATHS = 254
OWN_SEQUENCES = 2
"""What `LlamaModel` has for itself besides its paths."""
_ROWS = {Kind.RAM: 56, Kind.GPU: 512, Kind.UNIFIED: 512}
"""Tokens that `LlamaModel` has computed at once, on a processor and on a GPU."""


def generator_setting(
    cells: int,
    n: int,
    *,
    on: Kind = Kind.RAM,
    cache: CacheType = CacheType.F16,
    outputs: int = 0,
    precise: bool = False,
) -> Setting:
    """How the worker opens a generator for `n` paths, or what scores in its place."""
    # Written and forked from, and as many for drafts, which would else push out what is needed.
    setting = _setting(cells, 4 * n + 2, max(n, outputs), on, cache)
    return replace(setting, precise=precise and on is Kind.RAM)


def verifier_setting(
    cells: int,
    n: int,
    *,
    on: Kind = Kind.RAM,
    cache: CacheType = CacheType.F16,
    markers: int = MARKERS,
) -> Setting:
    """How the worker opens a verifier for `n` paths."""
    return _setting(cells, 2 * n + 2, max(n, markers), on, cache)


def draft_setting(job: Job, facts: Facts, *, on: Kind = Kind.RAM) -> Setting:
    """How the worker opens a model that drafts for all paths of a job."""
    context = min(job.context, facts.trained_context or job.context)
    cells = job.n * -(-context // _CELLS) * _CELLS
    return generator_setting(cells, job.n, on=on, cache=job.cache, outputs=job.outputs)


def _setting(cells: int, paths: int, outputs: int, on: Kind, cache: CacheType) -> Setting:
    sequences = min(paths, _MOST_PATHS) + OWN_SEQUENCES
    return Setting(cells, sequences, max(outputs, sequences), _ROWS[on], cache)


class Pair:
    """Two models, or a generator alone, for one job on one budget."""

    def __init__(self, generator: Facts, verifier: Facts | None, job: Job, budget: Budget) -> None:
        self.job = job
        self.budget = budget
        kind = budget.device.kind
        self.apart = kind is Kind.GPU
        """Whether RAM is another memory than the device's."""
        written = generator_setting(
            0, job.n, on=kind, cache=job.cache, outputs=job.outputs, precise=job.precise
        )
        verified = verifier_setting(0, job.n, on=kind, cache=job.cache, markers=job.markers)
        self.generator = _Member(generator, written, kind, job.context)
        self.verifier = verifier and _Member(verifier, verified, kind, int(job.context * _READ))
        self.members = [m for m in (self.generator, self.verifier) if m is not None]
        self.process = 0 if self.apart else WORKER
        self.work = Work(job.n, job.context, ceil(job.n / job.width), ROUNDS)

    def least(self) -> int:
        """Bytes with which the best of the strategies can do: one path each."""
        sizes = [m.fixed + m.path for m in self.members]
        needs = [self.process + sum(sizes)]
        if self._take_turns:
            away = [m.away for m in self.members]
            most = max(size - gone for size, gone in zip(sizes, away, strict=True))
            needs.append(self.process + sum(away) + most)
        if self.apart:
            kept = max(m.facts.layers for m in self.members)
            moved = sum(m.load.weights + m.path for m in self.members)
            stays = sum(m.fixed - m.load.weights for m in self.members)
            needs.append(stays + -(-moved // kept))
        return min(needs)

    def whole(self) -> int:
        """Bytes with which both hold all paths at once."""
        return self.process + sum(m.fixed + self.job.n * m.path for m in self.members)

    def collocated(self) -> Option | None:
        found = self._split(self.budget.bytes - self.process - sum(m.fixed for m in self.members))
        return found and self._option(Strategy.COLLOCATED, found)

    def idle_cache(self) -> Option | None:
        """Both models stay; the cache of the one that waits is moved to RAM."""
        if not self.apart:
            return None
        return self._in_turns(Strategy.IDLE_CACHE, [m.load.weights for m in self.members])

    def idle_model(self) -> Option | None:
        """The model that waits leaves the device, and its cache is kept in RAM.

        Where the device is RAM, the model goes to the page cache and what is kept stays in the
        budget: only as much as is in use, but for a moment beside the cache that it is taken from.
        """
        return self._in_turns(Strategy.IDLE_MODEL, [m.away for m in self.members])

    def idle_again(self) -> Option | None:
        """The model that waits leaves, and its cache is computed again from its tokens."""
        if self.apart:
            return None
        return self._in_turns(Strategy.IDLE_AGAIN, [m.away for m in self.members])

    @property
    def _take_turns(self) -> bool:
        """Whether there are two, and it is known how long it takes to bring one back."""
        return self.verifier is not None and self.budget.moving is not None

    def _in_turns(self, strategy: Strategy, away: list[int]) -> Option | None:
        """The largest caches with which each model fits while the other is away.

        Args:
            away: bytes that each leaves on the device while it is away.
        """
        if not self._take_turns:
            return None
        assert self.verifier is not None
        writing, verifying = self.generator, self.verifier
        saved = 0 if self.apart or strategy is Strategy.IDLE_AGAIN else 1
        room = self.budget.bytes - self.process - sum(away)
        rooms = [room - m.fixed + gone for m, gone in zip(self.members, away, strict=True)]
        choices: list[Split] = []
        for verified in range(1, self.job.n + 1):
            copies = saved * verified * verifying.copy
            left = rooms[1] - verified * verifying.path - copies
            fitting = [self.job.n, (rooms[0] - copies) // (writing.path + saved * writing.copy)]
            if saved:
                fitting.append(left // writing.copy)
            written = min(fitting)
            if written < 1 or left < 0:
                break
            seconds = self._seconds(verified, written, self.budget.speed)
            choices.append(Split(verified, written, seconds))
        if not choices:
            return None
        found = best(choices)
        counts = (found.written, found.verified)
        moves = [
            self._there_and_back(strategy, member, paths)
            for member, paths in zip(self.members, counts, strict=True)
        ]
        turn = sum(seconds for _, seconds in moves) / len(moves)
        found = replace(found, seconds=found.seconds + 2 * ROUNDS * turn)
        copies = saved * sum(n * m.copy for n, m in zip(counts, self.members, strict=True))
        works = [
            m.fixed - gone + n * m.path
            for n, m, gone in zip(counts, self.members, away, strict=True)
        ]
        option = self._option(strategy, found)
        assert option.verifier is not None
        known = all(strategy in m.facts.turns for m in self.members)
        return replace(
            option,
            generator=replace(option.generator, moved=moves[0][0], turns=moves[0][1]),
            verifier=replace(option.verifier, moved=moves[1][0], turns=moves[1][1]),
            bytes=self.process + sum(away) + copies + max(works),
            turn=turn,
            why=f"{2 * ROUNDS} changes of turn, {turn:.{2 if turn < 1 else 1}f} s each"
            + (", judging by earlier runs" if known else ""),
        )

    def _there_and_back(self, strategy: Strategy, member: _Member, paths: int) -> tuple[int, float]:
        """Bytes to move for a model to leave and to come back, and the seconds that both take."""
        moving, speed = self.budget.moving, self.budget.speed
        assert moving is not None
        keeps = member is self.generator or self.job.verifier_keeps
        held = min(paths, self.work.held) if keeps else 0.0
        # In RAM the cache is made anew. Its cells are put side by side by way of a copy, and kept
        # as another. On a GPU they go over the link and back.
        copies = 1 if strategy is Strategy.IDLE_AGAIN else 2
        fresh = copies * held * member.copy + (0 if self.apart else paths * member.path)
        mapped, seconds = 0, _OPENING
        if strategy is not Strategy.IDLE_CACHE:
            mapped = member.load.weights
            seconds += _ENTRY * (member.facts.vocabulary + member.facts.merges)
        moved = mapped + int(fresh)
        measured = member.facts.turns.get(strategy)
        if measured is not None:
            return moved, measured * moved
        seconds += mapped / moving.mapped + fresh / moving.fresh
        if strategy is Strategy.IDLE_AGAIN:
            seconds += member.load.prefill(speed, ceil(2 * held), self.job.context // 2)
        return moved, seconds

    def fewer_layers(self) -> Option | None:
        """The same part of both models on the GPU, the rest computed by the processor."""
        if not self.apart:
            return None
        most = max(m.facts.layers for m in self.members)
        found = (self._with_part(kept / most) for kept in range(most - 1, 0, -1))
        return min(
            (o for o in found if o is not None), key=lambda option: option.seconds, default=None
        )

    def _with_part(self, part: float) -> Option | None:
        used = sum(m.fixed - (1 - part) * m.load.weights for m in self.members)
        room = self.budget.bytes - used
        if room < 0:
            return None
        found = self._split(int(room / part))
        if found is None:
            return None
        slow = self._seconds(found.verified, found.written, self.budget.host)
        found = replace(found, seconds=part * found.seconds + (1 - part) * slow)
        option = self._option(Strategy.FEWER_LAYERS, found, part)
        kept = " and ".join(
            f"{round(part * m.facts.layers)} of {m.facts.layers}" for m in self.members
        )
        return replace(option, why=f"{kept} layers on the GPU, the others on the processor")

    def _split(self, room: int) -> Split | None:
        """Caches for as many paths of both, since both keep the same tree: what falls out of one of
        them is read again in every round. What is left over is the generator's first."""
        n, writing = self.job.n, self.generator.path
        reading = self.verifier.path if self.verifier is not None else 0
        both = min(n, room // (writing + reading))
        if both < 1:
            return None
        left = room - both * (writing + reading)
        more = min(n - both, left // writing)
        verified = 0
        if reading:
            verified = min(n, both + (left - more * writing) // reading)
        written = both + more
        return Split(verified, written, self._seconds(verified, written, self.budget.speed))

    def _seconds(self, verified: int, written: int, speed: Speed) -> float:
        seconds = self.work.writing(self.generator.load, speed, written)
        if self.verifier is not None:
            seconds += self.work.verifying(self.verifier.load, speed, verified)
        return seconds

    def _option(self, strategy: Strategy, found: Split, part: float = 1.0) -> Option:
        generator = self.generator.share(found.written, part)
        verifier = self.verifier and self.verifier.share(found.verified, part)
        taken = generator.bytes + (verifier.bytes if verifier else 0)
        return Option(
            strategy=strategy,
            job=self.job,
            generator=generator,
            verifier=verifier,
            bytes=self.process + taken,
            seconds=found.seconds,
            why=_groups(found, self.job.n, self.verifier is not None),
        )


class _Member:
    """A model's part in a plan: what it takes whatever its cache, and what each path takes."""

    def __init__(self, facts: Facts, setting: Setting, on: Kind, context: int) -> None:
        empty = predict(facts, setting, gpu=on is not Kind.RAM)
        self.facts = facts
        self.fixed = empty.on_device if on is Kind.GPU else empty.total
        self.away = 0 if on is Kind.GPU else empty.vocabulary
        """Bytes that stay while the model is away: text is still made into tokens."""
        self.length = -(-context // _CELLS) * _CELLS
        cell = setting.cache.bytes(facts.cell_values)
        self.copy = self.length * cell
        """Bytes of a path's cells."""
        self.path = self.copy + self.length * attention_bytes(facts, setting)
        """Bytes of a path's cells in use."""
        attention = 4 * facts.queries * facts.layers
        self.load = Load(empty.weights, cell, facts.parameters, attention, setting.rows)

    def share(self, paths: int, part: float) -> Share:
        left_out = ceil((1 - part) * (self.load.weights + paths * self.path))
        layers = round(part * self.facts.layers)
        taken = self.fixed + paths * self.path - left_out
        return Share(paths, paths * self.length, layers, taken)


def _groups(found: Split, n: int, verified: bool) -> str:
    if found.written == n and found.verified in (0, n):
        return f"everything is held at once: all {n} paths at full length"
    parts = [f"writes {found.written}"]
    if verified:
        parts.append(f"verifies {found.verified}")
    return f"{' and '.join(parts)} of {n} paths of full length at a time"
