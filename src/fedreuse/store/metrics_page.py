"""HTTP server of one page, `/metrics` on loopback, in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from fedreuse.core.errors import ConfigError

__all__ = ["metrics_page"]

_CONTENT = "text/plain; version=0.0.4; charset=utf-8"


def metrics_page(port: int, text: Callable[[], str]) -> ThreadingHTTPServer:
    """Listen on a port of loopback, 0 for a free one, and answer requests with a text; `serve_forever` starts it.

    Raises:
        ConfigError: The port is in use.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/metrics":
                self.send_error(404, "only /metrics")
                return
            body = text().encode()
            self.send_response(200)
            self.send_header("Content-Type", _CONTENT)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Keep requests out of the log."""

    try:
        return ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except OSError as error:
        raise ConfigError(f"metrics for prometheus cannot listen on port {port} ({error}); choose another") from None
