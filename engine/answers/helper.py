"""Keeps one `checker` process: started when first needed, again when it has ended."""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any


class Helper:
    """A checker process behind one method. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        atexit.register(self.close)

    def ask(self, *answers: str) -> Any:
        """The checker's reply about one or two answers (see there); None if it failed."""
        with self._lock:
            try:
                return self._exchange(self._process or self._start(), json.dumps(answers))
            except (OSError, EOFError):
                self.close()
                return None

    def close(self) -> None:
        """End the process, in the middle of a check if need be."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    @property
    def pid(self) -> int | None:
        """Id of the running process, if there is one."""
        return self._process.pid if self._process else None

    def _start(self) -> subprocess.Popen[str]:
        # -P keeps this folder off the checker's import path.
        command = [sys.executable, "-P", str(Path(__file__).with_name("checker.py"))]
        process = self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        self._read(process)
        return process

    def _exchange(self, process: subprocess.Popen[str], question: str) -> Any:
        assert process.stdin is not None
        process.stdin.write(question + "\n")
        process.stdin.flush()
        return self._read(process)

    @staticmethod
    def _read(process: subprocess.Popen[str]) -> Any:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.endswith("\n"):
            raise EOFError("the checker ended before it replied")
        return json.loads(line)
