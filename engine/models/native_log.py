"""llama.cpp's own messages: to Python's logging, with the last error kept for the user."""

from __future__ import annotations

import ctypes
import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import llama_cpp

_logger = logging.getLogger("sapwood.llama")
_errors: deque[str] = deque(maxlen=4)
_ERROR, _CONTINUED = 4, 5
_listeners: list[Callable[[str], None]] = []


@llama_cpp.llama_log_callback
def _receive(level: int, text: bytes, _data: object) -> None:
    message = text.decode(errors="replace").rstrip()
    for listener in _listeners:
        listener(message)
    if level == _ERROR and message:
        _errors.append(message)
        _logger.error(message)
    elif level != _CONTINUED:
        _logger.debug(message)


def install() -> None:
    """Take over the log. The default would print to the terminal."""
    _errors.clear()
    llama_cpp.llama_log_set(_receive, ctypes.c_void_p())


@contextmanager
def heard_by(listener: Callable[[str], None]) -> Iterator[None]:
    """Within the block, every message goes to `listener` too."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def last_error() -> str:
    """What went wrong most recently, in llama.cpp's words; the first error says the cause."""
    text = _errors[0] if _errors else ""
    _errors.clear()
    return text.partition(": ")[2] or text
