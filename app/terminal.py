"""Standard error as a terminal. This module needs rich, so it is imported only where one is."""

from __future__ import annotations

import sys

from rich.console import Console


def terminal() -> Console:
    """A console that takes every text literally."""
    return Console(file=sys.stderr, markup=False, highlight=False, emoji=False)
