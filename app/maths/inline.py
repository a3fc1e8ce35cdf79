# ruff: noqa: RUF001 - signs that look like others are what this is about
"""A formula on one line."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import combining

from app.maths.reader import Unknown
from app.maths.spacing import Item, gap, items_of, kind_of
from app.maths.symbols import SUBSCRIPTS, SUPERSCRIPTS
from app.maths.tree import (
    Accent,
    Atom,
    Binomial,
    Boxed,
    Fenced,
    Fraction,
    Kind,
    Layout,
    Node,
    Root,
    Row,
    Script,
    Table,
)

_ROOTS = {"3": "∛", "4": "∜"}
_SAFE = frozenset("+-±∓·×*∗")
"""Operators next to which `a/b` reads as the fraction it is: they bind less, or as much and from
the left."""
_SIGNS = frozenset("+-±∓")


def inline(row: Row, *, compact: bool = False) -> str:
    """The row as text.

    Args:
        compact: leave out the spaces around operators, as in scripts.

    Raises:
        Unknown: it cannot be written on one line so that it reads only one way.
    """
    items = items_of(row)
    text = ""
    for place in range(len(items)):
        piece = piece_of(items, place, compact)
        text += gap(items, place, text, piece, compact=compact) + piece
    return text


def piece_of(items: Sequence[Item], place: int, compact: bool) -> str:
    """One item of a row, in the brackets that its neighbours make necessary."""
    node = items[place].node
    match node:
        case Atom():
            return node.text
        case Fraction():
            return _fraction(items, place, node)
        case Root():
            return _root(items, place, node)
        case Script():
            return script(node, _base(node.base, compact))
        case Accent():
            return accented(node)
        case Table():
            raise Unknown  # nothing would show where it begins and ends
        case _:
            return _enclosed(node, compact)


def _enclosed(node: Fenced | Binomial | Boxed, compact: bool) -> str:
    match node:
        case Binomial():
            return f"({inline(node.top)} choose {inline(node.bottom)})"
        case Boxed():
            return f"⟦{inline(node.body)}⟧"
    match node.body:
        case (Table() as table,):
            return node.left + _table(table) + (node.right or "}")
    body = inline(node.body, compact=compact)
    if not (node.left and node.right) and not is_single(node.body):
        body = f"({body})"  # the bar of an evaluation would go with the last thing only
    return node.left + body + node.right


def _table(table: Table) -> str:
    """Cells with commas, rows with semicolons between them."""
    if table.layout is Layout.EQUATIONS:
        raise Unknown
    rows: list[str] = []
    for cells in table.rows:
        texts = [inline(cell).removesuffix(",") for cell in cells]
        if any("," in text or ";" in text for text in texts):
            raise Unknown
        rows.append(", ".join(texts))
    return "; ".join(rows)


# --- Fractions and roots: what has no brackets in LaTeX needs some on a line ---


def _fraction(items: Sequence[Item], place: int, node: Fraction) -> str:
    top, bottom = inline(node.top), inline(node.bottom)
    if not _is_product(node.top):
        top = f"({top})"
    if not (is_single(node.bottom) or _is_differential(node)):
        bottom = f"({bottom})"
    text = f"{top}/{bottom}"
    numeric = _is_number(node.top + node.bottom)
    right = _safe_right(items, place) or (numeric and _before_unit(items, place))
    if right and _safe_left(items, place):
        return text
    if place and numeric and _is_number((items[place - 1].node,)):
        # A mixed number, or a product? The line says no more than the source does.
        if right and _safe_left(items, place - 1):
            return f" {text}"
        raise Unknown
    return f"({text})"


def _safe_left(items: Sequence[Item], place: int) -> bool:
    """Whether what stands before a quotient leaves it as it is."""
    if place == 0:
        return True
    before = items[place - 1]
    if before.kind is Kind.SIGN:
        return _is_sign(before, _SIGNS) and _safe_left(items, place - 1)
    return before.kind in (Kind.REL, Kind.OPEN, Kind.PUNCT) or _is_sign(before, _SAFE)


def _safe_right(items: Sequence[Item], place: int) -> bool:
    """The same for what follows it."""
    if place + 1 == len(items):
        return True
    after = items[place + 1]
    if after.kind is Kind.CLOSE:
        return isinstance(after.node, Atom) and after.node.text != "!"
    return after.kind in (Kind.REL, Kind.PUNCT) or _is_sign(after, _SAFE)


def _before_unit(items: Sequence[Item], place: int) -> bool:
    """Whether words follow at a distance, as in `3/4 cup`."""
    after = items[place + 1]
    return isinstance(after.node, Atom) and after.kind is Kind.TEXT and after.node.text[:1] == " "


def _is_sign(item: Item, signs: frozenset[str]) -> bool:
    return (
        item.kind in (Kind.BIN, Kind.SIGN)
        and isinstance(item.node, Atom)
        and item.node.text in signs
    )


def _root(items: Sequence[Item], place: int, node: Root) -> str:
    index = inline(node.index, compact=True) if node.index else ""
    if (small := raised(index)) is None:
        raise Unknown
    sign = _ROOTS.get(index) or small + "√"
    touched = place + 1 < len(items) and items[place + 1].kind not in _APART
    bare = len(node.body) == 1 and isinstance(node.body[0], Atom) and not touched
    body = inline(node.body)
    text = sign + (body if bare and body.isalnum() else f"({body})")
    # After another sign the index would be that one's exponent.
    return f"({text})" if place and sign[:-1] and items[place - 1].kind in _HOLDS_SCRIPTS else text


_APART = frozenset((Kind.BIN, Kind.REL, Kind.PUNCT, Kind.SLASH, Kind.OP))
_HOLDS_SCRIPTS = frozenset(
    (Kind.ORD, Kind.NUMBER, Kind.TEXT, Kind.CLOSE, Kind.FENCED, Kind.OP, Kind.BIG)
)


def _is_number(row: Row) -> bool:
    return all(isinstance(node, Atom) and node.text.isdecimal() for node in row)


def is_single(row: Row) -> bool:
    """Whether the row is one thing that nothing beside it can take apart."""
    if len(row) != 1:
        return False
    match row[0]:
        case Atom(text, kind):
            return kind in (Kind.ORD, Kind.NUMBER) or (kind is Kind.TEXT and text.isalnum())
        case Script(base):
            return base is not None and is_single((base,))
        case Accent(body=body):
            return len(body) == 1
        case Fenced(left, _, right):
            return bool(left and right)
        case Binomial() | Boxed() | Root():
            return True
    return False


def _is_product(row: Row) -> bool:
    """Whether the row is single things side by side, which are not less together over a stroke."""
    return bool(row) and all(is_single((node,)) or node == _FACTORIAL for node in row)


_FACTORIAL = Atom("!", Kind.CLOSE)


def _is_differential(node: Fraction) -> bool:
    """Whether it is a derivative, whose dx is one sign."""
    match node:
        case Fraction((Atom("d" | "∂") as first, *_), (Atom("d" | "∂") as second, Atom() as by)):
            return first == second and by.kind is Kind.ORD
    return False


# --- Scripts and accents ---


def _base(node: Node | None, compact: bool) -> str:
    """What a script hangs on, in brackets if it could hang on a part of it."""
    if node is None:
        return ""
    text = inline((node,), compact=compact)
    whole = isinstance(node, Atom | Fenced | Binomial | Boxed) or (
        isinstance(node, Accent) and is_single((node,))
    )
    return text if whole else f"({text})"


def script(node: Script, base: str) -> str:
    """The base with its scripts: as signs of their own where all have one, else in brackets."""
    sub = inline(node.sub, compact=True) if node.sub else ""
    sup = inline(node.sup, compact=True) if node.sup else ""
    low, high = lowered(sub), raised(sup)
    signs = (low or "") + "′" * node.primes + (high or "")
    brackets = ""
    if low is None:
        brackets += f"_({sub})"
    if high is None:
        free = len(sup) == 1 and kind_of(node.base) is Kind.BIG  # a space follows
        brackets += f"^{sup}" if free else f"^({sup})"
    return base + signs + brackets


def raised(text: str) -> str | None:
    """The text in small letters above the line; None where some have no such sign."""
    return "°" if text == "∘" else _mapped(text, SUPERSCRIPTS)


def lowered(text: str) -> str | None:
    """The text in small letters below the line."""
    return _mapped(text, SUBSCRIPTS)


def _mapped(text: str, signs: dict[str, str]) -> str | None:
    return "".join(signs[c] for c in text) if all(c in signs for c in text) else None


def accented(node: Accent) -> str:
    """Letters, each with the mark."""
    text = inline(node.body, compact=True)
    if any(not c.isprintable() or c.isspace() or combining(c) for c in text):
        raise Unknown
    return "".join(c + node.mark for c in text)
