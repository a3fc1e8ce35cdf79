"""Memory that was freed but that the C library keeps for itself."""

from __future__ import annotations

import ctypes
import sys


def give_back() -> None:
    """Have the C library return to the system what it does not use. Only glibc needs asking."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
