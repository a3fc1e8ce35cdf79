"""What the command palette offers beside Textual's own commands."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from textual.app import SystemCommand

from app.tui.effort import Effort
from app.tui.screens.chat import ChatScreen


def commands(chat: ChatScreen) -> Iterator[SystemCommand]:
    """Commands by name, for those who do not know the keys."""
    for effort in Effort:
        paths = chat.models.paths(effort)
        about = "One path" if paths == 1 else f"{paths} paths"
        yield SystemCommand(
            f"Effort: {effort.label}", f"{about} a question", partial(chat.choose, effort)
        )
    run = chat.run_pane
    yield SystemCommand("New conversation", "Begin anew", chat.action_new)
    yield SystemCommand("Sessions", "Open a conversation of before", chat.action_sessions)
    yield SystemCommand("Models", "What fits this machine; download, switch", chat.action_models)
    yield SystemCommand("Attach file", "Put the text of a file in", chat.action_attach)
    yield SystemCommand("Stop", "Stop the run and keep what is written", chat.action_stop)
    yield SystemCommand("Retry", "Ask the selected question again", chat.action_retry)
    yield SystemCommand("Retry with", "Ask it again with other settings", chat.action_retry_with)
    yield SystemCommand("Export", "Write the conversation into a file", chat.action_export)
    yield SystemCommand("Edit", "Put the selected question into the composer", chat.action_edit)
    yield SystemCommand("Go on", "Go on with the selected run that broke off", chat.action_resume)
    yield SystemCommand("Run anyway", "Run what memory is too short for", chat.action_force)
    yield SystemCommand("Copy answer", "Copy the selected solution", chat.action_copy_answer)
    yield SystemCommand("Copy step", "Copy the step under the cursor", chat.action_copy_step)
    yield SystemCommand("Maths source", "Show maths as written, or rendered", chat.action_raw)
    yield SystemCommand("Tree", "Show the reasoning", chat.action_toggle_run)
    yield SystemCommand("Best path", "Go to the best path of the tree", run.action_best)
    yield SystemCommand("Follow", "Let the tree follow the run, or not", run.action_follow)
    yield SystemCommand("Pruned steps", "Fold or unfold all pruned steps", run.action_pruned)
    yield SystemCommand("Search", "Find words in the steps", run.action_search)
    yield SystemCommand("Compare", "Mark a step, or compare with the marked", run.action_compare)
    yield SystemCommand("Replay", "Play a finished run again", run.action_play)
