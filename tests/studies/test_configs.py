"""The configurations that come with the source: they parse, and the paper's hold its values to the last digit."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fedreuse import load
from fedreuse.studies.study import load_study
from fedreuse.studies.tuning.space import load_space

CONFIGS = Path(__file__).parents[2] / "configs"
FILES = sorted(CONFIGS.rglob("*.yaml"))
PAPER = ["mnist", "fashion_mnist", "emnist_balanced", "pathmnist", "cifar10", "cifar100"]


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(CONFIGS)))
def test_every_file_parses(file: Path) -> None:
    keys = yaml.safe_load(file.read_text())
    if "rule" in keys or "from" in keys:
        assert load_space(file).dimensions
    elif "axes" in keys:
        assert load_study(file).runs
    else:
        assert load(file).run_id


@pytest.mark.parametrize("name", PAPER)
def test_the_papers_protocol(name: str) -> None:
    plain = load(CONFIGS / "paper" / f"{name}.yaml").to_plain()
    task = plain["task"]
    assert (task["name"], task["clients"], task["validation"]) == (name, 50, 0.1)
    assert (task["partition"]["name"], task["partition"]["alpha"]) == ("dirichlet", 0.5)
    assert plain["network"]["name"] == ("resnet18" if name.startswith("cifar") else "cnn")
    assert (plain["local"]["epochs"], plain["local"]["batch"]) == (3, 128)
    sgd = {"name": "sgd", "lr": 0.05, "momentum": 0.9, "weight_decay": 1e-4}
    assert plain["local"]["optimizer"].items() >= sgd.items()
    gate = {"name": "proxy", "tau_start": 0.9116988, "tau_floor": 0.8134931, "decay": 0.01, "max_age": 4, "quota": 0.3,
            "batches": 5, "batch": 64}  # fmt: skip
    assert plain["method"]["gate"].items() >= gate.items()
    assert (plain["method"]["rho"], plain["method"]["mu"]) == (0.7279635, 3.4156e-4)
    assert plain["uplink"]["update"]["codec"] == {"name": "top_k", "ratio": 0.2}
    assert plain["buffers"] == "as_weights"
    rounds = plain["rounds"]
    assert (rounds["count"], rounds["cohort"], rounds["evaluate_every"], rounds["patience"]) == (90, 10, 5, None)
    assert plain["seed"] == 101


def test_the_matched_controls_differ_in_the_method_alone() -> None:
    study = load_study(CONFIGS / "paper" / "fashion_mnist_controls.yaml")
    assert sorted({run.config.seed for run in study.runs}) == [101, 202, 303]
    plains = [run.config.to_plain() for run in study.runs if run.config.seed == 101]
    assert [plain["method"]["name"] for plain in plains] == ["fedavg", "fedprox", "dg_fedreuse"]
    assert plains[1]["method"]["mu"] == 5e-4
    rest = [{key: value for key, value in plain.items() if key != "method"} for plain in plains]
    assert rest[0] == rest[1] == rest[2]
