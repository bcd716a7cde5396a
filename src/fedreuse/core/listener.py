"""Those who hear a run: the base class, the registry that a configuration names them by, and how they are told."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from fedreuse.core.errors import ConfigError, FedreuseError
from fedreuse.core.events import Evaluated, Failed, Finished, RoundDone, RunEvent, Started, Stop, Stopped
from fedreuse.core.registry import Registry

__all__ = ["Listener", "ListenerConfig", "Listeners", "OwnListener", "listeners", "parse_listeners"]

_log = logging.getLogger("fedreuse")


class Listener:
    """Hears what a run tells; override what you want to hear.

    `started`, `evaluated` and `round_done` may return `Stop(reason)`. The run then makes its rounds so far safe and
    ends in the state `stopped`: not complete, the test split not opened, and resumed to the same bits.
    An exception from a listener is reported once, and the listener hears nothing more; the run goes on. `started` comes
    first: a mistake that is found before it (in the data, say) is raised to the caller, and no listener hears of it.

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
        """The run begins, or goes on."""

    def evaluated(self, event: Evaluated) -> Stop | None:
        """A round was evaluated; `round_done` follows."""

    def round_done(self, event: RoundDone) -> Stop | None:
        """A round is over."""

    def finished(self, event: Finished) -> None:
        """The run is complete."""

    def stopped(self, event: Stopped) -> None:
        """The run was stopped by a listener."""

    def failed(self, event: Failed) -> None:
        """The run ends with an error."""

    def close(self) -> None:
        """Nothing more will be told: let go of files and the like."""


_HEARD_BY: Mapping[type, str] = {
    Started: "started",
    Evaluated: "evaluated",
    RoundDone: "round_done",
    Finished: "finished",
    Stopped: "stopped",
    Failed: "failed",
}


class ListenerConfig(ABC):
    """What the registry of listeners holds: a frozen dataclass of settings."""

    @abstractmethod
    def start(self) -> Listener:
        """A listener for one run; an error here refuses the run."""


@dataclass(frozen=True)
class OwnListener(ListenerConfig):
    """A user's class that is no dataclass, called with the keys that stand beside its name."""

    target: Callable[..., Listener]
    name: str
    options: dict[str, Any] = field(default_factory=dict)

    def start(self) -> Listener:
        """Call the user's class."""
        try:
            return self.target(**self.options)
        except TypeError as error:
            raise ConfigError(f"listeners: {self.name}({', '.join(self.options)}) failed: {error}") from error

    def to_plain(self) -> dict[str, Any]:
        """The options alone; the registry writes the name."""
        return dict(self.options)


listeners: Registry[ListenerConfig] = Registry(
    "listeners", "fedreuse.runs.listeners", adapt=OwnListener, base=ListenerConfig
)


def parse_listeners(value: object, where: str) -> tuple[ListenerConfig, ...]:
    """Listeners by name, in the order in which they hear."""
    if not isinstance(value, list | tuple):
        raise ConfigError(f"{where}: a list expected, for example [{{name: csv}}]; got {value!r}")
    return tuple(listeners.parse(spec, f"{where}[{place}]") for place, spec in enumerate(value))


class Listeners:
    """Everybody who hears a run; `stop` is the first request to stop."""

    def __init__(self, those: Iterable[Listener], log: Callable[[str], object] = str) -> None:
        """`log` is told of a listener that fails, as the standard logger `fedreuse` is."""
        self._those = list(those)
        self._log = log
        self.stop: Stop | None = None

    def tell(self, event: RunEvent) -> None:
        """Let everybody hear an event, in order; whoever fails is left out from then on."""
        for listener in tuple(self._those):
            try:
                asked = getattr(listener, _HEARD_BY[type(event)])(event)
            except Exception as error:
                self._those.remove(listener)
                self._complain(listener, _HEARD_BY[type(event)], error)
            else:
                self.stop = self.stop or (asked if isinstance(asked, Stop) else None)
        if isinstance(event, Finished | Stopped | Failed):
            self._close()

    def _close(self) -> None:
        for listener in self._those:
            try:
                listener.close()
            except Exception as error:
                self._complain(listener, "close", error)
        self._those = []

    def _complain(self, listener: Listener, heard: str, error: Exception) -> None:
        line = (
            f"listener {type(listener).__name__} failed in {heard} ({type(error).__name__}: {error}); "
            "the run goes on without it"
        )
        with suppress(FedreuseError):  # a full disk is told by whoever needs the disk
            self._log(line)
        _log.warning(line)
