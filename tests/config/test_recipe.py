"""A recipe: a method and its links, checked together and built alike at both ends."""

from __future__ import annotations

import pytest

from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.codecs.narrow import Narrow
from fedreuse.compression.codecs.nonzero import Nonzero
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.error_feedback import ErrorFeedback
from fedreuse.compression.links.plain import Plain
from fedreuse.config.recipe import Recipe, parse_links
from fedreuse.core.errors import ConfigError
from fedreuse.core.registry import parse
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Setting

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


def test_buffers_take_a_link_of_their_own_in_both_directions() -> None:
    narrow = {"name": "narrow", "codec": "dense", "values": "bf16"}
    plain = {"method": "fed_ef", "uplink": {"buffers": narrow}, "downlink": {"buffers": narrow, "counters": "nonzero"}}
    recipe = parse(Recipe, plain, "")
    method = recipe.build()
    assert method.uplink == {"update": ErrorFeedback(TopK(0.2)), "buffers": Plain(Narrow(Dense(), "bf16"))}
    assert method.downlink == {"buffers": Plain(Narrow(Dense(), "bf16")), "counters": Plain(Nonzero())}
    assert parse(Recipe, recipe.to_plain(), "") == recipe
    beside = parse(Recipe, {"buffers": "as_weights", "downlink": {"buffers": narrow}}, "")  # says nothing of the way up
    assert beside.build().uplink["buffers"] == Plain(Dense())


def test_the_two_names_are_links_that_could_be_spelt_out() -> None:
    spelt = parse(Recipe, {"uplink": dict.fromkeys(("update", "buffers", "counters"), TOP_K)}, "").build()
    named = parse(Recipe, {"uplink": {"update": TOP_K}, "buffers": "as_weights"}, "").build()
    assert spelt.uplink == named.uplink
    assert parse(Recipe, {"buffers": "dense"}, "").to_plain()["uplink"] == {}  # run ids of before stay


def test_bytes_of_a_round_with_narrow_buffers_by_hand() -> None:
    """Two statistics of three float64 numbers each: 48 bytes dense, 2 * 6 = 12 in bf16; a counter of 8 bytes."""
    narrow = {"name": "narrow", "codec": "dense", "values": "bf16"}
    federation = QuadraticFederation.draw(3, QuadraticTraining())
    for links, sent in (({}, 48), ({"buffers": narrow}, 12)):
        method = parse(Recipe, {"uplink": links, "downlink": links}, "").build()
        rows = federation.play(method, 1, Setting(cohort=3)).ledger.rows
        assert {row.group_bytes("buffers") for row in rows} == {sent}
        assert {row.group_bytes("counters") for row in rows} == {8}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"uplink": {"control": TOP_K}}, r"uplink\.control: method fedavg sends no such group"),
        (
            {"uplink": {"buffers": "error_feedback"}},
            r"uplink\.buffers: error_feedback is refused.*variances.*codec alone",
        ),
        ({"downlink": {"buffers": "delta"}}, r"downlink\.buffers: delta is refused.*variances turns them negative"),
        ({"uplink": {"counters": {"name": "packed", "link": "laq"}}}, r"uplink\.counters: packed is refused"),
        ({"uplink": {"buffers": TOP_K}, "buffers": "as_weights"}, r"drop uplink\.buffers, or set buffers: dense"),
        ({"downlink": {"buffers": TOP_K}}, r"downlink\.buffers: top_k would set .* to zero; choose a codec that keeps"),
        (
            {"downlink": {"buffers": {"name": "packed", "link": {"name": "plain", "codec": TOP_K}}}},
            r"downlink\.buffers: top_k would set the coordinates it drops to zero",
        ),
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
