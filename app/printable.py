"""Text from models, files and users, made safe for a terminal."""

from __future__ import annotations

_CONTROLS = (
    *range(0x20),
    *range(0x7F, 0xA0),
    *(0x061C, 0x200E, 0x200F, 0x2028, 0x2029),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
)
"""C0, DEL and C1, which terminals obey, and the marks that turn or break lines unseen."""

_VISIBLE = {c: f"\\x{c:02x}" if c < 0x100 else f"\\u{c:04x}" for c in _CONTROLS} | {
    ord("\n"): "\n",
    ord("\t"): "\t",
}


def printable(text: str) -> str:
    """Show control characters as escapes such as `\\x1b`; line ends and tabs stay."""
    return text.replace("\r\n", "\n").translate(_VISIBLE)


def one_line(text: str) -> str:
    """The same on one line, with every run of white space as a single blank."""
    return printable(" ".join(text.split()))


def encodable(text: str, encoding: str) -> str:
    """Replace by `?` what the encoding does not have."""
    return text.encode(encoding, "replace").decode(encoding)
