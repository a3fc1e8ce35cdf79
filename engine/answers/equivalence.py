r"""Whether two answers mean the same: 0.5, 1/2 and \frac12 do.

Most pairs are decided as they are written. Only what is left, an expression on at least one
side, is read by the math-verify package, in a process of its own: each answer once, and then
only the pairs whose numerical values agree.
"""

from __future__ import annotations

import math
from functools import lru_cache

from engine.answers.helper import Helper
from engine.answers.plain import normalised, same_as_written

TOLERANCE = 1e-5
"""Values further apart (absolutely below 1, relatively above) are not compared any further."""

_helper = Helper()


def equivalent(a: str, b: str) -> bool:
    """Whether two answers are the same value, expression or word.

    Never raises and always ends: a check that comes to no result within 5 s counts as
    "different". Its outcome is remembered, so that it does not change within a run.
    """
    a, b = sorted((normalised(a), normalised(b)))
    plain = same_as_written(a, b)
    return _same_expression(a, b) if plain is None else plain


@lru_cache(4096)
def _same_expression(a: str, b: str) -> bool:
    first, second = _value(a), _value(b)
    if first is None or second is None:
        return False
    if first and second and math.dist(first, second) > TOLERANCE * max(1, math.hypot(*first)):
        return False
    return _helper.ask(a, b) is True


@lru_cache(4096)
def _value(answer: str) -> list[float] | None:
    """Real and imaginary part, empty if it is no number; None if it cannot be read."""
    return _helper.ask(answer)
