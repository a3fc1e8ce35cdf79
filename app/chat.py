"""A conversation by lines: each line a message, each answer told as it is written."""

from __future__ import annotations

import asyncio
import sys
import threading
from contextlib import suppress

import msgspec

from app import output
from app.exit_codes import ExitCode
from app.follow import follow
from app.glyphs import glyphs_for
from app.interrupts import interrupts
from app.logs import log_folder, new_log
from app.narration import answer_with_score, notice, phase_line
from app.outcome import code_for, told_with_force
from app.printable import one_line, printable
from app.run_view import Lineage, RunView
from app.store import Role, State, Store
from engine.client import LocalEngine
from engine.protocol import AnyEvent, Phase, SolveRequest, StepFinished, TextAppended, Trouble


def chat(template: SolveRequest, session: int | None, *, quiet: bool) -> ExitCode:
    """Answer line after line until there are no more, and keep it all.

    Args:
        template: the request but for the problem.
        session: the conversation to go on with; None begins one with the first line.
        quiet: tell nothing but the answers.

    Raises:
        CommandError: the conversations cannot be kept, or there is no such session.
    """
    with Store() as store:
        if session is not None:
            store.session(session)
        return asyncio.run(_Chat(template, store, session, quiet).run())


class _Chat:
    def __init__(
        self, template: SolveRequest, store: Store, session: int | None, quiet: bool
    ) -> None:
        self._template = template
        self._store = store
        self._session = session
        self._quiet = quiet
        self._logs = log_folder()
        self._engine = LocalEngine()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._stopped = False
        self._prompts = sys.stdin.isatty() and output.is_screen(sys.stderr)

    async def run(self) -> ExitCode:
        code = ExitCode.OK
        loop = asyncio.get_running_loop()
        threading.Thread(target=_read, args=(loop, self._lines), daemon=True).start()
        with interrupts(self._stop):
            async with self._engine:
                while (line := await self._next()) is not None:
                    view = await self._answer(line)
                    if view.failed is not None:
                        output.narrate(f"sapwood: {told_with_force(view.failed)}")
                        code = code_for(view.failed)
                        if view.failed.trouble is Trouble.MODEL:
                            break  # it would fail for every line
        if self._session is not None and not self._quiet:
            output.narrate(f"Kept as session {self._session}.")
        return ExitCode.STOPPED if self._stopped else code

    async def _next(self) -> str | None:
        """The next line with something on it; None at the end."""
        while not self._stopped:
            if self._prompts:
                sys.stderr.write("> ")
                sys.stderr.flush()
            line = await self._lines.get()
            if line is None or line.strip():
                return None if self._stopped else line
        return None

    def _stop(self) -> None:
        self._stopped = True
        self._engine.cancel()
        self._lines.put_nowait(None)

    async def _answer(self, line: str) -> RunView:
        """Answer one line; what is said is kept before and after."""
        request = msgspec.structs.replace(self._template, problem=line, log=new_log(self._logs))
        settings = msgspec.to_builtins(self._template)
        if self._session is None:
            self._session = self._store.create().id
        asked = self._store.add(
            self._session,
            Role.USER,
            line,
            parent=self._store.session(self._session).head,
            settings=settings,
        )
        given = self._store.add(
            self._session,
            Role.ASSISTANT,
            "",
            parent=asked.id,
            settings=settings,
            log=request.log,
            state=State.RUNNING,
        )
        view = RunView()
        try:
            await follow(self._engine.solve(request), view, _Answer(view, quiet=self._quiet))
        finally:
            self._store.record(given.id, view)
        return view


class _Answer:
    """Writes the solution to standard output: a single path as it grows, the best of several at
    the end. What else there is to tell is narrated. Quietly, the answer is all there is: a line
    for each message, empty where there is none."""

    def __init__(self, view: RunView, *, quiet: bool) -> None:
        self._view = view
        self._quiet = quiet
        self._glyphs = glyphs_for(sys.stderr.encoding)
        self._phase = ""
        self._written: dict[Lineage, int] = {}
        """How much of each node, which may be told again after a loss of the engine."""
        self._mid_line = False
        """Whether what was written last is still open for more."""

    def start(self) -> None:
        pass

    def show(self, event: AnyEvent) -> None:
        if isinstance(event, Phase) and (line := phase_line(event, self._glyphs)) != self._phase:
            self._phase = line
            self.say(line)
        elif (line := notice(event, self._glyphs)) is not None:
            self.say(line)
        elif isinstance(event, TextAppended | StepFinished) and self._is_streamed():
            self._write(event.lineage)
        if self._view.ended:
            self._end()

    def tick(self) -> None:
        pass

    def say(self, line: str) -> None:
        if self._quiet:
            return
        if self._mid_line and sys.stdout.isatty():  # a pipe gets the text as it is
            output.data("\n")
            self._mid_line = False
        output.narrate(line)

    def close(self) -> None:
        pass

    def _is_streamed(self) -> bool:
        request = self._view.request
        single = request is not None and (
            request.search.policy == "greedy" or request.search.n == 1
        )
        return single and not self._quiet

    def _write(self, lineage: Lineage) -> None:
        text = self._view.nodes[lineage].text
        written = self._written.get(lineage, 0)
        if len(text) > written:
            self._written[lineage] = len(text)
            output.data(printable(text[written:]))
            self._mid_line = not text.endswith("\n")

    def _end(self) -> None:
        if self._quiet:
            answer = self._view.answered.answer if self._view.answered is not None else ""
            output.data(one_line(answer) + "\n")
            return
        if self._written:
            output.data("\n" if self._mid_line else "")
        elif self._view.answered is not None:
            output.data(printable(self._view.answered.text).strip() + "\n")
        if self._view.answered is not None and self._view.answered.answer:
            self.say(f"answer: {answer_with_score(self._view, self._glyphs)}")
        elif self._view.finished is not None:
            self.say("no answer")


def _read(loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[str | None]) -> None:
    """Put the lines of standard input into the queue, and None at the end.

    It reads below the buffer: a thread that waits in there would hold up the end of the process.
    """
    stream = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
    rest = b""
    with suppress(RuntimeError):  # the loop has ended, and nobody wants more
        while chunk := stream.read(1 << 16):
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                loop.call_soon_threadsafe(lines.put_nowait, line.decode(errors="replace"))
        loop.call_soon_threadsafe(lines.put_nowait, rest.decode(errors="replace"))
        loop.call_soon_threadsafe(lines.put_nowait, None)
