"""Keys one after another: each goes where the one before has left the focus."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from time import monotonic

from textual.app import App
from textual.events import Key, Paste
from textual.message_pump import MessagePump

_PATIENCE = 1.0
"""Seconds after which a key waits no longer for one before it."""


Press = Key | Paste


class KeyQueue:
    """Hands out keys and pasted text, the next when all that the last one caused has been done.

    Textual sends a key to the focused widget at once, and what the key does, such as moving the
    focus, is done later, on the key's way up from there. Keys that come in a burst, as they do on
    a busy machine, would all go where the first one went: text typed after Esc would be commands
    of the tree.

    Args:
        hand_out: lets Textual have a key.
    """

    def __init__(self, app: App[None], hand_out: Callable[[Press], Awaitable[None]]) -> None:
        self._app = app
        self._hand_out = hand_out
        self._waiting: deque[Press] = deque()
        self._busy_since: float | None = None

    async def put(self, press: Press) -> None:
        """A key was pressed, or text pasted."""
        self._waiting.extend(_apart(press) if isinstance(press, Key) else [press])
        if self._busy_since is None or monotonic() - self._busy_since > _PATIENCE:
            await self._next()

    async def _next(self) -> None:
        self._busy_since = None
        if self._waiting:
            self._busy_since = monotonic()
            target = self._app.focused or self._app.screen
            await self._hand_out(self._waiting.popleft())
            # Once around in the widget itself, behind what it has posted because of the key.
            self._follow(target, lambda: self._follow(target, lambda: self._climb(target)))

    def _climb(self, pump: MessagePump) -> None:
        """Go the way that the key and all that came of it have gone."""
        above = pump._parent
        if above is None:
            self._app.call_later(self._next)
        else:
            self._follow(above, lambda: self._climb(above))

    def _follow(self, pump: MessagePump, then: Callable[[], None]) -> None:
        """Behind all that waits in there; a widget that is gone takes nothing more."""
        if not pump.call_later(then):
            self._app.call_later(self._next)


def _apart(key: Key) -> Iterator[Key]:
    """On a terminal, Alt with a letter is Esc and the letter. No command has such a key, so that
    they were typed in haste, or read late, and both are meant."""
    if key.key.startswith("alt+") and key.is_printable and key.character:
        yield Key("escape", "\x1b")
        yield Key(key.key.removeprefix("alt+"), key.character)
    else:
        yield key
