"""JSON: everything there is, in the words of the protocol."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import msgspec

from app.export.document import Document, Turn
from app.run_view import Node, RunView
from app.store import Message

VERSION = 1
"""Raised when a reader of the old form would misread the new one."""


def json(document: Document) -> str:
    """The document as one object. A tree is a list of nodes, each named by its lineage."""
    if document.run is not None:
        content = {"format": "sapwood-run", "version": VERSION} | _run(document.run)
    else:
        assert document.session is not None
        content = {
            "format": "sapwood-session",
            "version": VERSION,
            "session": asdict(document.session),
            "messages": [_turn(turn) for turn in document.turns],
        }
    return msgspec.json.format(msgspec.json.encode(content)).decode() + "\n"


def message_fields(message: Message) -> dict[str, Any]:
    """A message as JSON can hold it."""
    return asdict(message) | {"log": str(message.log) if message.log else None}


def _turn(turn: Turn) -> dict[str, Any]:
    return message_fields(turn.message) | {"run": _run(turn.run) if turn.run else None}


def _run(view: RunView) -> dict[str, Any]:
    return {
        "run": view.run,
        "request": msgspec.to_builtins(view.request),
        "answered": msgspec.to_builtins(view.answered),
        "finished": msgspec.to_builtins(view.finished),
        "failed": msgspec.to_builtins(view.failed),
        "warnings": msgspec.to_builtins(view.warnings),
        "nodes": [_node(node) for node in view.walk()],
    }


def _node(node: Node) -> dict[str, Any]:
    return {
        "lineage": node.lineage,
        "text": node.text,
        "state": node.state.name.lower(),
        "scores": node.scores,
        "tokens": node.tokens,
        "reason": node.reason,
    }
