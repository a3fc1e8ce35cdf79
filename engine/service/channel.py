"""The worker's two pipes to its client."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

from engine.protocol import decode_message, encode
from engine.protocol.messages import Message


class Channel:
    """Messages over the pipes that were this process's standard input and output.

    Making one takes the pipes away from everybody else: file descriptor 1 then goes where 2
    goes, and 0 is empty, so whatever native code prints or reads cannot touch the messages.
    """

    def __init__(self) -> None:
        self._input = os.fdopen(os.dup(0), "rb")
        self._output = os.dup(1)
        self._lock = threading.Lock()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)

    def send(self, message: Message) -> None:
        """Send a message, from any thread; waits while the client does not read.

        Ends the process if the client is gone, since nobody is left to work for.
        """
        line = memoryview(encode(message))
        with self._lock:
            try:
                while line:
                    line = line[os.write(self._output, line) :]
            except OSError:
                os._exit(0)

    def messages(self) -> Iterator[Message]:
        """What the client sends, until it is gone."""
        for line in self._input:
            yield decode_message(line)
