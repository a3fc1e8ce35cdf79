"""A hub on loopback: the part of the real one's HTTP interface that a download needs.

Files are told of by HEAD (`ETag`, `X-Linked-Etag`, `X-Linked-Size`, `X-Repo-Commit`) and sent by
GET with ranges. What goes wrong is put in with `Hub.next`, one answer after another.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "c0ffee" * 6 + "c0de"
_RESOLVE = re.compile(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")
_TREE = re.compile(r"/api/models/([^/]+/[^/]+)/tree/([^/?]+)")
_CHUNK = 1 << 16


@dataclass
class Answer:
    """How one request is answered; by default as it should be."""

    method: str = "GET"
    """The requests it is meant for."""
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    """Bytes after which the connection breaks."""
    stall_after: int | None = None
    """Bytes after which nothing more comes, until the hub is closed."""
    wrong: bool = False
    """Send other bytes."""
    whole: bool = False
    """Know no ranges."""


@dataclass
class Request:
    method: str
    path: str
    range: str | None
    token: str | None
    host: str
    sent: int = 0
    """Bytes of the body."""


class Hub:
    """Repositories by name, each with the files of a folder."""

    def __init__(self) -> None:
        self.files: dict[tuple[str, str], Path] = {}
        self.requests: list[Request] = []
        self.closed = threading.Event()
        self.redirect_to: str | None = None
        """Where files are sent from instead, as a content delivery network does."""
        self.checksums: dict[tuple[str, str], str] = {}
        self._answers: deque[Answer] = deque()
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def sent(self) -> int:
        """Bytes of all files together."""
        return sum(request.sent for request in self.requests if request.method == "GET")

    def add(self, repository: str, file: str, path: Path, checksum: str | None = None) -> None:
        self.files[repository, file] = path
        self.checksums[repository, file] = (
            hashlib.sha256(path.read_bytes()).hexdigest() if checksum is None else checksum
        )

    def next(self, *answers: Answer) -> None:
        """Answer the next requests so."""
        self._answers.extend(answers)

    def take(self, method: str) -> Answer:
        with self._lock:
            if self._answers and self._answers[0].method == method:
                return self._answers.popleft()
        return Answer(method)

    def serve(self) -> None:
        self._server.serve_forever(poll_interval=0.05)

    def close(self) -> None:
        self.closed.set()
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        hub = self

        class Handler(_Handler):
            pass

        Handler.hub = hub
        return Handler


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        pass  # of clients that leave, as tests have them do


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        self._request = Request(
            self.command,
            self.path,
            self.headers.get("Range"),
            self.headers.get("Authorization"),
            self.headers.get("Host", ""),
        )
        self.hub.requests.append(self._request)
        answer = self.hub.take(self.command)
        if answer.status is not None:
            self._plain(answer.status, answer.headers)
            return
        if tree := _TREE.match(self.path):
            self._tree(tree[1])
            return
        asked = _RESOLVE.match(self.path)
        path = self.hub.files.get((asked[1], asked[3])) if asked else None
        if asked is None or path is None:
            known = asked and any(repository == asked[1] for repository, _ in self.hub.files)
            self._plain(404, {"X-Error-Code": "EntryNotFound" if known else "RepoNotFound"})
            return
        here = self.headers.get("Host", "")
        if self.hub.redirect_to and not self.hub.redirect_to.endswith(here):
            headers = self._about(asked[1], asked[3], path)
            self._plain(302, headers | {"Location": self.hub.redirect_to + self.path})
            return
        self._file(asked[1], asked[3], path, answer)

    def _about(self, repository: str, file: str, path: Path) -> dict[str, str]:
        checksum = self.hub.checksums[repository, file]
        return {
            "X-Repo-Commit": COMMIT,
            "X-Linked-Size": str(path.stat().st_size),
            "X-Linked-Etag": f'"{checksum}"',
            "ETag": f'"{checksum}"',
            "Accept-Ranges": "bytes",
        }

    def _tree(self, repository: str) -> None:
        entries = [
            {
                "type": "file",
                "path": file,
                "size": path.stat().st_size,
                "oid": "0" * 40,
                "lfs": {
                    "oid": self.hub.checksums[repository, file],
                    "size": path.stat().st_size,
                    "pointerSize": 134,
                },
            }
            for (owner, file), path in self.hub.files.items()
            if owner == repository
        ]
        if not entries:
            self._plain(404, {"X-Error-Code": "RepoNotFound"})
            return
        body = json.dumps(entries).encode()
        self._head(200, {"Content-Type": "application/json", "Content-Length": str(len(body))})
        self.wfile.write(body)

    def _file(self, repository: str, file: str, path: Path, answer: Answer) -> None:
        size = path.stat().st_size
        headers = self._about(repository, file, path)
        start, stop = 0, size
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self._request.range or "")
        if asked and not answer.whole:
            start, stop = int(asked[1]), min(size, int(asked[2]) + 1 if asked[2] else size)
            if start >= size:
                self._plain(416, {"Content-Range": f"bytes */{size}"})
                return
            headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
        status = 206 if asked and not answer.whole else 200
        self._head(status, headers | {"Content-Length": str(stop - start)} | answer.headers)
        if self.command == "GET":
            self._send(path, start, stop, answer)

    def _send(self, path: Path, start: int, stop: int, answer: Answer) -> None:
        with path.open("rb") as source:
            source.seek(start)
            while start < stop:
                limit = answer.cut_after if answer.cut_after is not None else answer.stall_after
                most = stop - start if limit is None else limit - self._request.sent
                chunk = source.read(min(_CHUNK, stop - start, most))
                if not chunk:
                    break
                if answer.wrong:
                    chunk = bytes(byte ^ 1 for byte in chunk)
                try:
                    self.wfile.write(chunk)
                except OSError:
                    self.close_connection = True
                    return
                start += len(chunk)
                self._request.sent += len(chunk)
        if answer.stall_after is not None:
            self.hub.closed.wait(60)
        if start < stop:
            self.close_connection = True

    def _plain(self, status: int, headers: dict[str, str]) -> None:
        self._head(status, {"Content-Length": "0"} | headers)

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[Hub]:
    """A hub that is there within the block."""
    hub = Hub()
    thread = threading.Thread(target=hub.serve, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.close()
        thread.join(5)
