"""The ways in which two models share a budget."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from engine.memory.devices import Kind
from engine.memory.estimate import PROCESS, CacheType, Facts, Setting, mask_bytes, predict
from engine.memory.options import Budget, Job, Option, Share, Strategy
from engine.memory.roofline import Load, Speed, Split, Work, split
from engine.memory.sizes import size_text

ROUNDS = 10
"""Turns that generator and verifier take: the steps a path is given in FastTTS's experiments."""
MARKERS = 64
"""Positions of a batch at which a verifier is read, at least."""
LEAST_CONTEXT = 512
_CELLS = 256
"""llama.cpp rounds a cache up to a multiple of this."""
_MOST_PATHS = 255
_ROWS = {Kind.RAM: 56, Kind.GPU: 512, Kind.UNIFIED: 512}
"""Tokens that `LlamaModel` has computed at once, on a processor and on a GPU."""


def generator_setting(
    cells: int, n: int, *, on: Kind = Kind.RAM, cache: CacheType = CacheType.F16
) -> Setting:
    """How the worker opens a generator for `n` paths."""
    sequences = min(2 * n + 2, _MOST_PATHS) + 1  # written, forked from, and what was dropped
    return Setting(cells, sequences, max(n, sequences), _ROWS[on], cache)


def verifier_setting(
    cells: int, n: int, *, on: Kind = Kind.RAM, cache: CacheType = CacheType.F16
) -> Setting:
    """How the worker opens a verifier for `n` paths."""
    setting = generator_setting(cells, n, on=on, cache=cache)
    return replace(setting, outputs=max(setting.outputs, MARKERS))


