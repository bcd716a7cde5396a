"""Search spaces: those that ship, what they hold, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from fedreuse.config.run_config import load
from fedreuse.core.errors import ConfigError
from fedreuse.studies.tuning.space import load_space

SPACES = Path(__file__).parents[3] / "configs" / "tune"
TINY: dict[str, Any] = {
    "base": {"task": {"name": "digits", "clients": 4, "limit": 200}, "network": "mlp", "rounds": {"cohort": 2}},
    "seeds": [1, 2],
    "space": {"local.optimizer.lr": {"choice": [0.1, 0.01]}},
    "rule": {"name": "best"},
}


def write(folder: Path, **changes: Any) -> Path:
    file = folder / "space.yaml"
    file.write_text(yaml.safe_dump({key: part for key, part in {**TINY, **changes}.items() if part is not None}))
    return file


@pytest.mark.parametrize(
    ("name", "trials", "num_runs"),
    [("shared", 20, 2), ("gate", 20, 1), ("fedprox", 7, 1), ("top_k", 20, 4), ("fedadam", 4, 4)],
)
def test_the_searches_of_the_paper_have_its_sizes(name: str, trials: int, num_runs: int) -> None:
    space = load_space(SPACES / f"{name}.yaml")
    assert (len(space.grid()) if space.sampler == "grid" else space.trials) == trials
    assert len(space.cells()) * len(space.seeds) == num_runs
    twin = load_space(SPACES / "digits" / f"{name}.yaml")
    assert (twin.rule, twin.sampler) == (space.rule, space.sampler)
    assert [one.key for one in twin.dimensions] == [one.key for one in space.dimensions]


def test_runs_of_trials_are_sealed_and_no_development_seed_can_test_the_choice(tmp_path: Path) -> None:
    space = load_space(write(tmp_path))
    runs = space.runs({"local.optimizer.lr": 0.01})["all"]
    assert [(one.seed, one.test) for one in runs] == [(1, "sealed"), (2, "sealed")]
    frozen = space.frozen({"local.optimizer.lr": 0.01}).to_plain()
    assert load(frozen, ["seed=401"]).to_plain()["local"]["optimizer"]["lr"] == 0.01
    with pytest.raises(ConfigError, match="seed: 2 is one of development_seeds"):
        load(frozen, ["seed=2"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rule": None}, "rule: .*before the first trial"),
        ({"final_seed": 2}, "final_seed: 2 is a development seed"),
        ({"seeds": []}, "seeds: integers"),
        ({"objectives": [{}, {"metric": "flops"}]}, "rule: best .*one objective"),
        ({"sampler": "grid", "space": {"seed": {"int": [1, 2]}}}, "grid needs dimensions of the kind choice"),
        ({"rule": {"name": "scalarised", "weights": [1, 2]}}, "rule.weights: 1 expected"),
        ({"constraints": [{"metric": "flops"}]}, "one of at_most and at_least"),
        ({"tirals": 3}, "tirals: unknown key; did you mean 'trials'"),
        ({"space": {"method.mu": {"choice": [1]}}}, "mu"),
    ],
)
def test_mistakes_name_their_place(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        load_space(write(tmp_path, **changes))


@pytest.mark.parametrize("key", ["trials", "batch"])
def test_numbers_of_trials_are_whole(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigError, match=f"{key}: .*'many'"):
        load_space(write(tmp_path, **{key: "many"}))
