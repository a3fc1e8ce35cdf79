"""A vocabulary of which every token can be read: characters, and a few longer texts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence


class FakeVocabulary:
    """Implements `Vocabulary`. Longer texts are tokens with the ids given; the rest is characters.

    Args:
        texts: tokens that any text may contain.
        control: tokens that only `special` text may contain.
        bos: id of a token put first where asked for.
    """

    def __init__(
        self, texts: Mapping[str, int], control: Mapping[str, int], bos: int | None = None
    ) -> None:
        self.size = 1 << 20
        self._texts = dict(texts)
        self._control = dict(control)
        self._bos = bos
        self._names = {i: t for t, i in (*texts.items(), *control.items())}

    def tokenize(self, text: str, *, special: bool = False, bos: bool = False) -> list[int]:
        known = {**self._texts, **(self._control if special else {})}
        longest = sorted(known, key=len, reverse=True)
        parts = re.findall("|".join([*map(re.escape, longest), "."]), text, re.DOTALL)
        first = [self._bos] if bos and self._bos is not None else []
        return first + [known.get(part, 100_000 + ord(part[0])) for part in parts]

    def piece(self, token: int) -> bytes:
        return self._name(token).encode()

    def is_end(self, token: int) -> bool:
        return False

    def text(self, tokens: Sequence[int]) -> str:
        """What the tokens say, longer ones in angle quotes."""
        return "".join(f"«{self._names[t]}»" if t in self._names else self._name(t) for t in tokens)

    def _name(self, token: int) -> str:
        return self._names.get(token) or chr(token - 100_000)
