"""How long a decode step takes by the number of its rows, as measured on this device."""

from __future__ import annotations

_FADE = 0.98
"""Weight that a step keeps with each later one; contexts grow and other programs come and go."""
_ENOUGH = 8.0
"""Weight of all steps from which on the line through them is trusted."""


class StepTimes:
    """Fits seconds = fixed + marginal x rows to the steps seen lately."""

    def __init__(self) -> None:
        self._weight = self._rows = self._seconds = self._squares = self._products = 0.0

    def record(self, rows: int, seconds: float) -> None:
        self._weight = self._weight * _FADE + 1
        self._rows = self._rows * _FADE + rows
        self._seconds = self._seconds * _FADE + seconds
        self._squares = self._squares * _FADE + rows * rows
        self._products = self._products * _FADE + rows * seconds

    def extra_row_pays(self, rows: int, chance: float) -> bool:
        """Whether adding a row to a step of `rows` is worth a `chance` of saving one later.

        The row costs the marginal time now. If it is of use, it saves its share of a later step,
        which includes a part of what a step costs whatever its rows. Where steps are bound by
        reading weights (a GPU at small batches) the fixed part is large and it pays; where they
        are bound by arithmetic (a CPU) it does not. Not before enough steps were seen.
        """
        spread = self._weight * self._squares - self._rows * self._rows
        if self._weight < _ENOUGH or spread <= 0:
            return False
        slope = (self._weight * self._products - self._rows * self._seconds) / spread
        marginal = max(slope, 0.0)
        fixed = max((self._seconds - marginal * self._rows) / self._weight, 0.0)
        return marginal < chance * (fixed / rows + marginal)
