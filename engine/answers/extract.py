"""Finds the final answer in the text of a solution."""

from __future__ import annotations

import re

_BRACES = re.compile(r"\\(?:boxed|fbox)\s*\{|\\.|[{}]", re.DOTALL)
_EMPTY_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{\s*\}")
_PHRASES = (
    re.compile(r"final answer(?:\s+is|\s*:)[:\s]*", re.IGNORECASE),
    re.compile(r"answer(?:\s+is|\s*:)[:\s]*", re.IGNORECASE),
    re.compile(r"####\s*"),
)
_SENTENCE = re.compile(r"(?:\\.|(?!\.(?:\s|$))[^\n\\])*")
_NUMBER = re.compile(r"(?:(?<![\w)])-)?\d+(?:,\d{3})*(?:\.\d+)?(?:/\d+)?")
_PUNCTUATION = re.compile(r"(?<!\\right)(?<![.,;:\s])[.,;:\s]+$")
_WRAPPING = (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"), ("**", "**"), ("`", "`"))


def extract(text: str) -> str:
    r"""The answer as it is written in `text`, or "" if there is none.

    Tried in this order, the last occurrence of each: `\boxed{...}`, "final answer is",
    "answer is", `#### 42`, any number. Only delimiters around the answer and punctuation after
    it are taken off; what is inside, letters and units included, stays.
    """
    text = _EMPTY_BOX.sub("", text)
    answer = _boxed(text)
    if answer:
        return answer
    for phrase in _PHRASES:
        if answer := _after(phrase, text):
            return answer
    numbers = _NUMBER.findall(text)
    return numbers[-1] if numbers else ""


def _boxed(text: str) -> str:
    """The content of the last closed box; failing that, the line after the last open one."""
    opened: list[tuple[int, bool]] = []  # where each open brace's content starts; is it a box
    closed = (-1, -1)
    for match in _BRACES.finditer(text):
        brace = match.group()
        if brace.endswith("{") and brace != r"\{":
            opened.append((match.end(), brace != "{"))
        elif brace == "}" and opened:
            start, is_box = opened.pop()
            if is_box and start > closed[0]:
                closed = (start, match.start())
    if closed[0] >= 0:
        return _trimmed(text[slice(*closed)])
    unfinished = [start for start, is_box in opened if is_box]
    return _trimmed(text[unfinished[-1] :].partition("\n")[0]) if unfinished else ""


def _after(phrase: re.Pattern[str], text: str) -> str:
    """The rest of the sentence after the last occurrence of a phrase."""
    end = max((match.end() for match in phrase.finditer(text)), default=None)
    if end is None:
        return ""
    sentence = _SENTENCE.match(text, end)
    return _trimmed(sentence.group()) if sentence else ""


def _trimmed(answer: str) -> str:
    answer = _PUNCTUATION.sub("", answer.strip())
    for left, right in _WRAPPING:
        inside = answer[len(left) : -len(right)]
        if answer.startswith(left) and answer.endswith(right) and inside and left not in inside:
            return _trimmed(inside)
    return answer
