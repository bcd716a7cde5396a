"""Listeners, the callbacks of a run: base class, registry and notification."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from fedreuse.core.errors import ConfigError, FedreuseError
from fedreuse.core.events import Evaluated, Failed, Finished, RoundDone, RunEvent, Started, Stop, Stopped, Warned
from fedreuse.core.registry import Registry

__all__ = ["Listener", "ListenerConfig", "Listeners", "OwnListener", "listeners", "parse_listeners"]

_log = logging.getLogger("fedreuse")


class Listener:
    """Base class of listeners, the callbacks of a run; override the methods you need.

    `started`, `evaluated`, `warned` and `round_done` may return `Stop(reason)`. The run then stores its rounds so far
    and ends in the state `stopped`: not complete, the test split not opened. It can be resumed with bit-identical
    results.

    An exception in a listener is logged once, and the listener is not called again; the run continues. Errors before
    `started`, for example in the data, are raised to the caller without notifying listeners.

    Example:
        >>> from fedreuse import Listener, Stop, run
        >>> class StopSoon(Listener):
        ...     def round_done(self, event):
        ...         return Stop("seen enough") if event.round_number == 1 else None
        >>> config = {"task": {"name": "digits", "clients": 4, "limit": 200, "partition": "iid"}, "network": "mlp",
        ...           "rounds": {"count": 3, "cohort": 2}}
        >>> directory = run(config, "soon", listeners=[StopSoon()])
        >>> directory.state, directory.stop_reason
        ('stopped', 'seen enough')
        >>> run(config, "soon", resume=True).state
        'complete'
    """

    def started(self, event: Started) -> Stop | None:
        """Handle the start or resumption of the run."""

    def evaluated(self, event: Evaluated) -> Stop | None:
        """Handle the evaluation of a round; `round_done` follows."""

    def warned(self, event: Warned) -> Stop | None:
        """Handle a round in which one client dominates or the score collapsed; `round_done` follows."""

    def round_done(self, event: RoundDone) -> Stop | None:
        """Handle the end of a round."""

    def finished(self, event: Finished) -> None:
        """Handle the completion of the run."""

    def stopped(self, event: Stopped) -> None:
        """Handle a stop that a listener requested."""

    def failed(self, event: Failed) -> None:
        """Handle an error or interruption that ends the run."""

    def close(self) -> None:
        """Release resources such as files; called after the last event."""


_HANDLERS: Mapping[type, str] = {
    Started: "started",
    Evaluated: "evaluated",
    Warned: "warned",
    RoundDone: "round_done",
    Finished: "finished",
    Stopped: "stopped",
    Failed: "failed",
}


class ListenerConfig(ABC):
    """Base class of the registry's listeners: a frozen dataclass of settings that creates a listener."""

    @abstractmethod
    def start(self) -> Listener:
        """Create the listener of one run; an exception prevents the run from starting."""


@dataclass(frozen=True)
class OwnListener(ListenerConfig):
    """A user's listener class that is no dataclass, and the keyword arguments from the configuration."""

    target: Callable[..., Listener]
    name: str
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a class that is no listener."""
        if isinstance(self.target, type) and not issubclass(self.target, Listener):
            raise ConfigError(f"listeners: {self.name} must derive from Listener (fedreuse)")

    def start(self) -> Listener:
        """Create the user's listener."""
        try:
            return self.target(**self.options)
        except TypeError as error:
            raise ConfigError(f"listeners: {self.name}({', '.join(self.options)}) failed: {error}") from error

    def to_plain(self) -> dict[str, Any]:
        """Return the options; the registry adds the name."""
        return dict(self.options)


listeners: Registry[ListenerConfig] = Registry(
    "listeners", "fedreuse.runs.listeners", adapt=OwnListener, base=ListenerConfig
)


def parse_listeners(value: object, where: str) -> tuple[ListenerConfig, ...]:
    """Parse a list of listeners, which are notified in this order."""
    if not isinstance(value, list | tuple):
        raise ConfigError(f"{where}: a list expected, for example [{{name: csv}}]; got {value!r}")
    return tuple(listeners.parse(spec, f"{where}[{index}]") for index, spec in enumerate(value))


class Listeners:
    """All listeners of a run; `stop` is the first request to stop."""

    def __init__(self, active: Iterable[Listener], log: Callable[[str], object] = str) -> None:
        """Report failing listeners to `log` and to the standard logger `fedreuse`."""
        self._active = list(active)
        self._log = log
        self.stop: Stop | None = None

    def tell(self, event: RunEvent) -> None:
        """Notify the listeners of an event in order; a listener that raises is removed."""
        handler = _HANDLERS[type(event)]
        for listener in tuple(self._active):
            try:
                request = getattr(listener, handler)(event)
            except Exception as error:
                self._active.remove(listener)
                self._report(listener, handler, error)
            else:
                self.stop = self.stop or (request if isinstance(request, Stop) else None)
        if isinstance(event, Finished | Stopped | Failed):
            self._close()

    def _close(self) -> None:
        for listener in self._active:
            try:
                listener.close()
            except Exception as error:
                self._report(listener, "close", error)
        self._active = []

    def _report(self, listener: Listener, handler: str, error: Exception) -> None:
        line = (
            f"listener {type(listener).__name__} failed in {handler} ({type(error).__name__}: {error}); "
            "the run continues without it"
        )
        with suppress(FedreuseError):  # a full disk is reported by the run itself when it writes
            self._log(line)
        _log.warning(line)
