"""The agreement: told once, the same at both ends, and nothing in it is ever imported."""

from __future__ import annotations

import json
from typing import Any

import pytest

import fedreuse
from fedreuse.config.recipe import Recipe
from fedreuse.core.errors import ConfigError, WireError
from fedreuse.core.registry import parse
from fedreuse.deploy.existing_app.agreement import Agreement
from fedreuse.deploy.existing_app.array_layout import ArrayLayout
from tests.conformance.cases import CASES

LAYOUT = ArrayLayout((("fc.weight", (2, 3), "float32"), ("steps", (), "int64")))


def agreement(**plain: Any) -> Agreement:
    return Agreement(parse(Recipe, plain, ""), LAYOUT, 7, "model", "n")


@pytest.mark.parametrize("case", CASES[:60], ids=lambda case: case.id)
def test_what_is_told_is_what_is_heard(case: Any) -> None:
    uplink = {"update": case.uplink} if case.uplink is not None else {}
    told = agreement(method={"name": case.method, **case.options}, uplink={**uplink, **case.other_uplinks})
    assert Agreement.from_bytes(told.to_bytes()) == told


@pytest.mark.parametrize(
    "recipe",
    [
        {"method": {"name": "os:system"}},
        {"method": "fedavg", "uplink": {"update": {"name": "error_feedback", "codec": {"name": "os:system"}}}},
        {"method": {"name": "movement", "inner": {"name": "tests.tiny:tiny"}}},
    ],
)
def test_a_client_imports_nothing_that_a_server_names(recipe: dict[str, Any]) -> None:
    plain = json.loads(agreement().to_bytes())
    with pytest.raises(WireError, match="a client imports nothing that a server names"):
        Agreement.from_bytes(json.dumps({**plain, "recipe": recipe}).encode())


def test_a_bare_text_is_a_name_too() -> None:
    plain = json.loads(agreement().to_bytes())
    for recipe in ({"method": "os:system"}, {"uplink": {"update": "os:system"}}):
        with pytest.raises(WireError, match="a client imports nothing that a server names"):
            Agreement.from_bytes(json.dumps({**plain, "recipe": recipe}).encode())


def test_another_version_is_refused() -> None:
    plain = json.loads(agreement().to_bytes())
    with pytest.raises(WireError, match=rf"fedreuse 9 \(wire 1\), this client {fedreuse.__version__}.*same version"):
        Agreement.from_bytes(json.dumps({**plain, "fedreuse": "9"}).encode())


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b"{}", b"null", b'{"fedreuse": 1}'])
def test_what_is_no_agreement(data: bytes) -> None:
    with pytest.raises(WireError, match="not an agreement"):
        Agreement.from_bytes(data)


def test_a_recipe_that_cannot_be_is_refused_in_its_own_words() -> None:
    plain = json.loads(agreement().to_bytes())
    with pytest.raises(ConfigError, match="did you mean 'fedavg'"):
        Agreement.from_bytes(json.dumps({**plain, "recipe": {"method": "fedavgg"}}).encode())
