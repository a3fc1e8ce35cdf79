"""Fetching a file of the hub: resumed where it stopped, checked, and placed whole or not at all.

huggingface_hub 2 itself begins anew after each interruption, so only its requests are used. What
came is kept under the name of what it is to become, with the hub's word for it: bytes of another
version of the file are never gone on from. One process at a time writes; the others wait and use
what it leaves.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from engine.errors import EngineError
from engine.hub import store
from engine.hub.digest import digest
from engine.hub.messages import Fetched, Progress
from engine.hub.problems import explained, retry_after
from engine.hub.remote import RemoteFile, endpoint, look_up, stream
from engine.lock import try_lock
from engine.memory.sizes import size_text
from engine.models.gguf import read_header
from engine.places import models_dir
from engine.protocol.events import Trouble

if TYPE_CHECKING:
    import httpx2

Tell = Callable[[Progress], None]

WAITS = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds before each new try after one that brought nothing."""
_LONGEST_WAIT = 120.0
"""Seconds the hub may ask to wait; beyond that the user is asked."""
_ROOM = 64 << 20
"""Bytes of the disk that a download leaves free."""
_READ = 1 << 20
_POLL = 0.2


def download(
    repository: str, file: str, tell: Tell, *, waits: tuple[float, ...] = WAITS
) -> Fetched:
    """Have a file of the hub on this machine.

    Args:
        tell: called with every advance; what it raises ends the download, which can be resumed.

    Raises:
        EngineError: it cannot be had; what came of it is kept, unless it is wrong.
    """
    part = store.partial(repository, file)
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        with _only_writer(part, file, tell):
            if (path := store.find(repository, file)) is not None:
                return Fetched(path, 0, checked=True)
            return _Download(look_up(repository, file), part, tell, waits).run()
    except OSError as error:
        raise explained(error, repository, file, "") from None


def check_room(name: str, need: int) -> None:
    """See that the disk has room for so many bytes.

    Raises:
        EngineError: it has not.
    """
    folder = models_dir()
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if need + _ROOM > free:
        raise EngineError(
            Trouble.STORAGE,
            f"There is not enough room for {name}: {size_text(need)} are still to come, and "
            f"{size_text(free)} are free at {folder}.",
            f"Make {size_text(need + _ROOM - free)} free there; SAPWOOD_HOME names another place.",
        )


