"""Starting a process that runs a module of this very `engine`."""

from __future__ import annotations

import sys
from pathlib import Path

_ROOT = str(Path(__file__).resolve().parents[2])
_BOOT = (
    "import sys, runpy; root = sys.argv.pop(1); root in sys.path or sys.path.insert(0, root); "
    "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)


def python(module: str, *arguments: str) -> tuple[str, ...]:
    """`python -m MODULE`, with nothing imported from the directory in which the user happens to
    be."""
    return (sys.executable, "-P", "-X", "utf8", "-c", _BOOT, _ROOT, module, *arguments)
