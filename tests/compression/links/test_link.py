"""How a configuration names a link: by its own name, or by a codec that is then sent plainly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from fedreuse.compression.codecs.codec import Codec
from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.error_feedback import ErrorFeedback
from fedreuse.compression.links.link import links, parse_link
from fedreuse.compression.links.plain import Plain
from fedreuse.compression.wire.parcel import Parcel
from fedreuse.core.errors import ConfigError
from fedreuse.core.registry import named_plain
from fedreuse.core.schema import Schema
from fedreuse.core.tensors import Tensors, scale


def test_links_and_codecs() -> None:
    assert parse_link("dense", "uplink.update") == Plain()
    assert parse_link({"name": "top_k", "ratio": 0.5}, "uplink.update") == Plain(TopK(0.5))
    assert parse_link({"name": "plain", "codec": {"name": "top_k", "ratio": 0.5}}, "u") == Plain(TopK(0.5))
    assert parse_link("error_feedback", "u") == ErrorFeedback(TopK(0.2))
    assert {"plain", "error_feedback"} <= set(links.names())


@dataclass(frozen=True)
class Halves(Codec):
    """A codec of a user: every coordinate is halved."""

    @property
    def drops_coordinates(self) -> bool:
        return False

    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
        return Dense().encode(scale(tensors, 0.5), schema, rng)


def test_a_codec_of_ones_own_is_a_plain_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDREUSE_ALLOW", "tests")
    link = parse_link({"name": f"{__name__}:Halves"}, "uplink.update")
    assert isinstance(link, Plain)
    assert type(link.codec).__name__ == "Halves"
    assert parse_link(named_plain(links, link), "uplink.update") == link


@pytest.mark.parametrize("link", [Plain(), Plain(TopK(0.5)), ErrorFeedback(TopK(0.1), 0.5)])
def test_written_back_it_is_the_same_link(link: object) -> None:
    assert parse_link(named_plain(links, link), "u") == link


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("topk", r"^u: 'topk' is neither a link nor a codec; did you mean 'top_k'\?$"),
        ({"ratio": 0.2}, r"^u: a name is missing, for example \{name: top_k, ratio: 0\.2\}; got \{'ratio': 0\.2\}$"),
        (3, r"^u: a name is missing"),
        ({"name": "top_k", "ratio": 0}, r"^u: top_k\.ratio must be in \(0, 1\], got 0\.0$"),
        ({"name": "top_k", "ratio": 1.5}, r"^u: top_k\.ratio must be in \(0, 1\], got 1\.5$"),
        ({"name": "top_k", "ratoi": 1}, r"^u\.ratoi: unknown key; did you mean 'ratio'\?$"),
        ({"name": "error_feedback", "decay": 2}, r"^u: error_feedback\.decay must be in \(0, 1\], got 2\.0$"),
    ],
)
def test_mistakes(spec: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_link(spec, "u")
