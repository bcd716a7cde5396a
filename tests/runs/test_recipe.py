"""A recipe: a method and its links, checked together and built alike at both ends."""

from __future__ import annotations

import pytest

from fedreuse.codecs.top_k import TopK
from fedreuse.core.errors import ConfigError
from fedreuse.core.registry import parse
from fedreuse.links.error_feedback import ErrorFeedback
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


def test_a_codec_alone_travels_plainly_where_the_method_has_no_link() -> None:
    assert isinstance(Recipe(uplink=parse_links({"update": TOP_K}, "uplink")).build().uplink["update"], Plain)


def test_a_codec_alone_enters_the_methods_own_link_and_the_method_says_so() -> None:
    recipe = parse(Recipe, {"method": "fed_ef", "uplink": {"update": TOP_K}}, "")
    assert recipe.uplink["update"] == ErrorFeedback(TopK(0.1))
    assert recipe.to_plain()["method"]["codec"] == TOP_K
    assert parse(Recipe, recipe.to_plain(), "") == recipe


def test_null_is_the_methods_own() -> None:
    own = parse(Recipe, {"method": "laq"}, "")
    for uplink in (None, {"update": None}):
        assert parse(Recipe, {"method": "laq", "uplink": uplink}, "") == own


def test_a_stored_link_stays_what_it_was() -> None:
    """Run directories of the past hold plain links under methods that have one of their own."""
    plain = {"method": "ef21", "uplink": {"update": {"name": "plain", "codec": TOP_K}}}
    assert parse(Recipe, plain, "").uplink["update"] == Plain(TopK(0.1))


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
        ({"method": "stc_up", "uplink": {"update": TOP_K}}, r"uplink\.update: the codec .*top_k.*conflicts.*stc_up"),
        ({"method": "docofl", "downlink": {"anchor": {"name": "qsgd"}}}, r"downlink\.anchor: the codec .*qsgd.*docofl"),
        ({"uplink": "top_k"}, r"uplink: groups and their links expected"),
    ],
)
def test_what_cannot_go_together_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(Recipe, changes, "")
