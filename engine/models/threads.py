"""How many threads compute."""

from __future__ import annotations

import os

import psutil


def default_threads() -> int:
    """Physical cores less one, which stays free for the interface and everything else.

    llama.cpp's threads spin on a barrier: with every core taken, any other busy process slows
    all of them to a crawl.
    """
    cores = psutil.cpu_count(logical=False) or os.cpu_count() or 2
    return max(1, cores - 1)
