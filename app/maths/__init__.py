"""LaTeX shown as Unicode under one contract, *right or raw*.

`render` returns None unless it knows every token and every construction of a formula; the caller
then shows the source. A wrong formula is worse than an ugly one. `split` finds the formulas in
Markdown.
"""

from app.maths.parser import parse
from app.maths.reader import NESTING, Unknown
from app.maths.split import LENGTH, Piece, split

__all__ = ["LENGTH", "NESTING", "Piece", "render", "split"]


def render(latex: str, *, display: bool = False) -> str | None:
    """The formula as text, or None where that is not known to be right.

    Args:
        latex: the source between the delimiters.
        display: several lines are allowed: stacked fractions, matrices, aligned equations.
            The lines all belong in one monospaced block.
    """
    from app.maths.block import block
    from app.maths.inline import inline

    if len(latex) > LENGTH:
        return None
    try:
        row = parse(latex)
    except Unknown:
        return None
    for way in (block, inline) if display else (inline,):
        try:
            return way(row) or None
        except Unknown:
            continue
    return None