class _Download:
    def __init__(
        self, remote: RemoteFile, part: Path, tell: Tell, waits: tuple[float, ...]
    ) -> None:
        self._remote = remote
        self._part = part
        self._tell = tell
        self._waits = waits
        self._digest = digest(remote.checksum, remote.size)
        self._done = 0
        self._came = 0

    def run(self) -> Fetched:
        origin = store.Origin(
            self._remote.repository,
            self._remote.file,
            self._remote.commit,
            self._remote.size,
            self._remote.checksum,
        )
        with self._opened(origin) as out:
            self._take_up(out)
            check_room(self._remote.file, self._remote.size - self._done)
            self._fetch(out)
            os.fsync(out.fileno())
        self._check()
        path = store.place(self._part, origin)
        store.mark(self._part).unlink(missing_ok=True)
        return Fetched(path, self._came, checked=self._digest is not None)

    @contextmanager
    def _opened(self, origin: store.Origin) -> Iterator[FileIO]:
        """What came before of this very file, or an empty one; unbuffered, so that nothing that
        came is lost."""
        mark = store.mark(self._part)
        try:
            same = origin.continues(msgspec.json.decode(mark.read_bytes(), type=store.Origin))
        except (OSError, msgspec.DecodeError):
            same = False
        if not same:
            self._part.unlink(missing_ok=True)
            mark.write_bytes(msgspec.json.encode(origin))
        with FileIO(self._part, "r+" if self._part.exists() else "w+") as out:
            yield out

    def _take_up(self, out: FileIO) -> None:
        """Read what is there into the checksum."""
        while chunk := out.read(_READ):
            self._count(chunk)
            self._report("checking what came before")
        if self._done > self._remote.size:
            self._begin_anew(out)

    def _fetch(self, out: FileIO) -> None:
        """Fetch what is missing; a broken connection is taken up again as long as bytes come."""
        import httpx2

        failures = 0
        while self._done < self._remote.size:
            before = self._done
            try:
                with stream(self._remote, self._done) as response:
                    self._receive(response, out)
            except (httpx2.HTTPError, OSError) as error:
                failures = 1 if self._done > before else failures + 1
                self._wait(error, failures)

    def _receive(self, response: httpx2.Response, out: FileIO) -> None:
        if self._done and response.status_code != 206:
            self._begin_anew(out)  # a server or proxy that knows no ranges
        for chunk in response.iter_bytes():
            if self._done + len(chunk) > self._remote.size:
                raise self._wrong(f"more than the {self._remote.size:,} bytes it should have")
            rest = memoryview(chunk)
            while rest:
                rest = rest[out.write(rest) :]
            self._count(chunk)
            self._came += len(chunk)
            self._report()

    def _wait(self, error: Exception, failures: int) -> None:
        """Wait before the next try, or raise where another try makes no sense."""
        problem = explained(error, self._remote.repository, self._remote.file, endpoint())
        asked = retry_after(error)
        if not _passing(error) or failures > len(self._waits) or (asked or 0) > _LONGEST_WAIT:
            advice = problem.advice
            if self._done and problem.trouble is Trouble.MODEL:
                advice += f" The {size_text(self._done)} that came are kept, and gone on from."
            raise EngineError(problem.trouble, problem.message, advice.strip())
        seconds = self._waits[failures - 1] if asked is None else asked
        self._report(f"{problem.message} Trying again in {seconds:.0f} s.")
        time.sleep(seconds)

    def _begin_anew(self, out: FileIO) -> None:
        out.seek(0)
        out.truncate()
        self._done = 0
        self._digest = digest(self._remote.checksum, self._remote.size)

    def _count(self, chunk: bytes) -> None:
        if self._digest is not None:
            self._digest.update(chunk)
        self._done += len(chunk)

    def _report(self, note: str = "") -> None:
        self._tell(Progress(self._remote.file, self._done, self._remote.size, note))

    def _check(self) -> None:
        if self._digest is not None and self._digest.hexdigest() != self._remote.checksum:
            raise self._wrong("other bytes than the hub's checksum is of")
        if self._part.suffix == ".gguf":
            try:
                read_header(self._part)
            except EngineError:
                raise self._wrong("no whole GGUF file") from None

    def _wrong(self, what: str) -> EngineError:
        with suppress(OSError):
            self._part.unlink()
        return EngineError(
            Trouble.MODEL,
            f"What {endpoint()} sent as {self._remote.file} is {what}. It was thrown away.",
            "Try again; if it stays so, a proxy or mirror on the way changes it.",
        )


@contextmanager
def _only_writer(part: Path, file: str, tell: Tell) -> Iterator[None]:
    """Wait until no other process fetches the file."""
    with FileIO(store.lock(part), "a") as lock:
        while not try_lock(lock):
            have, total = _state(part)
            tell(Progress(file, have, total, "another download of it is under way"))
            time.sleep(_POLL)
        yield


def _state(part: Path) -> tuple[int, int]:
    """Bytes that are there, and that there will be."""
    try:
        origin = msgspec.json.decode(store.mark(part).read_bytes(), type=store.Origin)
        return part.stat().st_size, origin.size
    except (OSError, msgspec.DecodeError):
        return 0, 0


def _passing(error: Exception) -> bool:
    """Whether it may be over in a moment."""
    import httpx2

    response = getattr(error, "response", None)
    if response is not None:
        return response.status_code in (408, 429) or response.status_code >= 500
    return isinstance(error, httpx2.TransportError)
