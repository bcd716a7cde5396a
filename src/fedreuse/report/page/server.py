"""Server of a report page on the loopback address: read-only, rendered again when a run changes."""

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
_WATCHED = ("config.yaml", "metrics.jsonl", "STOPPED", "test-opened.json", "summary.json", "COMPLETE")
_HOSTS = ("localhost", LOOPBACK)


def state_of(places: Sequence[Path]) -> str:
    """Return a hash that changes when a round is committed, or a run starts or ends."""
    state = sha256()
    for place in places:
        for directory in find_runs(place):
            for name in _WATCHED:
                try:
                    stat = directory.file(name).stat()
                except OSError:
                    continue
                state.update(f"{directory.path}\0{name}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode())
    return state.hexdigest()


class Content:
    """The page of some folders, rendered once for each of their states."""

    def __init__(
        self,
        places: Sequence[Path],
        refresh_seconds: int = 5,
        title: str = "",
        make: Callable[[Sequence[Path], str], Page] = page_of,
    ) -> None:
        """Store the settings; nothing is read yet. `make` reads the folders into a page with that title."""
        self._places, self._refresh, self._title, self._make = list(places), refresh_seconds, title, make
        self._lock, self._state, self._page = Lock(), "", b""

    def state(self) -> str:
        """Return the current state, which the page compares with its own."""
        return state_of(self._places)

    def page(self) -> bytes:
        """Return the current page."""
        with self._lock:
            state = self.state()  # before the page: a change while it is rendered leads to another refresh
            if state != self._state or not self._page:
                self._page = self._render(state)
                self._state = state
            return self._page

    def _render(self, state: str) -> bytes:
        try:
            return render(self._make(self._places, self._title), self._refresh, state).encode()
        except FedreuseError as error:  # for example no run yet; the next request may find one
            head = '<meta charset="utf-8"><title>fedreuse</title><link rel="icon" href="data:,">'
            head += f'<meta http-equiv="refresh" content="{self._refresh}">'
            return f'<!doctype html><html lang="en">{head}<p>{escape(str(error))}</p></html>'.encode()


class _Handler(BaseHTTPRequestHandler):
    """Handler of two read-only addresses: the page and its state."""

    content: Content
    server_version = "fedreuse"

    def do_GET(self) -> None:
        """Answer with content."""
        self._answer(has_body=True)

    def do_HEAD(self) -> None:
        """Answer without content."""
        self._answer(has_body=False)

    def _answer(self, has_body: bool) -> None:
        # DNS rebinding: a foreign site's host name may resolve to this machine
        if self.headers.get("Host", "").rpartition(":")[0] not in _HOSTS:
            self.send_error(403, "unknown host name")
            return
        try:
            answers = {
                "/": ("text/html; charset=utf-8", self.content.page),
                "/state": ("text/plain", lambda: self.content.state().encode()),
            }
            if self.path not in answers:
                self.send_error(404)
                return
            kind, make = answers[self.path]
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

    def log_message(self, *_: object) -> None:
        """Log no requests."""


def report_server(content: Content, port: int = 0) -> ThreadingHTTPServer:
    """Return a server on the loopback address; port 0 takes a free one."""
    handler = type("Handler", (_Handler,), {"content": content})
    return ThreadingHTTPServer((LOOPBACK, port), handler)
