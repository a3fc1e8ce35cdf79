# ruff: noqa: RUF001 - signs that look like others are what this is about
"""A formula on several lines: fractions stacked, limits above and below, matrices, equations."""

from __future__ import annotations

from app.maths.boxes import Box, beside, fence, framed, stacked, table
from app.maths.inline import inline, lowered, piece_of, raised
from app.maths.reader import Unknown
from app.maths.spacing import gap, items_of
from app.maths.tree import (
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

_STACKING = frozenset("∑∏∐⋃⋂⨁⨂⋁⋀") | {"lim", "lim sup", "lim inf"}
"""Signs that carry their limits above and below."""
_NOTHING = Atom("", Kind.ORD)


def block(row: Row) -> str:
    """The row as lines.

    Raises:
        Unknown: it cannot be written so that it reads only one way.
    """
    return "\n".join(line.rstrip() for line in _box(row).lines)


def _box(row: Row) -> Box:
    if not any(map(_is_tall, row)):
        return Box.of(inline(row))
    items = items_of(row)
    boxes: list[Box] = []
    before = ""
    for place, item in enumerate(items):
        tall = _is_tall(item.node)
        piece = "" if tall else piece_of(items, place, compact=False)
        space = gap(items, place, before, piece or " ", compact=False)
        # Two strokes, or a minus and a stroke, must not become one.
        if place and any(isinstance(near.node, Fraction) for near in items[place - 1 : place + 1]):
            space = space or " "
        boxes += [Box.of(space), _tall(item.node) if tall else Box.of(piece.lstrip())]
        before = piece or " "
    return beside(boxes)


def _is_tall(node: Node) -> bool:
    match node:
        case Fraction() | Binomial() | Boxed() | Table():
            return True
        case Script(base=base):
            return base is not None and (_stacks(node) or _is_tall(base))
        case Fenced(body=body) | Root(body=body):
            return any(map(_is_tall, body))
    return False


def _stacks(node: Script) -> bool:
    return isinstance(node.base, Atom) and node.base.text in _STACKING and not node.primes


def _tall(node: Node) -> Box:
    match node:
        case Fraction():
            return stacked(_box(node.top), _box(node.bottom), stroke=True)
        case Binomial():
            return fence("(", stacked(_box(node.top), _box(node.bottom), stroke=False), ")")
        case Boxed():
            return framed(_box(node.body))
        case Fenced():
            return fence(node.left, _box(node.body), node.right)
        case Root():
            if node.index:
                raise Unknown
            return beside([Box.of("√"), fence("(", _box(node.body), ")")])
        case Script():
            return _script(node)
        case Table():
            return _table(node)
    raise AssertionError(node)


def _script(node: Script) -> Box:
    sub = inline(node.sub, compact=True) if node.sub else ""
    sup = inline(node.sup, compact=True) if node.sup else ""
    base = node.base
    if isinstance(base, Atom):
        limits = [Box.of(sup)] if sup else []
        return stacked(*limits, Box.of(base.text), *([Box.of(sub)] if sub else []), at=len(limits))
    assert base is not None
    box = _tall(base)
    if not isinstance(base, Fenced | Binomial | Boxed):
        box = fence("(", box, ")")
    above = "′" * node.primes + (sup if (small := raised(sup)) is None else small)
    below = sub if (small := lowered(sub)) is None else small
    between = [""] * (len(box.lines) - 2)
    return beside([box, Box((above, *between, below), box.axis)])


def _table(node: Table) -> Box:
    if node.layout is not Layout.EQUATIONS:
        cells = [[_box(cell) for cell in cells] for cells in node.rows]
        return table(cells, "^" if node.layout is Layout.MATRIX else "<", gap=2)
    rows = [[_box(_cell(cell, place)) for place, cell in enumerate(cells)] for cells in node.rows]
    aligned = any(len(cells) > 1 for cells in rows)
    return table(rows, "><" if aligned else "<", gap=0)


def _cell(cell: Row, place: int) -> Row:
    """What follows an `&` in an equation follows something, although that is in another cell."""
    return (_NOTHING, *cell) if place % 2 else cell
