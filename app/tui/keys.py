"""The keys of the chat screen. Each has an id, by which the user's settings give it another."""

from __future__ import annotations

from textual.binding import Binding, BindingType

CHAT: list[BindingType] = [
    Binding("escape", "stop", "Stop", id="chat.stop"),
    Binding("escape", "back", "Back", show=False, id="chat.back"),
    Binding("shift+tab", "effort", "Effort", id="chat.effort"),
    Binding("ctrl+t", "toggle_run", "Tree", id="chat.tree"),
    Binding("ctrl+r", "retry", "Retry", id="chat.retry"),
    Binding("e", "edit", "Edit", id="chat.edit"),
    Binding("y", "copy_answer", "Copy", id="chat.copy"),
    Binding("Y", "copy_step", "Copy step", show=False, id="chat.copy_step"),
    Binding("g", "resume", "Go on", id="chat.resume"),
    Binding("R", "retry_with", "Retry with…", show=False, id="chat.retry_with"),
    Binding("A", "force", "Run anyway", id="chat.force"),
    Binding("f2", "attach", "Attach", id="chat.attach"),
    Binding("f3", "export", "Export", id="chat.export"),
    Binding("f4", "models", "Models", id="chat.models"),
    Binding("ctrl+n", "new", "New", show=False, id="chat.new"),
    Binding("ctrl+o", "sessions", "Sessions", id="chat.sessions"),
    Binding("m", "raw", "Maths source", show=False, id="chat.raw"),
]
RUN: list[BindingType] = [
    Binding("f", "follow", "Follow", id="tree.follow"),
    Binding("b", "best", "Best path", id="tree.best"),
    Binding("p", "pruned", "Pruned", id="tree.pruned"),
    Binding("slash", "search", "Search", key_display="/", id="tree.search"),
    Binding("t", "timeline", "Timeline", id="tree.timeline"),
    Binding("n", "match(1)", "Next match", show=False, id="tree.next_match"),
    Binding("N", "match(-1)", "Previous match", show=False, id="tree.previous_match"),
    Binding("r", "play", "Replay", id="tree.replay"),
    Binding("c", "compare", "Compare", id="tree.compare"),
    Binding("comma", "round(-1)", "Round back", key_display=",", id="tree.round_back"),
    Binding("full_stop", "round(1)", "Round on", key_display=".", id="tree.round_on"),
]
TREE: list[BindingType] = [
    Binding("up,k", "move(-1)", "Up", show=False, id="tree.up"),
    Binding("down,j", "move(1)", "Down", show=False, id="tree.down"),
    Binding("pageup", "page(-1)", "Page up", show=False, id="tree.page_up"),
    Binding("pagedown", "page(1)", "Page down", show=False, id="tree.page_down"),
    Binding("home", "first", "First", show=False, id="tree.first"),
    Binding("end", "last", "Last", show=False, id="tree.last"),
    Binding("enter,space", "fold", "Fold or unfold", show=False, id="tree.fold"),
    Binding("left", "close", "Fold, or go up", show=False, id="tree.close"),
    Binding("right", "open", "Unfold, or go down", show=False, id="tree.open"),
    Binding(
        "left_square_bracket",
        "sibling(-1)",
        "Sibling before",
        show=False,
        key_display="[",
        id="tree.before",
    ),
    Binding(
        "right_square_bracket",
        "sibling(1)",
        "Sibling after",
        show=False,
        key_display="]",
        id="tree.after",
    ),
]
SOMETIMES = (
    "stop",
    "retry",
    "retry_with",
    "export",
    "edit",
    "copy_answer",
    "resume",
    "force",
    "raw",
)
"""Actions of the chat that at times would do nothing, and are then not offered."""
