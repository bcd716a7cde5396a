"""The schema accepts what the program accepts: every shipped file; and refuses what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from fedreuse.config.catalog import registries
from fedreuse.config.json_schema import file_schema, run_schema, space_schema, study_schema
from fedreuse.config.run_config import load, read_yaml
from fedreuse.config.shipped import shipped_configs
from fedreuse.core.registry import named_plain

RUN, STUDY = Draft202012Validator(run_schema()), Draft202012Validator(study_schema())
SPACE = Draft202012Validator(space_schema())
FILE = Draft202012Validator(file_schema())
MARK = "# yaml-language-server: $schema="
OTHERS = ("confirm/", "tune/")
"""Studies whose files are kept as they were registered."""
PLAIN: dict[str, Any] = {"task": {"name": "digits"}}


@pytest.mark.slow
def test_they_are_schemas() -> None:
    Draft202012Validator.check_schema(run_schema())
    Draft202012Validator.check_schema(study_schema())
    Draft202012Validator.check_schema(space_schema())
    Draft202012Validator.check_schema(file_schema())


@pytest.mark.parametrize("name", shipped_configs())
def test_every_shipped_file_is_valid(name: str) -> None:
    file: Path = shipped_configs()[name]
    plain = read_yaml(file)
    validator = SPACE if plain.keys() & {"space", "from"} else STUDY if "axes" in plain else RUN
    assert [error.message for error in validator.iter_errors(plain)] == []
    assert FILE.is_valid(plain)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in shipped_configs() if not name.startswith(OTHERS)])
def test_every_shipped_file_leads_an_editor_to_the_shipped_schema(name: str) -> None:
    file: Path = shipped_configs()[name]
    first = file.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith(MARK)
    schema = file.parent / first.removeprefix(MARK)
    assert json.loads(schema.read_text(encoding="utf-8")) == file_schema(), "a part changed; `make tables` renews it"


def test_the_schema_of_all_files_tells_them_apart() -> None:
    for validator, plain in ((RUN, PLAIN), (STUDY, {"base": PLAIN, "axes": {"seed": [1]}}), (SPACE, {"from": "a"})):
        assert FILE.is_valid(plain) == validator.is_valid(plain)
        assert not FILE.is_valid({**plain, "trails": 3})


def test_a_space_that_names_no_base_or_a_key_that_is_none_is_refused() -> None:
    assert SPACE.is_valid({"base": "a.yaml", "space": {"local.batch": [8, 16]}})
    assert not SPACE.is_valid({"space": {"local.batch": [8, 16]}})
    assert not SPACE.is_valid({"from": "a.yaml", "trails": 3})


@pytest.mark.parametrize("name", ["digits", "paper/cifar10"])
def test_a_resolved_configuration_is_valid(name: str) -> None:
    assert RUN.is_valid(load(name).to_plain())


@pytest.mark.parametrize(
    "part",
    [
        {"method": {"name": "dg_fedreuse", "gate": {"quota": 0.5}}},
        {"method": "my.module:Method"},
        {"network": {"name": "my.module:Net", "depth": 3}},
        {"uplink": {"update": {"name": "error_feedback", "codec": "top_k"}}},
        {"uplink": None},
    ],
)
def test_what_may_be_written(part: dict[str, Any]) -> None:
    assert RUN.is_valid({**PLAIN, **part})


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {**PLAIN, "methodd": "fedavg"},
        {**PLAIN, "method": "fedavgg"},
        {**PLAIN, "method": {"name": "fedavg", "mu": 1}},
        {**PLAIN, "rounds": {"count": "many"}},
        {"task": {"name": "digits", "clientz": 3}},
        {**PLAIN, "uplink": {"update": {"name": "top_k", "ration": 0.2}}},
    ],
)
def test_what_is_refused(wrong: dict[str, Any]) -> None:
    assert not RUN.is_valid(wrong)


@pytest.mark.parametrize(("kind", "key"), [("methods", "method"), ("codecs", "uplink")])
def test_defaults_are_within_the_ranges_that_editors_are_told(kind: str, key: str) -> None:
    registry = registries[kind]
    for name in registry.names():
        plain = named_plain(registry, registry.parse(name, key))
        run = {"task": {"name": "digits"}, key: plain if key == "method" else {"update": plain}}
        assert [error.message for error in RUN.iter_errors(run)] == [], name
