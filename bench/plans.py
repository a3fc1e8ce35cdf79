"""Plans for pairs of Qwen2.5's shapes on devices of the table: `python -m bench.plans`.

Nothing is loaded. Sizes and times are estimates; `docs/memory.md` works some of them out by hand.
"""

from __future__ import annotations

from bench.table import markdown
from engine.memory.devices import Device
from engine.memory.options import Job, Moving
from engine.memory.plan import budget_for, make_plan
from engine.memory.sizes import size_text
from engine.memory.speed import named
from tests.engine.memory.shapes import LARGE, PROCESSOR, SMALL, ram

_JOB = Job(n=16, width=4, context=2048)
_MOVING = Moving(3e9, 3e9)
"""Bytes a second from the page cache, assumed for processors and unified memory."""
_PAIRS = ((SMALL, SMALL), (SMALL, LARGE), (LARGE, SMALL))
_HEADER = ("device", "generator + verifier", "budget", "strategy", "written", "verified", "memory",
           "a turn", "time")  # fmt: skip


def main() -> None:
    devices = [named(name) for name in ("RTX 3070 Ti", "RTX 4070 Ti", "RTX 4090", "M2 16 GB")]
    rows = [row for device in [*devices, ram(16)] for row in _rows(device)]
    print(markdown(f"n {_JOB.n}, context {_JOB.context:,}, the two quickest", _HEADER, rows))


def _rows(device: Device) -> list[list[str]]:
    rows = []
    for generator, verifier in _PAIRS:
        plan = make_plan(generator, verifier, _JOB, budget_for(device, PROCESSOR, _MOVING))
        for option in plan.options[:2]:
            assert option.verifier is not None
            rows.append(
                [
                    device.name if device.name != "RAM" else "CPU 16 GB",
                    f"{generator.name} + {verifier.name}",
                    size_text(plan.budget.bytes),
                    option.strategy.value,
                    str(option.generator.paths),
                    str(option.verifier.paths),
                    size_text(option.bytes),
                    f"{option.turn:.2f} s" if option.turn else "",
                    f"{option.seconds:.0f} s",
                ]
            )
    return rows


if __name__ == "__main__":
    main()
