"""A configuration: what is refused and how, overrides, YAML, the resolved tree, and the identity of a run."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.error_feedback import ErrorFeedback
from fedreuse.compression.links.plain import Plain
from fedreuse.config.run_config import Rounds, RunConfig, load, with_overrides
from fedreuse.core.allowed import allow
from fedreuse.core.errors import ConfigError
from fedreuse.methods.aliases import FedProx
from fedreuse.methods.dg_fedreuse import DgFedReuse
from tests.tiny import plain, tiny

OWN = """
from dataclasses import dataclass
import numpy as np
from torch import nn
from fedreuse.learning.data import Data, Split

class Net(nn.Module):
    def __init__(self, shape, num_classes, units=3):
        super().__init__()

def loss(outputs, labels, power=2):
    return outputs.mean()

def metric(outputs, labels):
    return 0.0

@dataclass(frozen=True)
class Dataset:
    size: int = 7
    def load(self, folder):
        raise RuntimeError("building reads nothing")
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of the user's in the folder where the command is given."""
    (tmp_path / "own_parts.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    allow(["own_parts", "own_pats"])
    return "own_parts"


# what is refused: place, value, way out


REFUSED: list[tuple[dict[str, Any], str]] = [
    # keys and types
    ({"sed": 3}, r"^sed: unknown key; did you mean 'seed'\?$"),
    ({"rounds": {"cohrt": 3}}, r"^rounds\.cohrt: unknown key; did you mean 'cohort'\?$"),
    ({"task": {"clint": 3}}, r"^task\.clint: unknown key; did you mean 'clients'\?$"),
    ({"method": {"name": "fedprox", "muu": 1}}, r"^method\.muu: unknown key; did you mean 'mu'\?$"),
    (
        {"method": {"name": "dg_fedreuse", "gate": {"name": "proxy", "tau_stat": 1}}},
        r"^method\.gate\.tau_stat: unknown key; did you mean 'tau_start'\?$",
    ),
    ({"zzz": 1}, r"^zzz: unknown key; known: .*seed.*$"),
    ({"seed": "x"}, r"^seed: .*integer.*, got 'x'$"),
    ({"seed": 1.5}, r"^seed: .*integer.*, got 1\.5$"),
    ({"seed": True}, r"^seed: int expected, got True$"),
    ({"rounds": 30}, r"^rounds: a mapping of keys to values expected, got 30$"),
    ({"buffers": "sparse"}, r"^buffers: .*'dense' or 'as_weights'.*, got 'sparse'$"),
    ({"client_store": "tape"}, r"^client_store: .*'memory' or 'disk'.*, got 'tape'$"),
    (
        {"method": "fedavgg"},
        r"^method: 'fedavgg' is not one of the methods; did you mean 'fedavg'\? "
        r"\(see `fedreuse list methods`, or name your own as package\.module:Name\)$",
    ),
    ({"task": {"partition": 7}}, r"^task\.partition: a mapping of keys to values expected, got 7$"),
    ({"faults": {"name": 7}}, r"^faults: a name is missing, for example \{name: .*\}; got \{'name': 7\}$"),
    ({"executor": {"name": "serial", "mode": "slow"}}, r"^executor\.mode: .*'fast' or 'strict'.*, got 'slow'$"),
    # links
    ({"uplink": {"update": {"name": "top_k", "ratio": 0}}}, r"^uplink\.update.*ratio must be in \(0, 1\], got 0"),
    ({"uplink": {"update": {"name": "top_k", "ratio": 1.5}}}, r"^uplink\.update.*ratio must be in .*, got 1\.5$"),
    ({"uplink": {"update": {"name": "top_k", "ratio": "half"}}}, r"^uplink\.update.*ratio: .*number.*, got 'half'$"),
    (
        {"uplink": {"update": {"name": "error_feedback", "codec": {"name": "top_k", "ratio": 2}}}},
        r"^uplink\.update\.codec: .*ratio must be in \(0, 1\], got 2",
    ),
    ({"uplink": {"update": {"name": "error_feedback", "decay": 0}}}, r"^uplink\.update: .*decay must be in .*, got 0"),
    ({"uplink": {"update": "topk"}}, r"^uplink\.update: 'topk' is neither a link nor a codec; .* 'top_k'\?$"),
    ({"uplink": {"update": 3}}, r"^uplink\.update: a name is missing, for example \{name: top_k, ratio: .*\}; got 3$"),
    ({"uplink": "top_k"}, r"^uplink: groups and their links expected, for example \{update: .*; got 'top_k'$"),
    (
        {"uplink": {"buffers": "dense"}, "buffers": "as_weights"},
        r"^uplink\.buffers: plain conflicts with buffers: as_weights, .* through the link of update; "
        r"drop uplink\.buffers, or set buffers: dense$",
    ),
    ({"downlink": {"counters": "delta"}}, r"^downlink\.counters: delta is refused, .* choose a codec alone"),
    ({"uplink": {"updat": "top_k"}}, r"^uplink\.updat: method fedavg sends no such group; .* 'update'\?$"),
    ({"downlink": {"update": "dense"}}, r"^downlink\.update: method fedavg sends no such group; .*model"),
    ({"downlink": {"model": "top_k"}}, r"^downlink\.model: top_k would set the coordinates it drops to zero; send"),
    (
        {"uplink": {"update": "error_feedback"}, "buffers": "as_weights"},
        r"^uplink\.update: error_feedback with buffers: as_weights is refused, .*; set buffers: dense$",
    ),
    # what the parts cannot see for themselves
    (
        {"rounds": {"cohort": 7}},
        r"^rounds\.cohort is 7, but task\.clients is 6; set rounds\.cohort to at most 6, or raise task\.clients$",
    ),
    (
        {"rounds": {"patience": 2}, "task": {"validation": 0}},
        r"^rounds\.patience .*task\.validation is 0; hold out .*task\.validation: 0\.1.*drop rounds\.patience$",
    ),
    ({"checkpoint_every": 0}, r"^checkpoint_every must be at least 1, got 0$"),
    ({"seed": -1}, r"^seed must not be negative, got -1$"),
    ({"rounds": {"count": 0}}, r"^rounds\.count must be at least 1, got 0$"),
    ({"rounds": {"cohort": 0}}, r"^rounds\.cohort must be at least 1, got 0$"),
    ({"rounds": {"evaluate_every": 0}}, r"^rounds\.evaluate_every must be at least 1, got 0$"),
    ({"rounds": {"patience": 0}}, r"^rounds\.patience must be at least 1, got 0$"),
    # parts of parts
    (
        {"method": {"name": "dg_fedreuse", "gate": {"name": "proxy", "quota": 1.5}}},
        r"^method\.gate\.quota must be in \[0, 1\], got 1\.5$",
    ),
    (
        {"method": {"name": "dg_fedreuse", "gate": {"name": "age_only", "max_age": 0}}},
        r"^method\.gate\.max_age must be at least 1, got 0$",
    ),
    ({"method": {"name": "dg_fedreuse", "rho": 1.1}}, r"^method\.rho must be in \[0, 1\], got 1\.1$"),
    ({"method": {"name": "fedprox", "mu": -1}}, r"^method\.mu must not be negative, got -1"),
    ({"network": {"name": "cnn", "width": 0}}, r"^network\.width must be at least 1, got 0$"),
    ({"local": {"batch": 1}}, r"^local\.batch must be at least 2, because .* variance .*, got 1$"),
    ({"faults": {"name": "random", "lost": 2}}, r"^faults: random\.lost must be between 0 and 1, got 2"),
    (
        {"rounds": {"availability": {"name": "probability", "p": 3}}},
        r"^rounds\.availability: probability\.p must be between 0 and 1, got 3",
    ),
    ({"task": {"clients": 0}}, r"^task\.clients must be at least 1, got 0$"),
]


@pytest.mark.parametrize(("parts", "message"), REFUSED)
def test_a_refusal_names_the_place_the_value_and_the_way_out(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        tiny(**parts)


def test_a_run_without_a_task_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^task: missing, and it has no default; give it a value$"):
        load({})


def test_edges_that_are_allowed() -> None:
    config = tiny(
        uplink={"update": {"name": "top_k", "ratio": 1}},
        rounds={"cohort": 6, "patience": 1, "count": 1},
        method={"name": "dg_fedreuse", "rho": 1, "gate": {"name": "proxy", "quota": 1, "max_age": 1}},
        seed=0,
    )
    assert config.uplink["update"] == Plain(TopK(1.0))
    assert config.rounds.cohort == config.task.clients


def test_error_feedback_goes_with_dense_buffers_and_codecs_with_both() -> None:
    assert tiny(uplink={"update": "error_feedback"}).buffers == "dense"
    assert tiny(uplink={"update": {"name": "top_k"}}, buffers="as_weights").buffers == "as_weights"


def test_memory_is_refused_on_buffers_even_if_the_codec_drops_nothing() -> None:
    with pytest.raises(ConfigError, match="error_feedback with buffers: as_weights is refused"):
        tiny(uplink={"update": {"name": "error_feedback", "codec": "dense"}}, buffers="as_weights")


def test_evaluated_rounds() -> None:
    rounds = Rounds(count=12, evaluate_every=5)
    # the first, every fifth, and the last
    assert [number for number in range(1, 13) if rounds.is_evaluated(number)] == [1, 5, 10, 12]


# the object


def test_a_configuration_is_frozen_and_compared_by_what_it_says() -> None:
    assert tiny() == tiny()
    assert tiny() != tiny(seed=6)
    with pytest.raises(FrozenInstanceError):
        tiny().seed = 3  # type: ignore[misc]


def test_under_as_weights_buffers_take_the_updates_link() -> None:
    dense, sparse = (
        tiny(uplink={"update": "top_k"}, buffers=policy).build_method() for policy in ("dense", "as_weights")
    )
    assert dense.uplink == {"update": Plain(TopK())}
    assert sparse.uplink == dict.fromkeys(("update", "buffers", "counters"), Plain(TopK()))
    assert tiny(buffers="as_weights").build_method().uplink == dict.fromkeys(("buffers", "counters"), Plain(Dense()))


def test_the_label_tells_method_task_seed_and_identity() -> None:
    config = tiny()
    assert config.label == f"fedavg-synthetic-s5-{config.run_id}"


def test_parts_of_ones_own(own: str) -> None:
    config = load(
        {
            "task": {"name": f"{own}:Dataset", "size": 9, "loss": {"name": f"{own}:loss", "power": 3},
                     "metric": f"{own}:metric", "clients": 12},
            "network": {"name": f"{own}:Net", "units": 5},
        }
    )  # fmt: skip
    tree = config.to_plain()
    assert (tree["task"]["name"], tree["task"]["size"]) == (f"{own}:Dataset", 9)
    assert tree["task"]["loss"] == {"name": f"{own}:loss", "power": 3}
    assert tree["task"]["metric"] == {"name": f"{own}:metric"}
    assert tree["network"] == {"name": f"{own}:Net", "units": 5}
    assert load(tree).run_id == config.run_id
    assert load(tree, ["network.units=6"]).run_id != config.run_id
    assert config.label.startswith(f"fedavg-{own}.Dataset-s101-")
    with pytest.raises(ConfigError, match=r"^network\.name: 'own_parts' has no 'Nett'; did you mean 'Net'\?$"):
        load({**tree, "network": f"{own}:Nett"})
    with pytest.raises(
        ConfigError, match=r"^network\.name: cannot import 'own_pats' .*; run from the folder that holds it, or"
    ):
        load({**tree, "network": "own_pats:Net"})


# the resolved tree and the identity

VARIETY: list[dict[str, Any]] = [
    {},
    {"method": {"name": "fedprox", "mu": 0.25}, "uplink": {"update": {"name": "top_k", "ratio": 0.05}}},
    {"method": "dg_fedreuse", "uplink": {"update": "nonzero"}, "buffers": "as_weights"},
    {"method": {"name": "dg_fedreuse", "gate": {"name": "quantile", "fraction": 0.25}, "cover_lost": True}},
    {"uplink": {"update": {"name": "error_feedback", "codec": {"name": "top_k", "ratio": 0.1}, "decay": 0.5}}},
    {"downlink": {"model": "error_feedback"}, "network": {"name": "mlp", "hidden": [4, 3]}},
    {"faults": {"name": "random", "lost": 0.2}, "rounds": {"availability": {"name": "probability", "p": 0.5}}},
    {"faults": {"name": "listed", "entries": [{"round": 1, "client": 2, "fate": "late"}]}, "client_store": "disk"},
    {"local": {"optimizer": {"name": "adam"}, "lr_schedule": {"name": "cosine", "rounds": 4}, "clip_norm": 1.0}},
    {"executor": {"name": "serial", "mode": "strict"}, "checkpoint_every": 3, "rounds": {"patience": 2}},
]


@pytest.mark.parametrize("parts", VARIETY)
def test_the_resolved_tree_is_the_configuration_again(parts: dict[str, Any]) -> None:
    config = tiny(**parts)
    tree = config.to_plain()
    assert load(tree) == config
    assert load(tree).to_plain() == tree
    assert load(tree).run_id == config.run_id
    through_yaml = yaml.safe_load(yaml.safe_dump(tree, sort_keys=False))
    assert load(through_yaml).run_id == config.run_id
    assert json.loads(json.dumps(tree)) == json.loads(json.dumps(through_yaml))


def test_every_variety_has_its_own_identity() -> None:
    ids = [tiny(**parts).run_id for parts in VARIETY]
    assert len(set(ids)) == len(ids)
    assert all(len(run_id) == 12 for run_id in ids)


def test_every_default_is_written_out() -> None:
    tree = load({"task": {"name": "digits"}}).to_plain()
    assert tree["seed"] == 101
    assert tree["task"]["clients"] == 50
    assert tree["local"]["optimizer"] == {"name": "sgd", "lr": 0.05, "momentum": 0.9, "weight_decay": 1e-4}
    assert tree["rounds"] == {
        "count": 90, "cohort": 10, "evaluate_every": 5, "patience": None, "availability": {"name": "always"},
        "deadline": None, "wait_for": None,
    }  # fmt: skip
    assert tree["network"] == {"name": "cnn", "width": 32, "hidden": 128, "norm": "batch"}
    assert list(tree) == list(RunConfig.__dataclass_fields__)


def test_a_default_written_out_is_the_same_run() -> None:
    assert tiny(buffers="dense", method={"name": "fedavg", "server_lr": 1.0}).run_id == tiny().run_id
    assert (
        tiny(uplink={"update": {"name": "plain", "codec": "top_k"}}).run_id == tiny(uplink={"update": "top_k"}).run_id
    )


@pytest.mark.parametrize("parts", [{"executor": {"name": "serial", "mode": "strict"}}, {"checkpoint_every": 7}])
def test_how_a_run_is_carried_out_is_no_part_of_its_identity(parts: dict[str, Any]) -> None:
    assert tiny(**parts).run_id == tiny().run_id
    assert tiny(**parts) != tiny()


@pytest.mark.parametrize(
    "parts",
    [{"seed": 6}, {"rounds": {"count": 5}}, {"rounds": {"evaluate_every": 1}}, {"local": {"batch": 8}},
     {"method": "fedprox"}, {"uplink": {"update": "top_k"}}, {"buffers": "as_weights"}, {"task": {"validation": 0.2}},
     {"network": "mlp"}, {"faults": "random"}, {"downlink": {"model": "nonzero"}}],
)  # fmt: skip
def test_what_decides_the_result_decides_the_identity(parts: dict[str, Any]) -> None:
    assert tiny(**parts).run_id != tiny().run_id


def test_a_mapping_without_a_name_changes_the_default_part() -> None:
    assert tiny(method={"name": "dg_fedreuse", "gate": {"quota": 0.5}}) == tiny(
        method={"name": "dg_fedreuse", "gate": {"name": "proxy", "quota": 0.5}}
    )


# overrides


def test_overrides_are_read_as_yaml() -> None:
    config = tiny("rounds.count=30", "local.optimizer.lr=1e-4", "method=fedprox", "uplink.update.name=top_k",
                  "uplink.update.ratio=0.1", "task.partition=iid", "rounds.patience=null")  # fmt: skip
    assert config.rounds.count == 30
    assert config.local.optimizer.lr == 1e-4
    assert config.method == FedProx()
    assert config.uplink["update"] == Plain(TopK(0.1))
    assert config.task.to_plain()["partition"]["name"] == "iid"
    assert config.rounds.patience is None


def test_the_default_cohort_is_10_or_all_clients() -> None:
    def cohort(clients: int, **rounds: int) -> int:
        return load({"task": {"name": "digits", "clients": clients}, "rounds": rounds}).rounds.cohort

    assert [cohort(clients) for clients in (3, 10, 40)] == [3, 10, 10]
    assert cohort(40, count=2) == 10
    assert cohort(6, clients_per_round=4) == 4
    assert load({"task": {"name": "digits", "clients": 40}}, ["task.clients=3"]).rounds.cohort == 3


def test_clients_per_round_is_an_alias_of_cohort() -> None:
    named = load({**plain(), "rounds": {"cohort": 4}})
    aliased = load({**plain(), "rounds": {"clients_per_round": 4}})
    assert aliased == named
    assert aliased.run_id == named.run_id
    assert "clients_per_round" not in aliased.to_plain()["rounds"]
    assert load({**plain(), "rounds": {"cohort": 4}}, ["rounds.clients_per_round=3"]).rounds.cohort == 3
    assert load({**plain(), "rounds": {"clients_per_round": 4}}, ["rounds.cohort=3"]).rounds.cohort == 3
    with pytest.raises(ConfigError, match=r"rounds\.clients_per_round is an alias of rounds\.cohort"):
        load({**plain(), "rounds": {"cohort": 4, "clients_per_round": 4}})


def test_overrides_leave_the_mapping_alone_and_apply_in_order() -> None:
    before = plain()
    changed = with_overrides(before, ["rounds.count=3", "rounds.count=9"])
    assert changed["rounds"]["count"] == 9
    assert before["rounds"]["count"] == 4


def test_a_key_of_a_part_given_by_name_alone() -> None:
    tree = with_overrides({"method": "dg_fedreuse"}, ["method.rho=0.5", "method.gate.name=quantile"])
    assert tree == {"method": {"name": "dg_fedreuse", "rho": 0.5, "gate": {"name": "quantile"}}}


def test_another_name_drops_the_keys_of_the_part_it_replaces() -> None:
    tree = plain(method={"name": "dg_fedreuse", "rho": 0.5, "gate": {"name": "proxy", "tau_start": 1.0}})
    for override in ("method=fedprox", "method.name=fedprox"):
        assert load(tree, [override]).method == FedProx()
    for override in ("method.gate=age_only", "method.gate.name=age_only"):
        method = load(tree, [override]).method
        assert isinstance(method, DgFedReuse)
        assert method.rho == 0.5  # the keys around it stay
        assert method.gate.max_age == 4  # type: ignore[attr-defined]
    same = load(tree, ["method.name=dg_fedreuse"]).method
    assert isinstance(same, DgFedReuse)
    assert same.rho == 0.5  # the same name changes nothing


def test_another_dataset_keeps_the_federation() -> None:
    task = tiny("task.name=digits").task
    assert task.clients == 6
    assert type(task.dataset).__name__ == "Digits"
    assert tiny("task.name=digits", task={"partition": "iid", "validation": 0.3}).task.validation == 0.3
    assert tiny("task=digits", task={"partition": "iid"}).to_plain()["task"]["name"] == "digits"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("rounds.count", r"^'rounds\.count' is not an override; write key=value, for example rounds\.count=30$"),
        ("=3", r"^'=3' is not an override; write key=value"),
        ("seed.deep=3", r"^seed\.deep: 'seed' holds 5, which has no keys of its own$"),
        ("rounds.cout=3", r"^rounds\.cout: unknown key; did you mean 'count'\?$"),
        ("sed=3", r"^sed: unknown key; did you mean 'seed'\?$"),
        ("rounds.count=many", r"^rounds\.count: .*integer.*, got 'many'$"),
        ("uplink.update=[top_k", r"uplink\.update=\[top_k.*not valid YAML"),
        ("seed={a: 1, a: 2}", r"seed=\{a: 1, a: 2\}.*not valid YAML"),
        ("seed=2024-01-01", r"^seed: .*integer.*, got .*2024"),
    ],
)
def test_overrides_that_are_refused(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        tiny(override)


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(count=st.integers(1, 10**6), lr=st.floats(1e-9, 1e3), seed=st.integers(0, 2**63 - 1))
def test_numbers_survive_an_override(count: int, lr: float, seed: int) -> None:
    config = tiny(f"rounds.count={count}", f"local.optimizer.lr={lr!r}", f"seed={seed}")
    assert (config.rounds.count, config.local.optimizer.lr, config.seed) == (count, lr, seed)


# files


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "run.yaml", yaml.safe_dump(plain()))
    assert load(path) == load(str(path)) == tiny()
    assert load(path, ["seed=9"]).seed == 9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task: [", r"(?s)bad\.yaml: not valid YAML:\n.*bad\.yaml\", line 1.*\n +\^"),
        ("- a\n- b\n", r"bad\.yaml: a mapping of keys to values expected, got list"),
        ("", r"bad\.yaml: a mapping of keys to values expected, got NoneType"),
        ("just words", r"bad\.yaml: a mapping of keys to values expected, got str"),
        ("? [1, 2]\n: 3\n", r"(?s)bad\.yaml: not valid YAML:\n.*"),
        (
            "x: !!python/object/apply:os.getcwd []",
            r"(?s)bad\.yaml: not valid YAML:\n.*could not determine a constructor",
        ),
        ("task: {name: digits}\nseed: 2024-01-01\n", r"^seed: .*integer.*, got .*2024"),
        ("task: {name: digits}\n7: 3\n", r"^7: unknown key"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(write(tmp_path / "bad.yaml", text))


def test_building_a_configuration_reads_no_data(own: str) -> None:
    config = load({"task": {"name": f"{own}:Dataset", "clients": 12}, "method": "dg_fedreuse"})
    config.build_method()  # the dataset would raise
    assert isinstance(tiny(uplink={"update": "error_feedback"}).uplink["update"], ErrorFeedback)


def test_a_bound_on_examples_decides_a_run_only_where_there_is_one() -> None:
    plain = tiny().to_plain()
    del plain["max_examples"]
    assert load(plain).run_id == tiny().run_id
    assert tiny("max_examples=3").run_id != tiny().run_id
    with pytest.raises(ConfigError, match="max_examples must be at least 1"):
        tiny("max_examples=0")


def test_a_norm_bound_decides_a_run_only_where_there_is_one() -> None:
    plain = tiny().to_plain()
    del plain["max_norm"]
    assert load(plain).run_id == tiny().run_id
    assert tiny("max_norm=3").run_id != tiny().run_id
    assert tiny("max_norm=3").build_method().max_norm == 3
    with pytest.raises(ConfigError, match="max_norm must be positive"):
        tiny("max_norm=0")


@pytest.mark.parametrize("source", [None, 5, ["task"]])
def test_what_is_neither_a_path_nor_a_mapping_is_named(source: Any) -> None:
    with pytest.raises(ConfigError, match="path of a YAML file or a mapping of its keys expected, got "):
        load(source)


def test_a_configuration_is_not_read_again() -> None:
    with pytest.raises(ConfigError, match=r"already; run\(\) takes it"):
        load(tiny())  # type: ignore[arg-type]
