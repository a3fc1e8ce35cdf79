"""What the engine's memory is used for, on one line."""

from __future__ import annotations

from rich.text import Text
from textual.widget import Widget

from app.tui.fitting import fitting
from engine.protocol import Memory, ModelMemory

_CELLS = 24
_MIB, _GIB = 1 << 20, 1 << 30
WEIGHTS, USED, RESERVED, BUFFERS, FREE = "█▓▒░·"


class MemoryLine(Widget):
    """A bar of the budget, generator and verifier each split into weights, used and free cache and
    buffers, and the same in figures. Nothing where nothing is known."""

    def __init__(self) -> None:
        super().__init__()
        self._memory: Memory | None = None

    def on_mount(self) -> None:
        self.display = False

    def show(self, memory: Memory | None) -> None:
        if memory is not None and not memory.budget:
            memory = None  # of an older version, which did not tell
        if memory != self._memory:
            self._memory = memory
            self.display = memory is not None
            self.refresh()

    def render(self) -> Text:
        line = Text(no_wrap=True, overflow="ellipsis")
        if self._memory is not None:
            parts = [memory_bar(self._memory, _CELLS), *memory_words(self._memory)]
            kept = fitting(parts, self.size.width, gap=2)
            line.append("  ".join(parts[place] for place in kept))
        return line


def memory_bar(memory: Memory, cells: int) -> str:
    """Signs in proportion to the budget; whatever takes any of it has one at least."""
    bar = "│".join(
        "".join(sign * _cells(size, memory.budget, cells) for sign, size in _split(model))
        for model in (memory.generator, memory.draft, memory.verifier)
        if _total(model)
    )
    return f"[{bar.ljust(cells, FREE)}]"


def memory_words(memory: Memory) -> list[str]:
    """The figures, the most telling first."""
    models = {"gen": memory.generator, "draft": memory.draft, "ver": memory.verifier}
    used = sum(map(_total, models.values()))
    parts = [f"{_size(used)} of {_size(memory.budget)}"]
    for name, model in models.items():
        if _total(model):
            cache = model.cache_used + model.cache_free
            parts.append(
                f"{name} weights {WEIGHTS} {_size(model.weights)}"
                f" KV {USED}{RESERVED} {_size(model.cache_used)}/{_size(cache)}"
            )
    if off := sum(model.offloaded for model in models.values()):
        parts.append(f"offloaded {_size(off)}")
    parts.append(f"process {_size(memory.process)}")
    return parts


def _split(model: ModelMemory) -> list[tuple[str, int]]:
    return [
        (WEIGHTS, model.weights),
        (USED, model.cache_used),
        (RESERVED, model.cache_free),
        (BUFFERS, model.buffers),
    ]


def _total(model: ModelMemory) -> int:
    return sum(size for _, size in _split(model))


def _cells(size: int, budget: int, cells: int) -> int:
    return max(1, round(cells * size / budget)) if size else 0


def _size(size: int) -> str:
    if size >= _GIB:
        return f"{size / _GIB:.1f} GiB"
    return f"{size / _MIB:.0f} MiB" if size >= 10 * _MIB else f"{size / _MIB:.1f} MiB"
