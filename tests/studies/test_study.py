"""Studies: expanded and parsed in full before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from fedreuse.core.errors import ConfigError, RunDirectoryError
from fedreuse.studies.study import Study, expand, load_study
from tests.report.runs import write_run

BASE: dict[str, Any] = {
    "task": {"name": "digits", "clients": 4, "partition": {"name": "iid"}},
    "network": {"name": "mlp", "hidden": [4]},
    "local": {"epochs": 1, "batch": 64},
    "rounds": {"count": 1, "cohort": 2},
}
METHODS = {"dense FedAvg": {"method": "fedavg"}, "Top-K": {"uplink": {"update": {"name": "top_k", "ratio": 0.2}}}}


def test_a_persons_study_json_is_not_overwritten(tmp_path):
    (tmp_path / "study.json").write_text("[1, 2]")
    with pytest.raises(RunDirectoryError, match="is not overwritten"):
        Study("mine", ()).write(tmp_path)
    Study("mine", ()).write(tmp_path / "new")
    Study("mine", ()).write(tmp_path / "new")


def test_every_combination_in_order() -> None:
    study = expand({"base": BASE, "axes": {"method": METHODS, "local.batch": [32, 64], "seed": [1, 2]}}, "s")
    assert len(study.runs) == 2 * 2 * 2
    assert [run.title for run in study.runs[:3]] == [
        "dense FedAvg, batch 32, seed 1",
        "dense FedAvg, batch 32, seed 2",
        "dense FedAvg, batch 64, seed 1",
    ]
    last = study.runs[-1]
    assert (last.config.local.batch, last.config.seed) == (64, 2)
    assert list(last.config.uplink) == ["update"]
    assert last.labels == {"method": "Top-K", "local.batch": "batch 64", "seed": "seed 2"}
    assert last.folder == f"top-k-batch-64-s2-{last.config.run_id}"
    assert len({run.folder for run in study.runs}) == 8


def test_a_study_of_seeds_alone_is_called_by_its_method() -> None:
    (run,) = expand({"base": BASE, "axes": {"seed": [3]}}, "s").runs
    assert run.variant == "fedavg"


def test_the_base_may_be_a_file_beside_the_study(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(yaml.safe_dump(BASE))
    (tmp_path / "mine.yaml").write_text("base: base.yaml\naxes: {seed: [1, 2]}\n")
    study = load_study(tmp_path / "mine.yaml", ["rounds.count=7"])
    assert study.name == "mine"
    assert {run.config.rounds.count for run in study.runs} == {7}


def test_an_axis_may_start_from_that_of_another_study(tmp_path: Path) -> None:
    (tmp_path / "first.yaml").write_text(yaml.safe_dump({"base": BASE, "axes": {"method": METHODS}}, sort_keys=False))
    sparser = {"uplink": {"update": {"name": "top_k", "ratio": 0.1}}}
    axes = {"method": {"from": "first.yaml", "Top-K": sparser, "mine": {"method": "fedprox"}}}
    study = expand({"base": BASE, "axes": axes}, "s", tmp_path)
    assert [run.variant for run in study.runs] == ["dense FedAvg", "Top-K", "mine"]
    assert study.runs[1].config.to_plain()["uplink"]["update"]["codec"]["ratio"] == 0.1


def test_overrides_reach_the_axes_too() -> None:
    study = expand({"base": BASE, "axes": {"seed": [1]}}, "s", overrides=["axes.seed=[5, 6]", "rounds.count=3"])
    assert [(run.config.seed, run.config.rounds.count) for run in study.runs] == [(5, 3), (6, 3)]


def test_changes_lie_between_the_base_and_the_axes() -> None:
    plain = {"base": BASE, "changes": {"rounds.count": 9, "seed": 4}, "axes": {"seed": [1]}}
    (run,) = expand(plain, "s").runs
    assert (run.config.rounds.count, run.config.seed) == (9, 1)
    assert expand(plain, "s", overrides=["rounds.count=3"]).runs[0].config.rounds.count == 3


def test_how_a_table_is_sorted() -> None:
    assert expand({"base": BASE, "axes": {"seed": [1]}}, "s").rank is None
    assert expand({"base": BASE, "axes": {"seed": [1]}, "rank": "validation"}, "s").rank == "validation"


@pytest.mark.parametrize(
    ("plain", "text"),
    [
        ({"base": BASE}, "study s: axes: at least one expected"),
        ({"base": BASE, "axes": []}, "study s: axes"),
        ({"axes": {"seed": [1]}}, "study s: base: a configuration, or the path of one"),
        ({"base": BASE, "changes": 3, "axes": {"seed": [1]}}, "study s: changes: keys of the base with new values"),
        ({"base": BASE, "axes": {"seed": [1]}, "axis": 1}, "study s: axis: unknown key; did you mean 'axes'?"),
        ({"base": BASE, "axes": {"seed": [1]}, "rank": "best"}, "study s: rank: test or validation expected"),
        ({"base": BASE, "axes": {"seed": {"from": "absent.yaml"}}}, "absent.yaml: no such file"),
        ({"base": BASE, "axes": {"seed": {"from": 3}}}, "axes.seed.from: the path of another study expected, got 3"),
        ({"base": "absent.yaml", "axes": {"seed": [1]}}, "absent.yaml: no such file"),
        ({"base": BASE, "axes": {"seed": ["x"]}}, "study s, seed 'x': seed: "),
        (
            {"base": BASE, "axes": {"method": {**METHODS, "odd": {"method": "fedavgg"}}, "seed": [1]}},
            "study s, method 'odd', seed 'seed 1': method: 'fedavgg' is not one of the methods; did you mean 'fedavg'?",
        ),
        (
            {"base": BASE, "axes": {"method": {"a": {}, "b": {"method": "fedavg"}}}},
            "study s: 'a, seed 101' and 'b, seed 101' are the same configuration",
        ),
    ],
)
def test_mistakes_name_axis_and_label(plain: dict[str, Any], text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        expand(plain, "s", tmp_path)
    assert text in str(refused.value)


def test_a_frame_has_a_row_per_run_and_only_complete_ones_have_scores(tmp_path):
    study = expand(
        {"base": {"task": {"name": "digits"}}, "axes": {"method": {"a": {"method": "fedavg"}}, "seed": [1, 2]}}, "s"
    )
    write_run(tmp_path / study.runs[0].folder, test_score=0.5)
    frame = study.frame(tmp_path)
    assert frame["method"].tolist() == ["a", "a"]
    assert frame["seed"].tolist() == [1, 2]
    assert frame["is_complete"].tolist() == [True, False]
    assert frame["test_score"].dropna().tolist() == [0.5]
