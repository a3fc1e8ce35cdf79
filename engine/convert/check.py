"""Whether llama.cpp reads text as the checkpoint's own tokenizer does."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer

from engine.errors import EngineError
from engine.models.base import Vocabulary
from engine.protocol.events import Trouble

SAMPLES = (
    "Tom has 12 apples. He buys 7 more, so he has 12 + 7 = 19 apples.",
    "Step 1: Let $x = \\frac{3}{4}$.\n\nStep 2: Then \\[x^2 = \\boxed{\\frac{9}{16}}.\\]\n",
    "It's 1234567.89 (about 1.2e6); don't we'll  two   three    four\tspaces \n \n  x",
    "def f(n):\n    return [i**2 for i in range(n) if i % 2 == 0]  # ok?!\r\n\r\n",
    "Größe naïve 数学 ответ: ки \u03b1\u2264\u03b2 \U0001f680",
    " \n\n\n\n.\n\n)\n\n?\n\n\n\n\n",
    "+ - ки",
)
"""Numbers, mathematics, spaces, code, scripts and line ends: where splitting rules differ."""


def check_tokens(
    tokenizer: Path, vocabulary: Vocabulary, control: Iterable[str], name: str
) -> None:
    """Compare token ids on the samples and on control tokens between words.

    Args:
        tokenizer: the checkpoint's tokenizer.json.

    Raises:
        EngineError: they differ somewhere.
    """
    try:
        theirs = Tokenizer.from_file(str(tokenizer))
    except Exception as error:  # the package raises nothing more exact
        raise EngineError(
            Trouble.MODEL, f"{tokenizer} cannot be read: {error}.", "Download it again."
        ) from None
    for text in (*SAMPLES, *(f"one{token}two" for token in control)):
        expected = theirs.encode(text, add_special_tokens=False).ids
        found = vocabulary.tokenize(text, special=True)
        if found != expected:
            place = next(
                (
                    i
                    for i, pair in enumerate(zip(expected, found, strict=False))
                    if pair[0] != pair[1]
                ),
                min(len(expected), len(found)),
            )
            raise EngineError(
                Trouble.MODEL,
                f"llama.cpp would read text otherwise than the tokenizer of {name} does: "
                f"{text!r} differs from token {place + 1} on "
                f"({found[place : place + 3]}, not {expected[place : place + 3]}).",
                "Its scores would be wrong, so nothing was written. Look for a ready GGUF of it.",
            )
