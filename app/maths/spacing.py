"""What each node is at its place in a row, and the space before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.maths.tree import Atom, Binomial, Boxed, Fenced, Kind, Node, Row, Script

_BAR = Atom("|", Kind.ORD)
_BEFORE_SIGN = frozenset(
    (None, Kind.BIN, Kind.SIGN, Kind.REL, Kind.OPEN, Kind.PUNCT, Kind.OP, Kind.BIG, Kind.SLASH)
)
_AFTER_NOTHING = frozenset((Kind.REL, Kind.CLOSE, Kind.PUNCT))


@dataclass(frozen=True, slots=True)
class Item:
    """A node, as it behaves at its place in the row."""

    node: Node
    kind: Kind
    space: str
    """White space asked for before it."""


def items_of(row: Row) -> list[Item]:
    """The nodes of a row but for the spaces, with the kind each has among the others."""
    items: list[Item] = []
    space = ""
    in_bars = False
    for node in row:
        kind = kind_of(node)
        if isinstance(node, Atom) and kind is Kind.SPACE:
            space += node.text
            continue
        before = items[-1].kind if items else None
        opened = in_bars and items[-1].node == _BAR
        if kind is Kind.BIN and (before in _BEFORE_SIGN or opened):
            kind = Kind.SIGN
        elif before is Kind.BIN and kind in _AFTER_NOTHING:
            items[-1] = _alone(items[-1])
        in_bars ^= node == _BAR
        items.append(Item(node, kind, space))
        space = ""
    if items and items[-1].kind is Kind.BIN:
        items[-1] = _alone(items[-1])
    return items


def kind_of(node: Node | None) -> Kind:
    """The kind a node has by itself."""
    match node:
        case Atom():
            return node.kind
        case Script():
            return kind_of(node.base)
        case Fenced() | Binomial() | Boxed():
            return Kind.FENCED
    return Kind.ORD


def gap(items: Sequence[Item], place: int, text: str, piece: str, *, compact: bool) -> str:
    """The space between an item, which is shown as `piece`, and the `text` before it."""
    if place == 0 or not piece:
        return ""
    left, right = items[place - 1], items[place]
    asked = right.space
    if compact and (left.kind, right.kind) != (Kind.NUMBER, Kind.NUMBER):
        asked = ""
    return max(asked, _gap(left, right, text[-1:], piece[0], compact=compact), key=len)


def _gap(left: Item, right: Item, last: str, first: str, *, compact: bool) -> str:
    kinds = (left.kind, right.kind)
    if Kind.REL in kinds:
        return "" if compact or left.kind is right.kind else " "
    if Kind.BIN in kinds:
        return "" if compact and not (_is_word(left) or _is_word(right)) else " "
    if left.kind is Kind.PUNCT:
        tight = compact or (isinstance(left.node, Atom) and left.node.tight)
        return "" if tight else " "
    if left.kind in (Kind.OP, Kind.BIG):
        if right.kind in (Kind.CLOSE, Kind.PUNCT):
            return ""
        # What follows a bracketed script must not look like its going on.
        return "" if left.kind is Kind.OP and first == "(" and last != ")" else " "
    if right.kind in (Kind.OP, Kind.BIG):
        return "" if left.kind in (Kind.OPEN, Kind.SLASH, Kind.SIGN) else " "
    if Kind.TEXT in kinds:
        return " " if last.isalpha() and first.isalpha() else ""
    return ""


def _alone(item: Item) -> Item:
    """An operator with nothing after it, as in `x^+`, is a sign like any other."""
    return Item(item.node, Kind.ORD, item.space)


def _is_word(item: Item) -> bool:
    """Whether it is an operator in letters, such as mod."""
    return isinstance(item.node, Atom) and item.kind is Kind.BIN and item.node.text.isalpha()
