"""A recipe: a method and its links, checked together and built alike at both ends."""

from __future__ import annotations

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.core.registry import parse
from fedreuse.links.plain import Plain
from fedreuse.runs.recipe import Recipe, parse_links

TOP_K = {"name": "top_k", "ratio": 0.1}


def test_what_is_written_out_is_the_same_recipe() -> None:
    recipe = parse(Recipe, {"method": "fed_ef", "downlink": {"model": "delta"}}, "")
    plain = recipe.to_plain()
    assert plain["uplink"]["update"]["name"] == "error_feedback"  # the method's own link, written out
    assert plain["downlink"]["model"]["name"] == "delta"
    assert parse(Recipe, plain, "") == recipe
    assert recipe.name == "fed_ef"


def test_a_named_link_replaces_the_methods_own() -> None:
    assert isinstance(Recipe(uplink=parse_links({"update": TOP_K}, "uplink")).build().uplink["update"], Plain)


def test_buffers_as_weights_take_the_updates_link() -> None:
    method = parse(Recipe, {"uplink": {"update": TOP_K}, "buffers": "as_weights"}, "").build()
    assert method.uplink["buffers"] == method.uplink["counters"] == method.uplink["update"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"uplink": {"control": TOP_K}}, r"uplink\.control: method fedavg sends no such group"),
        ({"uplink": {"buffers": TOP_K}}, r"uplink\.buffers: buffers follow the policy `buffers` \(now dense\)"),
        ({"downlink": {"model": TOP_K}}, r"downlink\.model: top_k would set the coordinates it drops to zero"),
        ({"uplink": {"update": "error_feedback"}, "buffers": "as_weights"}, r"with buffers: as_weights is refused"),
        ({"uplink": "top_k"}, r"uplink: groups and their links expected"),
    ],
)
def test_what_cannot_go_together_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(Recipe, changes, "")
