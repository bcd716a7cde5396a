"""Tables 3 and 4: what runs tell of themselves beside what was published."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedreuse.lab.paper.setup import data_table, tuning_table
from fedreuse.report.results import Result, read_run
from tests.report.runs import write_run


@pytest.fixture
def result(tmp_path: Path) -> Result:
    one = read_run(write_run(tmp_path / "run"))
    for name, count in (("partition", 900), ("validation", 100)):
        np.savez(tmp_path / "run" / f"{name}.npz", offsets=np.array([0, count]), indices=np.arange(count))
    settings = {"local": {"epochs": 3, "optimizer": {"lr": 0.05}}, "method": {"name": "dg_fedreuse", "rho": 0.5}}
    return replace(one, dataset="mnist", network="cnn", config=settings)


def test_data_of_the_runs_stand_beside_the_papers(result: Result) -> None:
    rows = {row[0]: row[1:] for row in data_table([result]).rows}
    assert rows["MNIST"] == ("-", "10", "1,000", "60,000", "-", "10,000", "CNN", "CNN")
    assert rows["CIFAR-100"] == ("-", "100", "-", "50,000", "-", "10,000", "-", "ResNet-18")


def test_an_export_does_not_hold_the_partition(result: Result) -> None:
    (result.directory / "partition.npz").unlink()
    table = data_table([result])
    assert table.rows[0][3] == "-"
    assert "An export does not hold the partition" in table.legend


def test_settings_of_the_runs_stand_beside_the_selection(result: Result) -> None:
    uplink = {"update": {"name": "plain", "codec": {"name": "top_k", "ratio": 0.2}}}
    other = replace(result, config={"local": {"epochs": 5}, "uplink": uplink})
    rows = {row[0]: row[1:] for row in tuning_table([result, other]).rows}
    assert rows["Shared local training"][3] == (
        "lr 0.05; epochs 3; batch 128; gate.batch 64; momentum 0.9; weight_decay 0.0001"
    )
    assert rows["Shared local training"][4].startswith("lr 0.05; epochs 3 / 5; batch -")
    assert "rho 0.5" in rows["DG gate and reuse"][4]
    assert rows["Top-K ratio"][3:] == ("ratio 0.2", "ratio 0.2")
    assert rows["FedAdam"][3:] == ("server_lr 0.01", "-")