class Pair:
    """Two models, or a generator alone, for one job on one budget."""

    def __init__(self, generator: Facts, verifier: Facts | None, job: Job, budget: Budget) -> None:
        self.job = job
        self.budget = budget
        self.gpu = budget.device.kind is not Kind.RAM
        self.length = -(-job.context // _CELLS) * _CELLS
        kind = budget.device.kind
        written = generator_setting(0, job.n, on=kind, cache=job.cache)
        verified = verifier_setting(0, job.n, on=kind, cache=job.cache)
        self.generator = _Member(generator, written, self.gpu)
        self.verifier = verifier and _Member(verifier, verified, self.gpu)
        self.members = [m for m in (self.generator, self.verifier) if m is not None]
        self.process = 0 if self.gpu else PROCESS
        self.work = Work(job.n, job.context)

    def least(self) -> int:
        """Bytes with which the best of the strategies can do: one path each."""
        sizes = [m.fixed + self.length * m.cell for m in self.members]
        needs = [self.process + sum(sizes)]
        if self._may_leave:
            needs.append(self.process + max(sizes))
        if self.budget.device.kind is Kind.GPU:
            kept = max(m.facts.layers for m in self.members)
            moved = sum(m.load.weights + self.length * m.cell for m in self.members)
            stays = sum(m.fixed - m.load.weights for m in self.members)
            needs.append(stays + -(-moved // kept))
        return min(needs)

    def collocated(self) -> Option | None:
        found = self._split(self.budget.bytes - self.process - sum(m.fixed for m in self.members))
        return found and self._option(Strategy.COLLOCATED, found, together=True)

    def idle_cache(self) -> Option | None:
        """Both models stay; the cache of the one that waits is moved to RAM."""
        link = self.budget.device.link
        if self.verifier is None or link is None:
            return None
        masks = sum(m.cell - m.load.cell for m in self.members)  # compute buffers stay
        taken = sum(m.fixed for m in self.members) + self.job.n * self.length * masks
        room = self.budget.bytes - taken
        found = self._alone((room, self.generator.load.cell), (room, self.verifier.load.cell))
        if found is None:
            return None
        moved = self._caches(found)
        spent = ROUNDS * 2 * sum(moved) / link
        found = replace(found, seconds=found.seconds + spent)
        why = f"{spent:.1f} s go into moving {size_text(sum(moved))} of cache to RAM and back"
        option = self._option(Strategy.IDLE_CACHE, found, True)
        return replace(option, bytes=taken + max(moved), why=why)

    def idle_model(self) -> Option | None:
        """The model that waits leaves the device: to RAM, or, from RAM, to the page cache."""
        if self.verifier is None or not self._may_leave:
            return None
        room = self.budget.bytes - self.process
        found = self._alone(
            (room - self.generator.fixed, self.generator.cell),
            (room - self.verifier.fixed, self.verifier.cell),
        )
        if found is None:
            return None
        weights = sum(m.load.weights for m in self.members)
        link = self.budget.device.link
        if link is not None:
            spent = ROUNDS * (weights + 2 * sum(self._caches(found))) / link
            why = f"{spent:.1f} s go into moving models and caches to RAM and back"
        else:
            again = self.generator.load.prefill(
                self.budget.speed, found.written, self.job.context // 2
            )
            spent = ROUNDS * (weights / self.budget.speed.bandwidth + again)
            why = f"{spent:.1f} s go into loading models again and computing paths again"
        found = replace(found, seconds=found.seconds + spent)
        return replace(self._option(Strategy.IDLE_MODEL, found, False), why=why)

    def fewer_layers(self) -> Option | None:
        """The same part of both models on the GPU, the rest computed by the processor."""
        if self.budget.device.kind is not Kind.GPU:
            return None
        most = max(m.facts.layers for m in self.members)
        found = (self._with_part(kept / most) for kept in range(most - 1, 0, -1))
        return min(
            (o for o in found if o is not None), key=lambda option: option.seconds, default=None
        )

    @property
    def _may_leave(self) -> bool:
        """Whether it is known how long a model takes to leave the device and come back."""
        device = self.budget.device
        return self.verifier is not None and (
            device.kind is not Kind.GPU or device.link is not None
        )

    def _with_part(self, part: float) -> Option | None:
        used = sum(m.fixed - (1 - part) * m.load.weights for m in self.members)
        room = self.budget.bytes - used
        if room < 0:
            return None
        found = self._split(int(room / part))
        if found is None:
            return None
        slow = self._seconds(found, self.budget.host)
        found = replace(found, seconds=part * found.seconds + (1 - part) * slow)
        option = self._option(Strategy.FEWER_LAYERS, found, together=True, part=part)
        kept = " and ".join(
            f"{round(part * m.facts.layers)} of {m.facts.layers}" for m in self.members
        )
        return replace(option, why=f"{kept} layers on the GPU, the others on the processor")

    def _split(self, room: int) -> Split | None:
        """The cache's split between both, or all of it for a generator alone."""
        speed, one = self.budget.speed, self.length * self.generator.cell
        if self.verifier is not None:
            paths = (one, self.length * self.verifier.cell)
            return split(self.work, self.generator.load, self.verifier.load, speed, room, paths)
        written = min(self.job.n, room // one)
        if written < 1:
            return None
        return Split(0, written, self.work.writing(self.generator.load, speed, written))

    def _alone(self, generator: tuple[int, int], verifier: tuple[int, int]) -> Split | None:
        """Each model has a room for itself, one after the other.

        Args:
            generator: bytes of its room, and of a cell in it; `verifier` likewise.
        """
        written, verified = (
            min(self.job.n, room // (self.length * cell)) for room, cell in (generator, verifier)
        )
        if written < 1 or verified < 1:
            return None
        found = Split(verified, written, 0.0)
        return replace(found, seconds=self._seconds(found, self.budget.speed))

    def _seconds(self, found: Split, speed: Speed) -> float:
        seconds = self.work.writing(self.generator.load, speed, found.written)
        if self.verifier is not None:
            seconds += self.work.verifying(self.verifier.load, speed, found.verified)
        return seconds

    def _caches(self, found: Split) -> list[int]:
        assert self.verifier is not None
        return [
            found.written * self.length * self.generator.load.cell,
            found.verified * self.length * self.verifier.load.cell,
        ]

    def _option(
        self, strategy: Strategy, found: Split, together: bool, part: float = 1.0
    ) -> Option:
        shares = [self.generator.share(found.written, self.length, part)]
        if self.verifier is not None:
            shares.append(self.verifier.share(found.verified, self.length, part))
        sizes = [share.bytes for share in shares]
        return Option(
            strategy=strategy,
            job=self.job,
            generator=shares[0],
            verifier=shares[1] if len(shares) > 1 else None,
            bytes=self.process + (sum(sizes) if together else max(sizes)),
            seconds=found.seconds,
            why=_groups(found, self.job.n, self.verifier is not None),
        )


class _Member:
    """A model's part in a plan: what it takes whatever its cache, and what each cell takes."""

    def __init__(self, facts: Facts, setting: Setting, gpu: bool) -> None:
        empty = predict(facts, setting, gpu=gpu)
        self.facts = facts
        self.fixed = empty.on_device if gpu else empty.total
        cached = setting.cache.bytes(facts.cell_values)
        self.cell = cached + mask_bytes(facts, setting)
        attention = 4 * facts.queries * facts.layers
        self.load = Load(empty.weights, cached, facts.parameters, attention, setting.rows)

    def share(self, paths: int, length: int, part: float) -> Share:
        cells = paths * length
        left_out = ceil((1 - part) * (self.load.weights + cells * self.cell))
        layers = round(part * self.facts.layers)
        return Share(paths, cells, layers, self.fixed + cells * self.cell - left_out)


def _groups(found: Split, n: int, verified: bool) -> str:
    if found.written == n and found.verified in (0, n):
        return f"everything is held at once: all {n} paths at full length"
    parts = [f"writes {found.written}"]
    if verified:
        parts.append(f"verifies {found.verified}")
    return f"{' and '.join(parts)} of {n} paths of full length at a time"
