"""`sapwood sessions`: the conversations that are kept."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from app import output
from app.exit_codes import ExitCode
from app.printable import one_line

if TYPE_CHECKING:
    from app.store import Session

_json = click.option("--json", "as_json", is_flag=True, help="Write a JSON object a line.")
_id = click.argument("id", metavar="SESSION", type=click.IntRange(1))


@click.group(invoke_without_command=True)
@click.pass_context
def sessions(context: click.Context) -> ExitCode | None:
    """The conversations that are kept; without a further command, a list of them.

    They are numbered. 'sapwood export' writes one for reading elsewhere.
    """
    return context.invoke(list_sessions) if context.invoked_subcommand is None else None


@sessions.command("list")
@click.option("--deleted", is_flag=True, help="Those that 'undo' can bring back.")
@_json
def list_sessions(deleted: bool = False, as_json: bool = False) -> ExitCode:
    """List the sessions, the latest first."""
    from app.store import Store

    with Store() as store:
        found = store.sessions(deleted=deleted)
    if found and not as_json:
        output.data(_row("NO.", "CHANGED", "MESSAGES", "TITLE"))
    for session in found:
        output.data(json.dumps(asdict(session)) + "\n" if as_json else _line(session))
    if not found:
        output.narrate("No session is deleted." if deleted else "There are no sessions yet.")
    return ExitCode.OK


@sessions.command()
@click.argument("words", nargs=-1, required=True)
@_json
def search(words: tuple[str, ...], as_json: bool) -> ExitCode:
    """List the sessions that have all WORDS, or words that begin so; the best first.

    With --json, every place where they are found.
    """
    from app.store import Store

    with Store() as store:
        found = store.search(" ".join(words))
    lines: dict[int, str] = {}
    for place in found:
        session = place.session
        if as_json:
            row = {"session": session.id, "title": session.title, "message": place.message}
            output.data(json.dumps(row | {"excerpt": place.excerpt}) + "\n")
            continue
        title = f"{session.id:>4}  {_title(session)}"
        if lines.get(session.id) in (None, title):  # a message tells more than the title alone
            excerpt = f": {one_line(place.excerpt)}" if place.message is not None else ""
            lines[session.id] = title + excerpt
    output.data("".join(f"{line}\n" for line in lines.values()))
    if not found:
        output.narrate("Nothing was found.")
    return ExitCode.OK if found else ExitCode.NO_ANSWER


@sessions.command()
@_id
@_json
def show(id: int, as_json: bool) -> ExitCode:
    """Print what was said, on the branch that was open last."""
    from app.export import document_of_session
    from app.export.json import message_fields
    from app.export.markdown import message_blocks
    from app.printable import printable
    from app.store import Store

    with Store() as store:
        document = document_of_session(store, id)
        branch = {message.id for message in store.path(store.session(id).head)}
    for turn in document.turns:
        if turn.message.id not in branch:
            continue
        if as_json:
            output.data(json.dumps(message_fields(turn.message)) + "\n")
        else:
            output.data(printable("\n\n".join(message_blocks(turn))) + "\n\n")
    return ExitCode.OK


@sessions.command()
@_id
@click.argument("title", nargs=-1, required=True)
def rename(id: int, title: tuple[str, ...]) -> ExitCode:
    """Give a session another TITLE."""
    from app.store import Store

    with Store() as store:
        session = store.rename(id, " ".join(title))
    output.narrate(f"Session {id} is now called {_title(session)}.")
    return ExitCode.OK


@sessions.command()
@click.argument("ids", metavar="SESSION...", type=click.IntRange(1), nargs=-1, required=True)
def delete(ids: tuple[int, ...]) -> ExitCode:
    """Put sessions out of sight; 'undo' brings them back."""
    from app.store import Store

    with Store() as store:
        for session in [store.session(id) for id in ids]:
            store.delete(session.id)
            output.narrate(f"Deleted session {session.id}, {_title(session)}.")
    output.narrate("'sapwood sessions undo' brings the last one back.")
    return ExitCode.OK


@sessions.command()
@click.argument("id", metavar="[SESSION]", type=click.IntRange(1), required=False)
def undo(id: int | None) -> ExitCode:
    """Bring back the session that was deleted last, or the one that is named."""
    from app.store import Store

    with Store() as store:
        session = store.undo() if id is None else store.restore(id)
    if session is None:
        output.narrate("No session is deleted.")
        return ExitCode.NO_ANSWER
    output.narrate(f"Session {session.id} is back, {_title(session)}.")
    return ExitCode.OK


def _line(session: Session) -> str:
    changed = session.updated[:16].replace("T", " ")
    return _row(str(session.id), changed, str(session.messages), _title(session))


def _row(number: str, changed: str, messages: str, title: str) -> str:
    return f"{number:>4}  {changed:<16}  {messages:>8}  {title}\n"


def _title(session: Session) -> str:
    return one_line(session.title) or "(without a title)"
