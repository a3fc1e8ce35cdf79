"""A formula as a tree. A row is what stands side by side; braces that only group are not kept."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class Kind(Enum):
    """How a sign behaves among its neighbours."""

    ORD = auto()
    NUMBER = auto()
    TEXT = auto()
    """Words, from commands such as `\\text`."""
    OP = auto()
    """A named function, such as sin."""
    BIG = auto()
    """An operator that takes all that follows, such as a sum or a limit."""
    BIN = auto()
    SIGN = auto()
    """An operator with one operand; only known once the neighbours are."""
    SLASH = auto()
    REL = auto()
    OPEN = auto()
    CLOSE = auto()
    FENCED = auto()
    """Something between its own brackets."""
    PUNCT = auto()
    SPACE = auto()


@dataclass(frozen=True, slots=True)
class Atom:
    text: str
    kind: Kind
    tight: bool = False
    """A comma between digits without a blank in the source, where it may group thousands."""


@dataclass(frozen=True, slots=True)
class Fraction:
    top: Row
    bottom: Row


@dataclass(frozen=True, slots=True)
class Binomial:
    top: Row
    bottom: Row


@dataclass(frozen=True, slots=True)
class Root:
    body: Row
    index: Row | None


@dataclass(frozen=True, slots=True)
class Script:
    """A base with what hangs on it; there is none in `{}_n C_k`."""

    base: Node | None
    sub: Row | None = None
    sup: Row | None = None
    primes: int = 0


@dataclass(frozen=True, slots=True)
class Fenced:
    """Brackets, each possibly empty as in `\\right.`"""

    left: str
    body: Row
    right: str


@dataclass(frozen=True, slots=True)
class Accent:
    mark: str
    """A combining character."""
    body: Row


@dataclass(frozen=True, slots=True)
class Boxed:
    body: Row


class Layout(Enum):
    MATRIX = auto()
    CASES = auto()
    EQUATIONS = auto()


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells: a matrix, cases, or equations one below the other."""

    layout: Layout
    rows: tuple[tuple[Row, ...], ...]


Node = Atom | Fraction | Binomial | Root | Script | Fenced | Accent | Boxed | Table
Row = tuple[Node, ...]
