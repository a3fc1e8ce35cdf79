"""Markdown: what was said, as it was said, and the trees as text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from app.export.document import Document, Turn
from app.glyphs import glyphs_for
from app.printable import one_line
from app.run_view import RunView
from app.store import Role, State
from app.text_tree import text_tree

NAMES = {Role.USER: "You", Role.ASSISTANT: "Sapwood"}
ENDINGS = {
    State.COMPLETE: "",
    State.RUNNING: "not finished",
    State.STOPPED: "stopped",
    State.FAILED: "failed",
}


def markdown(document: Document) -> str:
    """The document as Markdown; the text of messages is left exactly as it is."""
    blocks = [f"# {_escaped(document.title)}"]
    if document.session is not None:
        blocks.append(f"*Session {document.session.id}, begun {document.session.created[:10]}*")
    for turn in document.turns:
        blocks += message_blocks(turn)
        if turn.run is not None:
            blocks += _tree(turn.run)
    if document.run is not None:
        blocks += _run(document.run)
    return "\n\n".join(blocks) + "\n"


def message_blocks(turn: Turn) -> Iterator[str]:
    """A message without its tree."""
    message = turn.message
    if turn.branches_from is not None:
        parent = turn.branches_from
        after = f"after message {parent}" if parent else "from the beginning"
        yield f"---\n\n*Another branch, {after}*"
    yield f"## {turn.number}. {NAMES[message.role]}"
    if message.text:
        yield message.text
    if message.answer is not None:
        yield f"**Answer:** {_escaped(message.answer)}"
    if ending := ENDINGS[message.state]:
        yield f"*{ending}{': ' if message.note else ''}{_escaped(message.note)}*"


def _run(view: RunView) -> Iterator[str]:
    if view.request is not None:
        yield view.request.problem
    if view.answered is not None:
        yield view.answered.text
        yield f"**Answer:** {_escaped(view.answered.answer or 'none')}"
    yield from _tree(view)


def _tree(view: RunView) -> Iterator[str]:
    if not view.nodes:
        return
    lines = list(text_tree(view, glyphs_for("utf-8")))[1:]
    text = "\n".join(lines)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    yield f"<details>\n<summary>Reasoning tree, {len(view.nodes)} steps</summary>"
    yield f"{fence}text\n{text}\n{fence}"
    yield "</details>"


def _escaped(text: str) -> str:
    """Text on one line that Markdown takes for nothing but text."""
    return re.sub(r"([\\`*_{}\[\]<>#|~])", r"\\\1", one_line(text))
