"""gguf's writer, quicker with the arrays of a vocabulary, which it packs value by value."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import gguf
from gguf import GGUFValueType as Type

_LENGTH = struct.Struct("<Q")
_NUMBERS = {int: ("i", Type.INT32), float: ("f", Type.FLOAT32)}


class Writer(gguf.GGUFWriter):
    """Writes the same bytes; lists of texts, whole numbers or fractions are packed at once."""

    def _pack_val(
        self, val: Any, vtype: Type, add_vtype: bool, sub_type: Type | None = None
    ) -> bytes:
        packed = _packed(val) if vtype is Type.ARRAY and sub_type is None else None
        if packed is None:
            return super()._pack_val(val, vtype, add_vtype, sub_type)
        return (struct.pack("<I", vtype) if add_vtype else b"") + packed


def _packed(values: Sequence[Any]) -> bytes | None:
    """An array with its type and length; None where this way knows no better."""
    if not isinstance(values, list) or len(kinds := set(map(type, values))) != 1:
        return None
    (kind,) = kinds
    if kind is str:
        texts = [text.encode() for text in values]
        content = b"".join(part for text in texts for part in (_LENGTH.pack(len(text)), text))
        return struct.pack("<IQ", Type.STRING, len(texts)) + content
    if kind not in _NUMBERS:
        return None
    letter, type_ = _NUMBERS[kind]
    return struct.pack(f"<IQ{len(values)}{letter}", type_, len(values), *values)
