"""Small stand-ins for the published datasets, and a server on loopback that can fail on purpose."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedreuse.learning.datasets.facts import FACTS


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of all datasets, so that no test meets the user's own."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("FEDREUSE_DATA", str(folder))
    return folder


@pytest.fixture
def shrink(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make a dataset so small that a test can write it, and by default without its digest."""

    def apply(name: str, **examples: int) -> None:
        monkeypatch.setitem(FACTS, name, replace(FACTS[name], examples=examples, digest=None, array_digests=()))

    return apply


@pytest.fixture
def write_idx() -> Callable[[Path, np.ndarray], None]:
    """Write an array of bytes as an idx file, packed if the name says so."""

    def write(path: Path, array: np.ndarray) -> None:
        header = b"\0\0\x08" + bytes([array.ndim]) + np.array(array.shape, ">u4").tobytes()
        content = header + array.astype(np.uint8).tobytes()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)

    return write


@pytest.fixture
def write_mnist(write_idx: Callable[[Path, np.ndarray], None]) -> Callable[..., None]:
    """Write four idx files: the labels go round, the second pixel of the top row numbers the image."""

    def write(folder: Path, train: int = 20, test: int = 10, **options: Any) -> None:
        prefixes = options.get("prefixes", ("train", "t10k"))
        for prefix, count in zip(prefixes, (train, test), strict=True):
            images = np.zeros((count, 28, 28), np.uint8)
            images[:, 0, 1] = np.arange(count)
            suffix = options.get("suffix", "")
            write_idx(folder / f"{prefix}-images-idx3-ubyte{suffix}", images)
            write_idx(folder / f"{prefix}-labels-idx1-ubyte{suffix}", np.arange(count) % options.get("classes", 10))

    return write


@dataclass
class Server:
    """What the loopback server has, how it misbehaves, and what it was asked."""

    url: str
    files: dict[str, bytes] = field(default_factory=dict)
    cut_after: list[int] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    knows_range: bool = True
    ranges: list[str | None] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    """A real HTTP server on loopback: answers Range, and cuts or refuses as told."""
    state = Server("")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            state.ranges.append(wanted)
            content = state.files.get(self.path.lstrip("/"))
            if state.statuses:
                return self.send_error(state.statuses.pop(0))
            if content is None:
                return self.send_error(404)
            start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and state.knows_range else 0
            if start >= len(content) > 0:
                return self.send_error(416)
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(content) - start))
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            self.end_headers()
            cut = state.cut_after.pop(0) if state.cut_after else len(content)
            self.wfile.write(content[start : start + cut])
            self.close_connection = True
            return None

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{httpd.server_address[1]}"
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield state
    httpd.shutdown()
    httpd.server_close()
    thread.join()
