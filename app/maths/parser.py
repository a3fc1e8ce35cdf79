"""From LaTeX to a tree. Whatever is not known, or not complete, is refused."""

from __future__ import annotations

import re
from dataclasses import replace

from app.maths import symbols
from app.maths.reader import Reader, Unknown
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

_STOPS = frozenset(("", "}", "&", r"\\", r"\right", r"\end"))
"""What ends every row; the empty token is the end."""
_PLACES = frozenset((r"\limits", r"\nolimits"))
"""They say where a script goes, which the printer decides."""
_MARKS = frozenset(("^", "_", "'")) | _PLACES
_DIMENSION = re.compile(r"\[\s*-?[0-9.]+\s*(?:pt|em|ex|mm|cm)\s*\]")
_COLUMNS = re.compile(r"\{[lcr\s]*\}")
_WORDS = re.compile(r"(?:[^\\{}$%#&_^~]|\\[ %$#&_])*")


def parse(source: str) -> Row:
    """The formula as a row.

    Raises:
        Unknown: it is not known how to show all of it.
    """
    return _Parser(source).formula()


class _Parser(Reader):
    def formula(self) -> Row:
        rows = self._rows()
        if self.next.text or any(len(cells) > 1 for cells in rows):
            raise Unknown
        return rows[0][0] if len(rows) == 1 else (Table(Layout.EQUATIONS, rows),)

    def _rows(self) -> tuple[tuple[Row, ...], ...]:
        rows: list[list[Row]] = [[self._row()]]
        while self.next.text in ("&", r"\\"):
            if self.take().text == "&":
                rows[-1].append(self._row())
            else:
                self.match(_DIMENSION, self.next.start)
                rows.append([self._row()])
        if len(rows) > 1 and rows[-1] == [()]:
            rows.pop()
        return tuple(tuple(cells) for cells in rows)

    def _row(self, stop: str = "") -> Row:
        """What stands side by side up to `stop`, or to something that ends every row."""
        row: list[Node] = []
        opened: list[int] = []
        before = self.depth
        while self.next.text not in _STOPS and not (self.next.text == stop and not opened):
            for node in self._scripts(self._unit(row), first=not row):
                base = node.base if isinstance(node, Script) else node
                if isinstance(base, Atom) and base.kind is Kind.CLOSE and opened:
                    self._close(row, opened, node, base)
                    continue
                if isinstance(base, Atom) and base.kind is Kind.OPEN:
                    if node is not base:
                        raise Unknown
                    opened.append(len(row))
                    self.depth += 1
                row.append(node)
            self.check_depth()
        self.depth = before
        return tuple(row)

    def _close(self, row: list[Node], opened: list[int], node: Node, base: Atom) -> None:
        """Make what stands since the bracket that `base` closes one thing, if it closes one."""
        begin = row[opened[-1]]
        assert isinstance(begin, Atom)
        if base.text not in symbols.PAIRS[begin.text]:
            row.append(node)
            return
        fenced = Fenced(begin.text, tuple(row[opened[-1] + 1 :]), base.text)
        del row[opened.pop() :]
        self.depth -= 1
        row.append(replace(node, base=fenced) if isinstance(node, Script) else fenced)

    def _scripts(self, base: Row, *, first: bool) -> Row:
        """The base with the primes, subscripts and superscripts that follow it."""
        sub: Row | None = None
        sup: Row | None = None
        primes = 0
        while (mark := self.next.text) in _MARKS:
            self.take()
            if mark == "'":
                if sup is not None:
                    raise Unknown
                primes += 1
            elif mark == "_" and sub is None:
                sub = self._argument()
            elif mark == "^" and sup is None:
                sup = self._argument()
            elif mark not in _PLACES:
                raise Unknown
        if sub is None and sup is None and not primes:
            return base
        if not base and first:
            return (Script(None, sub, sup, primes),)
        if len(base) != 1 or (isinstance(base[0], Atom) and base[0].kind in _BARE):
            raise Unknown
        return (Script(base[0], sub, sup, primes),)

    def _argument(self) -> Row:
        """What a command or a script applies to: a group, or the next thing alone."""
        with self.deeper():
            if self.next.text in _STOPS or self.next.text in _MARKS:
                raise Unknown
            if self.next.is_digit:
                return (Atom(self.take().text, Kind.NUMBER),)
            return self._unit([])

    def _unit(self, before: list[Node]) -> Row:
        """The next thing, which may be nothing, or several things that only a group held."""
        token = self.next
        if token.text == "{":
            self.take()
            with self.deeper():
                row = self._row()
            self.expect("}")
            # In `1{,}000` the braces take away the space after the comma.
            return (Atom(",", Kind.PUNCT, tight=True),) if row == (_COMMA,) else row
        self.take()
        if token.text.startswith("\\"):
            return self._command(token.text[1:])
        if token.is_digit:
            return (self._number(token.text),)
        if token.text == "." and self.next.is_digit and not self.next.spaced:
            return (self._number("."),)
        if token.text not in symbols.CHARACTERS:
            raise Unknown
        atom = Atom(*symbols.CHARACTERS[token.text])
        return (replace(atom, tight=atom == _COMMA and self._between_digits(before)),)

    def _between_digits(self, before: list[Node]) -> bool:
        """Whether the comma just taken has a digit on both sides and no blank after it."""
        self.skip(r"\!")
        last = before[-1] if before else None
        return (
            isinstance(last, Atom)
            and last.kind is Kind.NUMBER
            and self.next.is_digit
            and not self.next.spaced
        )

    def _number(self, text: str) -> Atom:
        while self.next.is_digit or (
            self.next.text == "."
            and "." not in text
            and self.ahead(1).is_digit
            and not self.ahead(1).spaced
        ):
            text += self.take().text
        return Atom(text, Kind.NUMBER)

    def _command(self, name: str) -> Row:
        if name in symbols.IGNORED:
            return ()
        if name in symbols.COMMANDS:
            return (Atom(*symbols.COMMANDS[name]),)
        if name in symbols.FRACTIONS:
            return (Fraction(self._argument(), self._argument()),)
        if name in symbols.BINOMIALS:
            return (Binomial(self._argument(), self._argument()),)
        if name in symbols.TEXTS:
            return (self._words(),)
        if name in symbols.ACCENTS:
            return (self._accent(symbols.ACCENTS[name]),)
        if name in symbols.ALPHABETS:
            return self._lettering(symbols.ALPHABETS[name])
        match name:
            case "sqrt":
                return (self._root(),)
            case "left":
                return (self._fenced(),)
            case "middle":
                return (Atom(self._delimiter(), Kind.REL),)
            case "begin":
                return (self._environment(),)
            case "mathrm" | "mathit":
                return self._upright()
            case "operatorname":
                self.skip("*")
                return (replace(self._words(), kind=Kind.OP),)
            case "boxed" | "fbox":
                return (Boxed(self._argument()),)
            case "pmod":
                modulus = (Atom("mod", Kind.OP), *self._argument())
                return (Atom(" ", Kind.SPACE), Fenced("(", modulus, ")"))
            case "not":
                return _negated(self._argument())
        raise Unknown

    def _words(self) -> Atom:
        words = self.match(_WORDS, self.expect("{").end)
        self.expect("}")
        words = re.sub(r"\\(.)", r"\1", re.sub(r"\s+", " ", words))
        if not words.isprintable():
            raise Unknown
        return Atom(words, Kind.TEXT)

    def _upright(self) -> Row:
        row = self._argument()
        letters = [n.text for n in row if isinstance(n, Atom) and n.text.isalpha()]
        # A single letter, as in an upright d, is printed upright anyway.
        return (Atom("".join(letters), Kind.TEXT),) if 1 < len(row) == len(letters) else row

    def _lettering(self, alphabet: dict[str, str]) -> Row:
        letters: list[Node] = []
        for node in self._argument():
            if not isinstance(node, Atom) or not all(c in alphabet for c in node.text):
                raise Unknown
            letters.append(replace(node, text="".join(alphabet[c] for c in node.text)))
        return tuple(letters)

    def _accent(self, mark: str) -> Accent:
        body = self._argument()
        single = len(body) == 1 and isinstance(body[0], Atom) and len(body[0].text) == 1
        if not body or not (single or mark in symbols.LINES):
            raise Unknown
        return Accent(mark, body)

    def _root(self) -> Root:
        index = None
        if self.next.text == "[":
            self.take()
            with self.deeper():
                index = self._row(stop="]")
            self.expect("]")
        return Root(self._argument(), index)

    def _fenced(self) -> Fenced:
        with self.deeper():
            left = self._delimiter()
            body = self._row()
            self.expect(r"\right")
            return Fenced(left, body, self._delimiter())

    def _delimiter(self) -> str:
        text = self.take().text
        if text == ".":
            return ""
        if len(text) == 1 and text in "()[]|/":
            return text
        sign, _ = symbols.COMMANDS.get(text[1:], ("", Kind.ORD))
        if sign and (sign in symbols.PAIRS or any(sign in ends for ends in symbols.PAIRS.values())):
            return sign
        raise Unknown

    def _environment(self) -> Node:
        with self.deeper():
            name = self._name()
            lacking = name == "array" and not self.match(_COLUMNS, self.next.start)
            if lacking or name not in symbols.ENVIRONMENTS:
                raise Unknown
            layout, left, right = symbols.ENVIRONMENTS[name]
            table = Table(layout, self._rows())
            self.expect(r"\end")
            if self._name() != name:
                raise Unknown
        return Fenced(left, (table,), right) if left else table

    def _name(self) -> str:
        self.expect("{")
        name = ""
        while self.next.text.isalpha() or self.next.text == "*":
            name += self.take().text
        self.expect("}")
        return name


_COMMA = Atom(",", Kind.PUNCT)
_BARE = frozenset((Kind.BIN, Kind.REL, Kind.OPEN, Kind.PUNCT, Kind.SLASH, Kind.SPACE))
"""What no script can hang on."""


def _negated(row: Row) -> Row:
    match row:
        case (Atom(text),) if text in symbols.NEGATED:
            return (Atom(symbols.NEGATED[text], Kind.REL),)
    raise Unknown
