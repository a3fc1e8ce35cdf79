"""The helper process of `equivalence`: reads and compares answers with the math-verify package.

It is run as a script of its own, because reading or comparing can take for ever or all memory,
and because math-verify's own time-outs use SIGALRM, which works on Unix and in a main thread
only. Lines are JSON. After a first line `true`, each line in is a list and gets one line out:

    [a]      null if `a` is no mathematics, else its value [re, im], or [] if it is no number
    [a, b]   whether `a` and `b` are equal

What takes too long ends the process, by a watchdog that needs no interpreter lock, so that it
does so even when the parent is gone.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import sys
import zlib
from functools import lru_cache
from typing import Any

START_SECONDS = 60.0
CHECK_SECONDS = 5.0
REMEMBERED = 1024
"""Parsed answers kept; a vote compares each with many others."""


def main() -> None:
    replies, sys.stdout = sys.stdout, sys.stderr  # no library's print may become a reply
    faulthandler.dump_traceback_later(START_SECONDS, exit=True)
    import math_verify
    import sympy

    logging.disable()  # math-verify warns at every call that its time-outs are off

    @lru_cache(REMEMBERED)
    def parse(answer: str) -> list[Any]:
        # None turns math-verify's time-outs off, though the parameter is typed as an int.
        return math_verify.parse(f"${answer}$", parsing_timeout=None)  # pyright: ignore[reportArgumentType]

    def read(answer: str) -> list[float] | None:
        expression = next((e for e in parse(answer) if isinstance(e, sympy.Basic)), None)
        if expression is None:
            return None
        if not isinstance(expression, sympy.Expr) or "%" in answer:
            return []  # a set, an equation; 50% may mean 50 as well as 0.5
        try:
            point: dict[Any, Any] = {
                symbol: _coordinate(str(symbol)) for symbol in expression.free_symbols
            }
            value = complex(expression.evalf(subs=point))
        except Exception:  # a matrix, an overflow, ...
            return []
        return [value.real, value.imag] if abs(value) < float("inf") else []

    def same(a: str, b: str) -> bool:
        first, second = parse(a), parse(b)
        return any(  # verify(gold, answer) forgives more on one side
            math_verify.verify(*pair, timeout_seconds=None)
            for pair in ((first, second), (second, first))
        )

    same("x + 1", "1 + x")  # the first comparison of a process builds tables
    faulthandler.cancel_dump_traceback_later()
    print("true", file=replies, flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        faulthandler.dump_traceback_later(CHECK_SECONDS, exit=True)
        try:
            reply = read(*question) if len(question) == 1 else same(*question)
        except Exception:  # whatever a hostile answer provokes, nothing is known about it
            reply = None
        faulthandler.cancel_dump_traceback_later()
        print(json.dumps(reply), file=replies, flush=True)


def _coordinate(symbol: str) -> float:
    """Where a symbol is evaluated: anywhere, but the same in every expression."""
    return 1 + zlib.crc32(symbol.lower().encode()) / 2**32


if __name__ == "__main__":
    main()
