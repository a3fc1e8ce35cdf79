"""The process that fetches a model: it can be killed at any time, and the next goes on from there.

`python -m engine.client.puller ROLE ID [--force]` writes messages, a JSON object a line.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from engine import catalogue
from engine.catalogue import OnHub, Role
from engine.client.planning import Job, plan_alone
from engine.errors import EngineError
from engine.hub.checkpoint import download_checkpoint
from engine.hub.download import download
from engine.hub.messages import Fetched, Message, Progress, Refused, encode
from engine.protocol.events import Trouble

_EVERY = 0.1
"""Seconds between two signs of progress, at least."""


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it decides
    role, name, *force = sys.argv[1:]
    try:
        _say(_pull("verifier" if role == "verifier" else "generator", name, force=bool(force)))
    except EngineError as error:
        _say(Refused(error.trouble, error.message, error.advice, error.forcible))


def _pull(role: Role, name: str, *, force: bool) -> Fetched:
    place = catalogue.locate(role, name)
    if isinstance(place, Path):
        return Fetched(place, 0, checked=True)
    if not force:
        _check_fit(role, name)
    told = 0.0

    def tell(progress: Progress) -> None:
        nonlocal told
        now = time.monotonic()
        if progress.note or now - told >= _EVERY or progress.done == progress.total:
            told = now
            _say(progress)

    if isinstance(place, OnHub):
        return download(place.repository, place.file, tell)
    return download_checkpoint(place.repository, tell)


def _check_fit(role: Role, name: str) -> None:
    planned = plan_alone(role, name, Job())
    if planned.plan.chosen is None:
        message, advice = planned.plan.refusal
        raise EngineError(
            Trouble.MEMORY,
            f"'{name}' was not downloaded. {message}",
            advice,
            forcible=True,
        )


def _say(message: Message) -> None:
    try:
        sys.stdout.buffer.write(encode(message))
        sys.stdout.buffer.flush()
    except OSError:  # nobody listens any more
        os._exit(1)


if __name__ == "__main__":
    main()
