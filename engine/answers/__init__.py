"""Final answers: found in a solution's text, compared by meaning, and voted for.

Importing this package is cheap; sympy lives in a helper process that starts when two answers
cannot be compared without it.
"""

from __future__ import annotations

from engine.answers.equivalence import equivalent
from engine.answers.extract import extract
from engine.answers.vote import Choice, Method, Votes, choose

__all__ = ["Choice", "Method", "Votes", "choose", "equivalent", "extract"]
