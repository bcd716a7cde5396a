"""Who is of the paper's protocol: the whole configuration decides, and who is not is named with what differs."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from fedreuse.core.errors import RunDirectoryError
from fedreuse.lab.paper.protocol import MATRIX, TRAJECTORIES, Suite, paper_runs
from fedreuse.report.results import Result, read_run
from tests.report.runs import write_run

CONFIG = {
    "task": {"name": "mnist", "path": None, "clients": 50, "limit": None, "validation": 0.0,
             "metric": {"name": "accuracy"}},
    "network": {"name": "cnn", "width": 32},
    "method": {"name": "dg_fedreuse", "gate": {"name": "proxy", "tau_start": 0.9116988}, "rho": 0.7279635},
    "uplink": {"update": {"name": "plain", "codec": {"name": "top_k", "ratio": 0.2}}},
    "downlink": {},
    "rounds": {"count": 2, "cohort": 10, "evaluate_every": 90, "patience": None},
    "attack": None,
    "executor": {"name": "pool", "workers": "auto"},
    "test": "open",
    "keep": {"model": "last", "models": [], "checkpoints": 0},
}  # fmt: skip


def _changed(**changes: Any) -> dict[str, Any]:
    """The configuration with dotted keys changed; underscores twice stand for dots."""
    config: dict[str, Any] = deepcopy(CONFIG)
    for key, new in changes.items():
        *path, last = key.split("__")
        part = config
        for step in path:
            part = part[step]
        part[last] = new
    return config


SUITES = [Suite(MATRIX, (CONFIG,)), Suite(TRAJECTORIES, (_changed(task__validation=0.1),))]


def _run(place: Path, config: dict[str, Any] | None = None, seed: int = 101, is_complete: bool = True) -> Result:
    directory = write_run(place, seed=seed, config=config or _changed(), is_complete=is_complete)
    return read_run(directory, "DG-FedReuse")


def test_what_does_not_decide_a_result_is_free(tmp_path: Path) -> None:
    free = {
        "task__path": "/data", "rounds__evaluate_every": 5, "executor": {"name": "serial"}, "test": "sealed",
        "keep__models": [1, 2], "attack": None,
    }  # fmt: skip
    same, other_seed = _run(tmp_path / "a", _changed(**free)), _run(tmp_path / "b", seed=202)
    found = paper_runs([same, other_seed], SUITES)
    assert (found.of(MATRIX), found.of(), found.notes) == ([same, other_seed], [same, other_seed], ())
    assert found.of(TRAJECTORIES) == []


def test_a_field_that_a_stored_run_leaves_out_has_its_default(tmp_path: Path) -> None:
    assert "width" in CONFIG["network"]
    stored = _run(tmp_path, _changed(network={"name": "cnn"}))
    assert paper_runs([stored], SUITES).of(MATRIX) == [stored]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"task__limit": 12000}, "task.limit is 12000, the paper has none"),
        ({"task__limit": 12000, "rounds__count": 3}, "task.limit is 12000, the paper has none"),
        ({"method__rho": 1.0}, "method.rho is 1.0, the paper has 0.7279635"),
        ({"method__gate": {"name": "age_only"}}, "method.gate.name is age_only, the paper has proxy"),
        ({"network__width": 16}, "network.width is 16, the paper has 32"),
        ({"attack": {"name": "sign_flip"}}, "attack.name is sign_flip, the paper has none"),
        ({"downlink": {"model": {"name": "top_k"}}}, "downlink.model.name is top_k, the paper has none"),
        ({"uplink__update__codec__ratio": 0.1}, "uplink.update.codec.ratio is 0.1, the paper has 0.2"),
        ({"keep__model": "best"}, "keep.model is best, the paper has last"),
        ({"task__name": "digits"}, "task.name is digits, which the paper does not have"),
        ({"method": {"name": "lean"}}, "method.name is lean, which the paper does not have"),
    ],
)
def test_one_other_setting_leaves_a_run_out(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    mine, other = _run(tmp_path / "a"), _run(tmp_path / "b", _changed(**changes))
    found = paper_runs([other, mine], SUITES)
    assert found.of() == [mine]
    assert found.notes == (f"left out: DG-FedReuse, seed 101 ({tmp_path}): {reason}",)


def test_runs_with_the_same_reason_are_counted_together(tmp_path: Path) -> None:
    limited = [_run(tmp_path / folder / "a", _changed(task__limit=12000)) for folder in "pqrs"]
    wide = [_run(tmp_path / "many" / f"w{width}", _changed(network__width=width)) for width in range(1, 8)]
    found = paper_runs([*wide, _run(tmp_path / "mine" / "a"), *limited], SUITES)
    folders = ", ".join(str(tmp_path / folder) for folder in "pqr")
    assert found.notes[0] == f"left out: 4 runs ({folders} and 1 more): task.limit is 12000, the paper has none"
    assert found.notes[-1] == "left out: 2 more, for 2 other reasons"
    assert len(found.notes) == 7


def test_a_seed_counts_once(tmp_path: Path) -> None:
    first, twin = (_run(tmp_path / folder / "run") for folder in ("a", "b"))
    found = paper_runs([first, twin], SUITES)
    assert found.of(MATRIX) == [first]
    (note,) = found.notes
    assert note.startswith(f"left out: DG-FedReuse, seed 101 ({tmp_path / 'b'}): duplicate")
    assert note.endswith(str(tmp_path / "a"))


def test_validation_examples_are_for_trajectories_alone(tmp_path: Path) -> None:
    curve = _run(tmp_path / "a", _changed(task__validation=0.1))
    found = paper_runs([curve], SUITES)
    assert (found.of(MATRIX), found.of(TRAJECTORIES)) == ([], [curve])
    reason = "task.validation is 0.1, the paper has 0.0"
    assert found.notes == (f"only in the figure of learning curves: DG-FedReuse, seed 101 ({tmp_path}): {reason}",)


def test_without_a_run_of_the_protocol_the_study_is_named(tmp_path: Path) -> None:
    unfinished = _run(tmp_path / "a", is_complete=False)
    limited = _run(tmp_path / "b", _changed(task__limit=12000))
    with pytest.raises(RunDirectoryError, match=r"not complete.*task\.limit is 12000.*configs/paper/round90\.yaml"):
        paper_runs([unfinished, limited], SUITES)
