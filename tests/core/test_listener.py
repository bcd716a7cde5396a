"""Who hears what, who is left out, and how a configuration names them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from fedreuse.core.allowed import allow
from fedreuse.core.errors import ConfigError, RunError
from fedreuse.core.events import Evaluated, Failed, RoundDone, Stop, Stopped
from fedreuse.core.listener import Listener, Listeners, OwnListener, listeners, parse_listeners

ROUND = Evaluated(1, {"validation_score": 0.5})


class Notes(Listener):
    def __init__(self, notes: list[str], name: str = "", fails: bool = False) -> None:
        self.notes, self.name, self.fails = notes, name, fails

    def evaluated(self, event: Evaluated) -> Stop | None:
        self.notes.append(self.name)
        if self.fails:
            raise KeyError(self.name)
        return Stop(f"asked by {self.name}")

    def close(self) -> None:
        self.notes.append(f"{self.name} closed")


def test_everybody_hears_in_order_and_the_first_request_counts() -> None:
    notes: list[str] = []
    heard = Listeners([Listener(), Notes(notes, "first"), Notes(notes, "second")])
    assert heard.stop is None
    heard.tell(ROUND)
    assert notes == ["first", "second"]
    assert heard.stop == Stop("asked by first")
    heard.tell(Stopped(1, "asked by first"))
    heard.tell(ROUND)  # nobody is there any more
    assert notes == ["first", "second", "first closed", "second closed"]


def test_whoever_fails_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    notes: list[str] = []
    logged: list[str] = []
    heard = Listeners([Notes(notes, "broken", fails=True), Notes(notes, "whole")], logged.append)
    for _ in range(3):
        heard.tell(ROUND)
    assert notes == ["broken", "whole", "whole", "whole"]
    assert logged == ["listener Notes failed in evaluated (KeyError: 'broken'); the run continues without it"]
    assert [record.getMessage() for record in caplog.records] == logged


def test_a_log_that_cannot_be_written_hides_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def full(line: str) -> None:
        raise RunError("the disk is full")

    class Broken(Listener):
        def failed(self, event: Failed) -> None:
            raise ValueError

    Listeners([Broken()], full).tell(Failed(OSError()))
    assert "listener Broken failed in failed" in caplog.text


def test_ctrl_c_is_no_failure_of_a_listener() -> None:
    class Interrupted(Listener):
        def evaluated(self, event: Evaluated) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Listeners([Interrupted()]).tell(ROUND)


OWN = """
from fedreuse.runs.listeners import Listener

class Mine(Listener):
    def __init__(self, limit=3):
        self.limit = limit
"""


def test_ones_own_class_is_named_with_its_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_listener.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    allow(["own_listener"])
    (own,) = parse_listeners([{"name": "own_listener:Mine", "limit": 5}], "listeners")
    assert isinstance(own, OwnListener)
    assert own.start().limit == 5  # type: ignore[attr-defined]
    (wrong,) = parse_listeners([{"name": "own_listener:Mine", "limt": 5}], "listeners")
    with pytest.raises(ConfigError, match=r"own_listener:Mine\(limt\) failed"):
        wrong.start()


def test_mistakes_name_their_place() -> None:
    with pytest.raises(ConfigError, match=r"listeners: a list expected, for example \[\{name: csv\}\]; got 'csv'"):
        parse_listeners("csv", "listeners")
    with pytest.raises(ConfigError, match=r"listeners\[1\]: 'tensorbord' is not one of the listeners; did you mean"):
        parse_listeners(["csv", "tensorbord"], "listeners")


def test_all_are_registered() -> None:
    assert {"csv", "mlflow", "progress", "tensorboard"} <= set(listeners.names())


@dataclass(frozen=True)
class _Settings:
    def start(self) -> Listener:
        return Listener()


def test_a_listener_that_overrides_nothing_hears_everything_and_asks_for_nothing() -> None:
    heard = Listeners([_Settings().start()])
    for event in (ROUND, RoundDone({"round": 1}, {}, None), Failed(ValueError())):  # type: ignore[arg-type]
        heard.tell(event)
    assert heard.stop is None


class Deaf:
    """A class that is no listener."""


def test_a_class_that_is_no_listener_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDREUSE_ALLOW", "tests")
    with pytest.raises(ConfigError, match="Deaf must derive from Listener"):
        parse_listeners([f"{__name__}:Deaf"], "listeners")
