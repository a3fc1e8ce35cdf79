import pytest

from app.accuracy import accuracy_line, wilson


@pytest.mark.parametrize(
    ("correct", "total", "low", "high"),
    [
        # Newcombe 1998, table I, Wilson's method without continuity correction.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_gives_published_intervals(
    correct: int, total: int, low: float, high: float
) -> None:
    assert wilson(correct, total) == pytest.approx((low, high), abs=5e-5)


def test_nothing_tried_says_nothing() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


def test_the_line_has_the_share_the_counts_and_the_interval() -> None:
    line = accuracy_line(81, 263)
    assert line == "accuracy 30.8% (81 of 263 correct, 95 % interval 25.5% to 36.6%)"
