"""Which link a group takes: a codec alone never makes another method; what is spelt out stays."""

from __future__ import annotations

from typing import Any

import pytest

from fedreuse.compression.codecs.ecuq import Ecuq
from fedreuse.compression.codecs.packed import Packed
from fedreuse.compression.codecs.qsgd import Qsgd
from fedreuse.compression.codecs.ternary import Ternary
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.choice import BareCodec, check_one_codec, choose_links, parse_wanted
from fedreuse.compression.links.clag import Clag
from fedreuse.compression.links.ef21 import Ef21
from fedreuse.compression.links.error_feedback import ErrorFeedback
from fedreuse.compression.links.laq import Laq
from fedreuse.compression.links.lbgm import Lbgm
from fedreuse.compression.links.packed import PackedLink
from fedreuse.compression.links.plain import Plain
from fedreuse.core.errors import ConfigError
from fedreuse.core.method import Link, MethodConfig, methods

TOP_K = {"name": "top_k", "ratio": 0.1}


def chosen(method: object, spec: object) -> tuple[MethodConfig, Link]:
    """The method, and the link of its updates, for what a configuration says."""
    config, links = choose_links(methods.parse(method, "method"), {"update": parse_wanted(spec, "u")}, "uplink")
    return config, links["update"]


def test_what_a_configuration_says() -> None:
    assert parse_wanted(TOP_K, "u") == BareCodec(TopK(0.1))
    assert parse_wanted("packed", "u") == parse_wanted({"name": "packed"}, "u") == BareCodec(Packed(), is_around=True)
    assert parse_wanted({"name": "packed", "codec": TOP_K}, "u") == BareCodec(Packed(TopK(0.1)))
    assert parse_wanted({"name": "plain", "codec": TOP_K}, "u") == Plain(TopK(0.1))
    assert parse_wanted({"name": "packed", "link": "laq"}, "u") == PackedLink(Laq())


@pytest.mark.parametrize(
    ("method", "link"),
    [
        ("fedavg", Plain(TopK(0.1))),
        ("scaffold", Plain(TopK(0.1))),
        ("fed_ef", ErrorFeedback(TopK(0.1))),
        ({"name": "fed_ef", "decay": 0.5}, ErrorFeedback(TopK(0.1), 0.5)),
        ("ef21", Ef21(TopK(0.1))),
        ({"name": "clag", "zeta": 2.0}, Clag(2.0, TopK(0.1))),
        ("lbgm", Lbgm(codec=TopK(0.1))),
        ({"name": "docofl", "inner": "fed_ef"}, ErrorFeedback(TopK(0.1))),
    ],
)
def test_a_codec_alone_enters_the_methods_own_link(method: object, link: Link) -> None:
    config, found = chosen(method, TOP_K)
    assert found == link
    assert config.default_uplink.get("update", link) == link  # the method tells the same


@pytest.mark.parametrize("method", ["stc_up", "stc_updown", "laq", "fedpaq", {"name": "movement", "inner": "fedpaq"}])
def test_a_codec_that_would_make_another_method_is_refused_with_both_names(method: Any) -> None:
    name = method if isinstance(method, str) else method["name"]
    with pytest.raises(ConfigError, match=rf"uplink\.update: .*top_k.*conflicts with method {name}.*null.*plain"):
        chosen(method, TOP_K)


def test_the_way_out_has_the_codec_that_was_asked_for() -> None:
    with pytest.raises(ConfigError, match=r"\{name: plain, codec: \{name: top_k, ratio: 0\.1\}\}$"):
        chosen("stc_up", TOP_K)


def test_the_methods_own_codec_is_no_conflict() -> None:
    assert chosen("stc_up", {"name": "ternary", "ratio": 0.2})[1] == ErrorFeedback(Ternary(0.2))
    with pytest.raises(ConfigError, match="conflicts"):
        chosen("stc_up", {"name": "ternary", "ratio": 0.1})


@pytest.mark.parametrize(
    ("method", "spec", "link"),
    [
        ("fedavg", "packed", Plain(Packed(TopK(0.2)))),
        ("fed_ef", "packed", ErrorFeedback(Packed(TopK(0.2)))),
        ("fed_ef", {"name": "packed", "codec": TOP_K}, ErrorFeedback(Packed(TopK(0.1)))),
        ("stc_up", "packed", ErrorFeedback(Packed(Ternary(0.2)))),
        ("stc_up", {"name": "packed", "codec": {"name": "ternary", "ratio": 0.2}}, ErrorFeedback(Packed(Ternary(0.2)))),
        ("fedpaq", {"name": "packed", "least": 9}, Plain(Packed(Qsgd(4, 512), 9))),
        ("laq", "packed", PackedLink(Laq())),
        ({"name": "laq", "bits": 2}, {"name": "packed", "least": 0}, PackedLink(Laq(2), 0)),
    ],
)
def test_packed_goes_around_everything(method: object, spec: object, link: Link) -> None:
    assert chosen(method, spec)[1] == link


@pytest.mark.parametrize("method", ["fed_ef", "laq", "stc_up", "fedpaq"])
def test_what_is_spelt_out_replaces_the_methods_own(method: str) -> None:
    config, link = chosen(method, {"name": "plain", "codec": TOP_K})
    assert link == Plain(TopK(0.1))
    assert config == methods.parse(method, "method")


def test_the_way_down() -> None:
    docofl = methods.parse("docofl", "method")
    same = choose_links(docofl, {"anchor": BareCodec(Ecuq(4.0))}, "downlink")[1]
    assert same == dict(docofl.default_downlink)
    with pytest.raises(ConfigError, match=r"downlink\.anchor.*ecuq.*conflicts with method docofl"):
        choose_links(docofl, {"anchor": BareCodec(Ecuq(2.0))}, "downlink")


def test_two_codecs_are_one_too_many() -> None:
    method = {"name": "fed_ef", "codec": {"name": "top_k", "ratio": 0.2}}  # the default, but said
    with pytest.raises(ConfigError, match=r"method\.codec is .*0\.2.*uplink\.update is .*0\.1.*null"):
        check_one_codec({"method": method, "uplink": {"update": TOP_K}})
    with pytest.raises(ConfigError, match=r"method\.inner\.codec is"):
        check_one_codec({"method": {"name": "docofl", "inner": method}, "uplink": {"update": TOP_K}})
    for uplink in (None, {}, {"update": None}, {"update": "packed"}, {"update": method["codec"]},
                   {"update": {"name": "plain", "codec": TOP_K}}):  # fmt: skip
        check_one_codec({"method": method, "uplink": uplink})
    check_one_codec({"method": "fed_ef", "uplink": {"update": TOP_K}})
