"""How a configuration names a link: by its own name, or by a codec that is then sent plainly."""

from __future__ import annotations

import pytest

from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.error_feedback import ErrorFeedback
from fedreuse.compression.links.link import links, parse_link
from fedreuse.compression.links.plain import Plain
from fedreuse.core.errors import ConfigError
from fedreuse.core.registry import named_plain


def test_links_and_codecs() -> None:
    assert parse_link("dense", "uplink.update") == Plain()
    assert parse_link({"name": "top_k", "ratio": 0.5}, "uplink.update") == Plain(TopK(0.5))
    assert parse_link({"name": "plain", "codec": {"name": "top_k", "ratio": 0.5}}, "u") == Plain(TopK(0.5))
    assert parse_link("error_feedback", "u") == ErrorFeedback(TopK(0.2))
    assert {"plain", "error_feedback"} <= set(links.names())


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
