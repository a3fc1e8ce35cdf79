"""A page that needs nothing else: no network, no script, the trees to fold and unfold."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from app.export.document import Document, Turn
from app.export.markdown import ENDINGS, NAMES
from app.export.style import STYLE
from app.glyphs import glyphs_for
from app.printable import one_line, printable
from app.run_view import Node, RunView, State

_WORDS = 100
"""Characters of a step that its line shows."""

_GLYPHS = glyphs_for("utf-8")


def html(document: Document) -> str:
    """The document as a page. Whatever a model or a user wrote is text in it, nothing else."""
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            # Even if something slipped through, it could load nothing and run nothing.
            '<meta http-equiv="Content-Security-Policy"'
            " content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            '<meta name="viewport" content="width=device-width">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{_line(document.title)}</title>",
            f"<style>{STYLE}</style>",
            "</head>",
            "<body>",
            *_body(document),
            "</body>",
            "</html>",
            "",
        )
    )


def _body(document: Document) -> Iterator[str]:
    yield f"<h1>{_line(document.title)}</h1>"
    if document.session is not None:
        session = document.session
        yield f'<p class="quiet">Session {session.id}, begun {session.created[:10]}</p>'
    for turn in document.turns:
        yield from _turn(turn)
    if document.run is not None:
        yield from _run(document.run)


def _turn(turn: Turn) -> Iterator[str]:
    message = turn.message
    if turn.branches_from is not None:
        after = (
            f'after <a href="#m{turn.branches_from}">message {turn.branches_from}</a>'
            if turn.branches_from
            else "from the beginning"
        )
        yield f'<hr><p class="quiet">Another branch, {after}</p>'
    yield f'<section id="m{turn.number}" class="{message.role.value}">'
    yield f"<h2>{turn.number}. {NAMES[message.role]}</h2>"
    yield f'<div class="text">{_text(message.text)}</div>'
    yield from _answer(message.answer)
    if ending := ENDINGS[message.state]:
        yield f'<p class="quiet">{ending} {_line(message.note)}</p>'
    if turn.run is not None:
        yield from _tree(turn.run)
    yield "</section>"


def _run(view: RunView) -> Iterator[str]:
    if view.request is not None:
        problem = _text(view.request.problem)
        yield f'<section class="user"><div class="text">{problem}</div></section>'
    yield '<section class="assistant">'
    if view.answered is not None:
        yield f'<div class="text">{_text(view.answered.text)}</div>'
        yield from _answer(view.answered.answer or "none")
    yield from _tree(view)
    yield "</section>"


def _answer(answer: str | None) -> Iterator[str]:
    if answer is not None:
        yield f'<p class="answer">Answer: <strong>{_line(answer)}</strong></p>'


def _tree(view: RunView) -> Iterator[str]:
    """The nodes as nested <details>; those on the best path are open."""
    if not view.nodes:
        return
    best = {id(node) for node in view.leader.path()} if view.leader else set[int]()
    yield f'<details class="tree" open><summary>Reasoning tree, {len(view.nodes)} steps</summary>'
    depth = 0
    for node in view.walk():
        while depth >= len(node.lineage):
            yield "</details>"
            depth -= 1
        yield from _node(node, opened=id(node) in best)
        depth += 1
    yield "</details>" * (depth + 1)


def _node(node: Node, *, opened: bool) -> Iterator[str]:
    state = node.state
    words = one_line(node.text[:_WORDS]) or _GLYPHS.more
    yield (
        f'<details class="{state.name.lower()}"{" open" if opened else ""}><summary>'
        f'<span title="{state.name.lower()}">{_GLYPHS.states[state]}</span> '
        f"{_score(node)}{escape(words)}</summary>"
    )
    yield f'<pre class="text">{_text(node.text.strip())}</pre>'
    facts = [f"{node.tokens} tokens"] if node.tokens else []
    if len(node.scores) > 1:
        facts.append("scores " + ", ".join(f"{score:.2f}" for score in node.scores))
    if node.reason:
        facts.append(f"{State.PRUNED.name.lower()}: {node.reason}")
    if facts:
        yield f'<p class="quiet">{_line(" · ".join(facts))}</p>'


def _score(node: Node) -> str:
    if node.score is None:
        return ""
    width = min(100, max(0, round(node.score * 100)))
    return (
        f'<span class="bar"><span style="width:{width}%"></span></span> '
        f'<span class="score">{node.score:.2f}</span> '
    )


def _text(text: str) -> str:
    return escape(printable(text))


def _line(text: str) -> str:
    return escape(one_line(text))
