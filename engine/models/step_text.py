"""From sampled tokens to the text of a step, and where the step ends."""

from __future__ import annotations

import codecs

DELIMITER = b"\n\n"


class StepText:
    """Grows the text of one node.

    The delimiter is looked for in the text, not among token ids: vocabularies merge it with what
    stands before it (".\\n\\n", ")\\n\\n" and many more). Blank lines before the first word of a
    step do not end it.

    Args:
        begun: bytes of a character that the step before was cut in.
    """

    __slots__ = ("_decoder", "_raw", "ended")

    def __init__(self, begun: bytes = b"") -> None:
        self._raw = bytearray()
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._decoder.decode(begun)
        self.ended = False
        """Whether the delimiter was written."""

    def append(self, piece: bytes) -> str:
        """Add a token's bytes; returns the characters they complete."""
        self._raw += piece
        if b"\n" in piece:
            self.ended = DELIMITER in self._raw.lstrip()
        return self._decoder.decode(piece)

    def copy(self) -> StepText:
        """One that goes on from here by itself."""
        other = StepText(self.incomplete)
        other._raw += self._raw
        other.ended = self.ended
        return other

    @property
    def incomplete(self) -> bytes:
        """Bytes of a character that is not complete yet."""
        return self._decoder.getstate()[0]

    def finish(self) -> str:
        """Characters that were still incomplete, as replacement characters."""
        return self._decoder.decode(b"", final=True)
