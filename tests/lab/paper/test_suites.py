"""The paper's suites are what the shipped studies say, and have the settings that the paper prints."""

from __future__ import annotations

from typing import Any

import pytest

from fedreuse.lab.paper.protocol import FEDADAM, MATRIX, REUSE_ONLY, TOP_K, TRAJECTORIES
from fedreuse.lab.paper.published import NAMES, published
from fedreuse.lab.paper.suites import paper_suites
from fedreuse.report.gather import settings_of


@pytest.fixture(scope="module")
def suites() -> dict[str, list[dict[str, Any]]]:
    return {suite.name: [dict(one) for one in suite.configs] for suite in paper_suites()}


@pytest.mark.slow
def test_every_dataset_and_method_of_the_paper_is_there(suites: dict[str, list[dict[str, Any]]]) -> None:
    cells = {name: [(one["task"]["name"], one["method"]["name"]) for one in suites[name]] for name in suites}
    matched = ("fedavg", "fedprox", "dg_fedreuse")
    assert sorted(cells[MATRIX]) == sorted((data, method) for data in NAMES for method in matched)
    assert sorted(cells[REUSE_ONLY]) == sorted((data, method) for data in NAMES for method in ("fedavg", "dg_fedreuse"))
    assert sorted(cells[FEDADAM]) == sorted((data, "fedadam") for data in NAMES)
    assert set(cells[TOP_K]) == {("cifar10", "dg_fedreuse"), ("cifar100", "dg_fedreuse")}
    assert sorted(cells[TRAJECTORIES]) == sorted(cells[MATRIX] + cells[FEDADAM])
    ratios = {one["uplink"]["update"]["codec"]["ratio"] for one in suites[TOP_K]}
    assert set(published()["top_k"]) <= ratios


@pytest.mark.slow
def test_settings_are_those_that_the_paper_selected(suites: dict[str, list[dict[str, Any]]]) -> None:
    for known in published()["tuning"]:
        here = [one for one in suites[MATRIX] + suites[FEDADAM] if known["method"] in (None, one["method"]["name"])]
        assert here
        for config in here:
            settings = settings_of(config)
            for key, value in known["selection"].items():
                if key in settings:  # the proxy batch is a setting of the gate, which others do not have
                    assert float(settings[key]) == value, key


@pytest.mark.slow
def test_the_matrix_holds_nothing_out_and_takes_all_data(suites: dict[str, list[dict[str, Any]]]) -> None:
    for config in suites[MATRIX] + suites[FEDADAM] + suites[REUSE_ONLY]:
        task, rounds = config["task"], config["rounds"]
        assert (task["clients"], task["limit"], task["validation"], task["partition"]["alpha"]) == (50, None, 0.0, 0.5)
        assert (rounds["count"], rounds["cohort"], rounds["patience"]) == (90, 10, None)
        assert config["network"]["name"] == ("resnet18" if task["name"].startswith("cifar") else "cnn")
    assert {config["task"]["validation"] for config in suites[TRAJECTORIES] + suites[TOP_K]} == {0.1}
