"""The signal that makes a running computation give up."""

from __future__ import annotations

import ctypes
from collections.abc import Callable


class StopSignal:
    """Set by one thread, seen by another and, without any Python call, by native code.

    `flag` is a C string that is empty until the signal is set and one character long from then
    on. So the C library's own `strlen`, called with `flag` as its argument, is a native callback
    that answers "stop?" with 0 or 1: llama.cpp asks it for each node of a compute graph, where a
    Python callback would have to take the interpreter's lock each time. Whoever gives `flag` to
    native code keeps the signal alive for as long as that code may ask.

    Attributes:
        beat: what the computation calls with every batch (llama.cpp) or layer of one (torch), so
            that it is seen to get on: a pass of several batches can take many minutes.
    """

    def __init__(self, beat: Callable[[], object] = lambda: None) -> None:
        self.beat = beat
        self.flag = ctypes.create_string_buffer(2)

    def set(self) -> None:
        """Ask to stop, from any thread."""
        self.flag[0] = b"\x01"

    def clear(self) -> None:
        """Take the request back, for the next use of the same signal."""
        self.flag[0] = b"\x00"

    @property
    def is_set(self) -> bool:
        return self.flag[0] != b"\x00"
