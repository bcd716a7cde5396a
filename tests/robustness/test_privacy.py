"""Runs with a private mean: what is refused, what is told, and a secret that a resumed server finds again."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError, RunDirectoryError
from fedreuse.engine.executors.serial import Serial
from fedreuse.engine.schedule import Schedule
from fedreuse.robustness import privacy
from fedreuse.robustness.privacy import SECRET_FILE
from fedreuse.robustness.privacy_accountant import epsilon
from fedreuse.runs.keeping import go_back
from fedreuse.runs.launch import run
from tests.robustness.test_poisoning import StopAfter
from tests.tiny import results, tiny

MEAN = {"name": "private_mean", "clip": 0.5, "noise": 2.0}
AVERAGING = {"name": "averaging", "aggregate": MEAN}
AGED = {"name": "dg_fedreuse", "rho": 0.5, "gate": {"name": "age_only", "max_age": 3, "quota": 0.0}, "aggregate": MEAN}
PROXY = {**AGED, "gate": {"name": "proxy", "max_age": 3, "quota": 0.0, "batches": 1}}
DRIFT = {**AGED, "gate": {"name": "drift", "max_age": 3, "quota": 0.0}}


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"method": {"name": "scaffold", "aggregate": MEAN}}, "in method scaffold is refused"),
        ({"method": {"name": "fedluar", "aggregate": MEAN}}, "in method fedluar is refused"),
        ({"method": {"name": "docofl", "inner": AVERAGING}}, "in method docofl is refused"),
        ({"method": {**AVERAGING, "step": "extrapolation"}}, "step that reads single updates is refused"),
        ({"method": {**PROXY, "gate": {"name": "proxy", "quota": 0.3}}}, "one client's score would influence"),
        ({"method": {**PROXY, "gate": {"name": "quantile"}}}, "one client's score would influence"),
        ({"method": {**PROXY, "gate": {"name": "drift"}}}, "one client's score would influence"),
        ({"method": AVERAGING, "rounds": {"patience": 2}}, r"rounds\.patience uses clients' validation"),
        ({"method": AVERAGING, "keep": {"model": "best"}}, r"keep\.model: best uses clients' validation"),
    ],
)
def test_where_the_mathematics_does_not_hold_it_is_refused(parts: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        tiny(**parts)


@pytest.mark.slow
@pytest.mark.parametrize("method", [AVERAGING, AGED, PROXY, DRIFT], ids=["averaging", "by age", "by score", "by drift"])
def test_epsilon_is_told_and_a_stopped_run_repeats_its_noise(tmp_path: Path, method: dict[str, Any]) -> None:
    config = tiny(method=method)
    whole = run(config, tmp_path / "whole")
    run(config, tmp_path / "again", listeners=[StopAfter(2)])
    assert results(run(config, tmp_path / "again", resume=True)) == results(whole)
    assert not (whole.path / SECRET_FILE).exists()  # a simulation's noise follows from the seed
    spent, events = whole.summary["privacy"], whole.events()
    factors: dict[int, list[float]] = {}
    for event in events:
        is_decayed = method is AGED and event.outcome == "reused"
        factors.setdefault(event.client, []).append(0.5**event.age if is_decayed else 1.0)
    assert spent["releases"] == max(sum(factor**2 for factor in each) for each in factors.values())
    assert spent["epsilon"] == epsilon(2.0, spent["releases"], 1e-5)
    assert (spent["noise"], spent["clip"], spent["delta"]) == (2.0, 0.5, 1e-5)
    assert "privacy" not in run(tiny(), tmp_path / "open").summary


@pytest.mark.slow
def test_weights_and_lost_replies_do_not_change_what_others_count_for(tmp_path: Path) -> None:
    lost = {"name": "listed", "entries": [{"round": 1, "client": client, "fate": "lost"} for client in range(5)]}
    directory = run(tiny(method=AVERAGING, faults=lost, rounds={"count": 1, "cohort": 6}), tmp_path / "lost")
    assert directory.summary["events"]["lost"] == 5  # one answers: its clipped update over six, and the noise
    assert directory.summary["privacy"]["releases"] == 1


@pytest.mark.slow
def test_real_clients_are_hidden_by_a_secret_that_a_resumed_server_finds_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, place = tiny(method=AVERAGING), tmp_path / "server"
    run(config, place, listeners=[StopAfter(2)], executor=Serial())
    secret = place / SECRET_FILE
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert len(secret.read_bytes()) == 32
    monkeypatch.setattr(privacy, "token_bytes", lambda _: secret.read_bytes())  # the same draw, without a stop
    whole = run(config, tmp_path / "whole", executor=Serial())
    resumed = run(config, place, resume=True, executor=Serial())
    assert results(resumed) == results(whole)
    simulated = run(config, tmp_path / "simulated")
    assert resumed.summary["model_digest"] != simulated.summary["model_digest"]
    assert resumed.provenance["run_id"] == simulated.provenance["run_id"]
    known = Schedule.load(place / "schedule.json")
    assert known.cohorts != Schedule.load(simulated.path / "schedule.json").cohorts
    text = b"".join(file.read_bytes() for file in place.glob("*.*") if file.name != SECRET_FILE)
    assert secret.read_bytes() not in text
    assert secret.read_bytes().hex().encode() not in text


@pytest.mark.slow
def test_a_run_that_lost_its_secret_cannot_go_on(tmp_path: Path) -> None:
    config, place = tiny(method=AVERAGING), tmp_path / "server"
    run(config, place, listeners=[StopAfter(2)], executor=Serial())
    (place / SECRET_FILE).unlink()
    with pytest.raises(RunDirectoryError, match=r"privacy\.secret"):
        run(config, place, resume=True, executor=Serial())


@pytest.mark.slow
def test_nobody_goes_back_to_use_the_same_noise_twice(tmp_path: Path) -> None:
    config, kept = tiny(method=AVERAGING, keep={"checkpoints": 3}), {"listeners": [StopAfter(3)]}
    place = run(config, tmp_path / "server", executor=Serial(), **kept).path
    with pytest.raises(RunDirectoryError, match=r"the difference of the two models would have none; start a new run"):
        go_back(place, 2)
    assert (
        results(run(config, place, resume=True, executor=Serial()))["metrics"][-1]["round"] == 4
    )  # it goes on, though
    simulated = run(config, tmp_path / "simulated", **kept).path  # the same replies and the same noise: the same sums
    go_back(simulated, 2)
    assert run(config, simulated, resume=True).is_complete


@pytest.mark.slow
def test_rounds_are_stored_before_they_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="checkpoint_every is 2"):
        run(tiny(method=AVERAGING, checkpoint_every=2), tmp_path / "server", executor=Serial())
    assert run(tiny(method=AVERAGING, checkpoint_every=2), tmp_path / "simulated").is_complete


@pytest.mark.slow
def test_the_noise_is_in_the_model(tmp_path: Path) -> None:
    loud = run(tiny(method={"name": "averaging", "aggregate": {**MEAN, "noise": 50.0}}), tmp_path / "loud")
    norm = np.sqrt(sum(float(np.sum(np.square(array.astype(float)))) for array in loud.model().values()))
    assert norm > 50 * 0.5 / 3  # one round of it is noise * clip / cohort in every coordinate
