"""Run ids: the same from the object and from its file; what decides no result is no part of them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from fedreuse.store.identity import run_id_of
from tests.tiny import tiny

OTHERS: list[dict[str, Any]] = [
    {"executor": {"name": "serial", "mode": "strict"}},
    {"test": "sealed", "keep": {"checkpoints": 2}},
    {"checkpoint_every": 3, "server_store": "disk", "development_seeds": [1]},
]


def test_the_file_has_the_id_of_the_object() -> None:
    for config in (tiny(), tiny(keep={"model": "best"}), tiny(max_norm=3.0), tiny(method="dg_fedreuse")):
        assert run_id_of(yaml.safe_load(yaml.safe_dump(config.to_plain()))) == config.run_id
    assert len({tiny().run_id, tiny(keep={"model": "best"}).run_id, tiny(max_norm=3.0).run_id}) == 3


@pytest.mark.parametrize("parts", OTHERS)
def test_what_decides_no_result_is_no_part_of_it(parts: dict[str, Any]) -> None:
    assert tiny(**parts).run_id == tiny().run_id
    assert tiny(seed=6).run_id != tiny().run_id
