"""How long a pass takes by the number of its rows, as measured on this device."""

from __future__ import annotations

_FADE = 0.98
"""Weight that a pass keeps with each later one; contexts grow and other programs come and go."""
_ENOUGH = 8.0
"""Weight of all passes from which on the line through them is trusted."""


class StepTimes:
    """Fits seconds = fixed + marginal x rows to the passes seen lately."""

    def __init__(self) -> None:
        self._weight = self._rows = self._seconds = self._squares = self._products = 0.0
        self._fit: tuple[float, float] | None = None
        self._fitted = True

    def record(self, rows: int, seconds: float) -> None:
        self._weight = self._weight * _FADE + 1
        self._rows = self._rows * _FADE + rows
        self._seconds = self._seconds * _FADE + seconds
        self._squares = self._squares * _FADE + rows * rows
        self._products = self._products * _FADE + rows * seconds
        self._fitted = False

    @property
    def mean(self) -> float:
        """Seconds of a pass; 0 before the first."""
        return self._seconds / self._weight if self._weight else 0.0

    @property
    def fit(self) -> tuple[float, float] | None:
        """Seconds a pass costs whatever its rows, and seconds a row; None until it is known."""
        if not self._fitted:  # asked for several times between two passes
            self._fit, self._fitted = self._line(), True
        return self._fit

    def _line(self) -> tuple[float, float] | None:
        spread = self._weight * self._squares - self._rows * self._rows
        if self._weight < _ENOUGH or spread <= 0:
            return None
        slope = (self._weight * self._products - self._rows * self._seconds) / spread
        marginal = max(slope, 0.0)
        return max((self._seconds - marginal * self._rows) / self._weight, 0.0), marginal

    def extra_row_pays(self, rows: int, chance: float) -> bool:
        """Whether adding a row to a pass of `rows` is worth a `chance` of saving one later.

        The row costs the marginal time now. If it is of use, it saves its share of a later pass,
        which includes a part of what a pass costs whatever its rows. Where passes are bound by
        reading weights (a GPU at small batches) the fixed part is large and it pays; where they
        are bound by arithmetic (a CPU) it does not. Not before enough passes were seen.
        """
        if (fit := self.fit) is None:
            return False
        fixed, marginal = fit
        return marginal < chance * (fixed / rows + marginal)
