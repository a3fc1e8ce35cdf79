"""How long `sapwood` takes to start: a table of times against a budget.

`python bench/cold_start.py [RUNS]` ends with 1 if a command is over its budget or loads a module
that it has no use for. The budget is of processor time, which a busy machine does not stretch as
it does the time on the clock.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUDGET = 0.3
"""Seconds of processor time for a command without an engine, Python's own start included."""
COMMANDS = (["--version"], ["--help"], ["solve", "--help"])
UNWANTED = ("llama_cpp", "torch", "transformers", "textual", "numpy", "rich", "math_verify")
PROGRAM = "import sys; from app.cli import main; sys.argv[0] = 'sapwood'; main()"
LOADED = (
    "import sys\n"
    "from app import cli\n"
    "cli.run(sys.argv[1:])\n"
    f"print(*[name for name in {UNWANTED!r} if name in sys.modules], file=sys.stderr)"
)


def main() -> int:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    print(f"{'seconds':<22}{'min':>8}{'median':>8}{'cpu min':>9}{'budget':>8}  unwanted modules")
    row("python alone", [measure("pass", []) for _ in range(runs)])
    passed = True
    for arguments in COMMANDS:
        times = [measure(PROGRAM, arguments) for _ in range(runs)]
        unwanted = call(LOADED, arguments).stderr.split()
        name = " ".join(["sapwood", *arguments])
        row(name, times, f"{BUDGET:>8.3f}  {' '.join(unwanted) or 'none'}")
        passed &= min(cpu for _, cpu in times) <= BUDGET and not unwanted
    return 0 if passed else 1


def row(name: str, times: list[tuple[float, float]], rest: str = "") -> None:
    wall = [seconds for seconds, _ in times]
    least = min(cpu for _, cpu in times)
    print(f"{name:<22}{min(wall):>8.3f}{statistics.median(wall):>8.3f}{least:>9.3f}{rest}")


def measure(program: str, arguments: list[str]) -> tuple[float, float]:
    """Seconds on the clock and of the processor, from the start of a Python program to its end."""
    begin, before = time.perf_counter(), os.times()
    call(program, arguments)
    after = os.times()
    used = after.children_user + after.children_system
    return time.perf_counter() - begin, used - before.children_user - before.children_system


def call(program: str, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
        text=True,
    )


if __name__ == "__main__":
    sys.exit(main())
