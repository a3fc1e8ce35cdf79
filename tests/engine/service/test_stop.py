from __future__ import annotations

import ctypes
import ctypes.util

from engine.models.stop import StopSignal


def test_a_stop_is_seen_until_it_is_cleared() -> None:
    stop = StopSignal()
    assert not stop.is_set
    stop.set()
    stop.set()
    assert stop.is_set
    stop.clear()
    assert not stop.is_set


def test_native_code_sees_the_stop_through_strlen() -> None:
    library = ctypes.util.find_library("c") or ctypes.util.find_msvcrt()  # type: ignore[attr-defined]
    strlen = ctypes.CDLL(library).strlen
    stop = StopSignal()
    assert strlen(stop.flag) == 0
    stop.set()
    assert strlen(stop.flag) == 1
