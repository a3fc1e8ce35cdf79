import pytest

from app.glyphs import glyphs_for
from app.printable import encodable, one_line, printable
from app.run_view import State


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("a\x7fb\x00", "a\\x7fb\\x00"),
        ("\u202eevil\u2066", "\\u202eevil\\u2066"),
        ("over\rwritten", "over\\x0dwritten"),
        ("two\r\nlines\tand a tab", "two\nlines\tand a tab"),
        ("[red]{x} ∑ 数", "[red]{x} ∑ 数"),
    ],
)
def test_control_characters_are_shown_not_sent(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_one_line_has_no_line_end() -> None:
    assert one_line(" a\n\nb\u2028c\t d\x1b ") == "a b c d\\x1b"


def test_what_an_encoding_lacks_is_replaced() -> None:
    assert encodable("x ∑", "ascii") == "x ?"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437", "utf-8", None, "no-such"])
def test_every_state_has_its_own_glyph_in_every_encoding(encoding: str | None) -> None:
    glyphs = glyphs_for(encoding)
    assert len({glyphs.states[state] for state in State}) == len(State)
    glyphs.score(0.5).encode(glyphs.encoding)
    assert glyphs.one_line("∑").encode(glyphs.encoding)


def test_scores_have_the_same_width_with_and_without_a_value() -> None:
    glyphs = glyphs_for("utf-8")
    assert {len(glyphs.score(score)) for score in (None, 0.0, 0.5, 1.0)} == {10}
