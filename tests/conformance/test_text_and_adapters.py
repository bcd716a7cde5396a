"""Every method on a language model with tied weights, and on adapters: messages as bytes or objects, the same bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

from fedreuse.config.run_config import RunConfig, load
from fedreuse.runs.federation import assemble
from fedreuse.runs.launch import run
from fedreuse.testing.cases import Case
from tests.conformance.cases import CASES
from tests.tiny import results

FIRST = {case.method: case for case in reversed(CASES) if ":" not in case.method}
NETWORKS: dict[str, Any] = {
    "text": {"name": "lstm", "width": 4, "tied": True},
    "adapter": {"name": "lora", "of": {"name": "transformer", "width": 8, "layers": 1, "heads": 2}, "rank": 2},
}
FAST = {("dg_fedreuse", "text"), ("dg_fedreuse", "adapter"), ("flasc", "adapter")}
PAIRS = [
    pytest.param(
        case, kind, id=f"{case.method}-{kind}", marks=[] if (case.method, kind) in FAST else [pytest.mark.slow]
    )
    for case in FIRST.values()
    for kind in NETWORKS
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four authors with a few lines each."""
    path = tmp_path_factory.mktemp("text") / "lines.csv"
    lines = [f"{word} says line {number} of many" for number in range(4) for word in ("Ann", "Bo", "Cy", "Di")]
    pyarrow.csv.write_csv(pa.table({"text": lines, "author": ["Ann", "Bo", "Cy", "Di"] * 4}), path)
    return path


def config(case: Case, kind: str, table: Path, wire: str) -> RunConfig:
    """Three rounds of two authors."""
    up = {"update": case.uplink, **case.other_uplinks}
    down = {"model": case.downlink, **case.other_downlinks}
    return load({
        "task": {
            "name": "text", "path": str(table), "client_column": "author", "target": "sequence", "length": 12,
            "clients": 4, "partition": "natural", "metric": "log_likelihood", "metrics": ["perplexity"],
        },
        "network": NETWORKS[kind],
        "local": {"epochs": 1, "batch": 4, "optimizer": {"name": "sgd", "lr": 0.05}},
        "method": {"name": case.method, **case.options},
        "uplink": {group: link for group, link in up.items() if link is not None},
        "downlink": {group: link for group, link in down.items() if link is not None},
        "accept_approximation": True,
        "rounds": {"count": 3, "cohort": 3, "evaluate_every": 3},
        "executor": {"name": "serial", "mode": wire},
        "devices": {"name": "profile", "up": {"low": 1e5, "high": 4e6}, "down": 4e6},
        "seed": 3,
    })  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("case", "kind"), PAIRS)
def test_every_method(case: Case, kind: str, table: Path, tmp_path: Path) -> None:
    runs = [run(config(case, kind, table, wire), tmp_path / wire) for wire in ("fast", "strict")]
    assert results(runs[0]) == results(runs[1])
    federation = assemble(config(case, kind, table, "fast"))
    assert runs[0].metrics()[-1]["validation_score"] < 0
    if kind == "adapter":
        assert set(runs[0].model()) == {spec.name for spec in federation.schema.weights}
        assert all("lora" in name for name in runs[0].model())
        assert all(name.startswith("blocks.0.down.") for name in federation.schema.head())
    else:
        assert federation.schema.head() == ("embed.weight", "head.bias")


def test_every_method_has_its_turn() -> None:
    from fedreuse.core.method import methods

    assert {*FIRST} == {*methods.names()}
