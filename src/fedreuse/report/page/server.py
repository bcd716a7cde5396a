"""The report of a folder, served to this machine alone: read-only, and made again when a run has changed."""

from __future__ import annotations

from hashlib import sha256
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from fedreuse.core.errors import FedreuseError
from fedreuse.report.page.html import render
from fedreuse.report.page.page import page_of
from fedreuse.store.directory import find_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fedreuse.report.page.page import Page

__all__ = ["LOOPBACK", "Content", "report_server", "state_of"]

LOOPBACK = "127.0.0.1"
_TELLING = ("config.yaml", "metrics.jsonl", "STOPPED", "test-opened.json", "summary.json", "COMPLETE")
_NAMES = ("localhost", LOOPBACK)


def state_of(places: Sequence[Path]) -> str:
    """A hash of what changes when a round becomes safe, a run begins or ends."""
    seen = sha256()
    for place in places:
        for directory in find_runs(place):
            for name in _TELLING:
                try:
                    found = directory.file(name).stat()
                except OSError:
                    continue
                seen.update(f"{directory.path}\0{name}\0{found.st_size}\0{found.st_mtime_ns}\n".encode())
    return seen.hexdigest()


class Content:
    """The page of some places, made once for each of their states."""

    def __init__(
        self,
        places: Sequence[Path],
        refresh_seconds: int = 5,
        title: str = "",
        make: Callable[[Sequence[Path], str], Page] = page_of,
    ) -> None:
        """`make` reads the places into a page with that title; nothing is read yet."""
        self._places, self._refresh, self._title, self._make = list(places), refresh_seconds, title, make
        self._lock, self._state, self._page = Lock(), "", b""

    def state(self) -> str:
        """What the page compares with its own state."""
        return state_of(self._places)

    def page(self) -> bytes:
        """The page of this moment. The state is taken first: what changes meanwhile is shown by the next one."""
        with self._lock:
            state = self.state()
            if state != self._state or not self._page:
                self._page = self._made(state)
                self._state = state
            return self._page

    def _made(self, state: str) -> bytes:
        try:
            return render(self._make(self._places, self._title), self._refresh, state).encode()
        except FedreuseError as error:  # no round yet, say; the next look may find one
            head = '<meta charset="utf-8"><title>fedreuse</title><link rel="icon" href="data:,">'
            head += f'<meta http-equiv="refresh" content="{self._refresh}">'
            return f'<!doctype html><html lang="en">{head}<p>{escape(str(error))}</p></html>'.encode()


class _Handler(BaseHTTPRequestHandler):
    """Two addresses, both to be read: the page, and its state."""

    content: Content
    server_version = "fedreuse"

    def do_GET(self) -> None:
        """Answer a look."""
        self._answer(has_body=True)

    def do_HEAD(self) -> None:
        """Answer without the content."""
        self._answer(has_body=False)

    def _answer(self, has_body: bool) -> None:
        if (
            self.headers.get("Host", "").rpartition(":")[0] not in _NAMES
        ):  # a stranger's name that points to this machine
            self.send_error(403, "asked under another name")
            return
        try:
            known = {"/": ("text/html; charset=utf-8", self.content.page), "/state": ("text/plain", self._state)}
            if self.path not in known:
                self.send_error(404)
                return
            kind, make = known[self.path]
            body = make()
        except (FedreuseError, OSError) as error:
            self.send_error(503, explain=str(error))
            return
        self.send_response(200)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(body))), ("Cache-Control", "no-store"),
                            ("X-Content-Type-Options", "nosniff")):  # fmt: skip
            self.send_header(name, value)
        self.end_headers()
        if has_body:
            self.wfile.write(body)

    def _state(self) -> bytes:
        return self.content.state().encode()

    def log_message(self, *_: object) -> None:
        """Say nothing of every look."""


def report_server(content: Content, port: int = 0) -> ThreadingHTTPServer:
    """A server on the loopback address; port 0 takes a free one."""
    handler = type("Handler", (_Handler,), {"content": content})
    return ThreadingHTTPServer((LOOPBACK, port), handler)
