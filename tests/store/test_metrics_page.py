"""The page of metrics: one path, on loopback, and a port that is taken."""

from __future__ import annotations

import urllib.error
import urllib.request
from threading import Thread

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.store.metrics_page import metrics_page


def test_each_request_gets_the_text_of_its_time() -> None:
    texts = iter(["a 1\n", "a 2\n"])
    page = metrics_page(0, lambda: next(texts))
    thread = Thread(target=page.serve_forever, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{page.server_port}"
    try:
        assert page.server_address[0] == "127.0.0.1"
        for expected in (b"a 1\n", b"a 2\n"):
            with urllib.request.urlopen(f"{address}/metrics") as answer:
                assert answer.read() == expected
                assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{address}/")
        with pytest.raises(ConfigError, match=f"cannot listen on port {page.server_port}"):
            metrics_page(page.server_port, str)
    finally:
        page.shutdown()
        page.server_close()
        thread.join()
