"""Prometheus listener: `/metrics` of a run on loopback, while it lasts."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from threading import Lock, Thread
from typing import TYPE_CHECKING

from fedreuse.core.errors import FedreuseError, require
from fedreuse.core.listener import Listener, ListenerConfig, listeners
from fedreuse.store.metrics_page import metrics_page
from fedreuse.store.prometheus_text import prometheus_text

if TYPE_CHECKING:
    from fedreuse.core.events import RoundDone, Started

__all__ = ["Prometheus"]

_log = logging.getLogger("fedreuse")


@listeners.register("prometheus")
@dataclass(frozen=True)
class Prometheus(ListenerConfig):
    """Serve rounds, bytes by direction and kind, lost clients, refused replies and resyncs to Prometheus.

    Args:
        port: Port on loopback, for `http://127.0.0.1:PORT/metrics`, from 1 to 65535; 0 chooses a free one, which is
            logged.

    Raises:
        ConfigError: If the port is out of range or in use.

    Example:
        listeners: [{name: prometheus, port: 9464}]
    """

    port: int = 9464

    def __post_init__(self) -> None:
        """Check the range."""
        require(0 <= self.port <= 65535, "prometheus: port must be from 0 to 65535", self.port)

    def start(self) -> Listener:
        """Open the port."""
        return _PrometheusListener(self.port)


class _PrometheusListener(Listener):
    """Renders the text after each round, in the run's process; requests read the last text."""

    def __init__(self, port: int) -> None:
        self._text, self._lock = "", Lock()
        self._server = metrics_page(port, lambda: self.text)
        self.port = self._server.server_port
        Thread(target=self._server.serve_forever, name="prometheus", daemon=True).start()
        _log.info("metrics at http://127.0.0.1:%d/metrics", self.port)

    @property
    def text(self) -> str:
        """The metrics after the last round."""
        with self._lock:
            return self._text

    def started(self, event: Started) -> None:
        """Render the rounds that are stored already."""
        self._directory = event.directory
        self._render()

    def round_done(self, event: RoundDone) -> None:
        """Render the stored rounds."""
        del event
        self._render()

    def _render(self) -> None:
        try:
            text = prometheus_text(self._directory)
        except FedreuseError as error:  # nothing is stored yet, or the directory is being written
            _log.debug("no metrics yet: %s", error)
            return
        with self._lock:
            self._text = text

    def close(self) -> None:
        """Close the port."""
        self._server.shutdown()
        self._server.server_close()
