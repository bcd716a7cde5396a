"""A packed link: the same numbers arrive as through the link inside, in fewer bytes."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.compression.links.error_feedback import ErrorFeedback
from fedreuse.compression.links.laq import Laq
from fedreuse.compression.links.link import links, parse_link
from fedreuse.compression.links.packed import PackedLink
from fedreuse.compression.links.plain import Plain
from fedreuse.core.errors import ConfigError
from fedreuse.core.method import LinkContext
from fedreuse.core.registry import named_plain
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal
from fedreuse.testing.quadratic import QuadraticFederation
from tests.federation import NOISY, build, is_same


def test_the_model_is_the_same_bit_for_bit_and_silence_stays_silence() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    link = {"name": "packed", "link": {"name": "laq", "bits": 3}, "least": 0}
    bare, packed = (
        federation.play(build("laq", uplink, bits=3, xi=5.0, agg="participants"), 8) for uplink in (None, link)
    )
    assert all(is_same(*pair) for pair in zip(bare.models, packed.models, strict=True))
    sent = [
        [bool(row.group_bytes("update")) for row in one.ledger.rows if row.direction == "up"] for one in (bare, packed)
    ]
    assert sent[0] == sent[1]
    assert False in sent[0]


def test_a_long_parcel_gets_shorter() -> None:
    schema = Schema((TensorSpec("w", (9000,), "float32"),))
    # most of the innovation lies in the middle levels: two bits hold less than two bits of news
    numbers = np.random.default_rng(3).standard_t(2, 9000).astype(np.float32)
    context = LinkContext(schema, 1, 0, np.random.default_rng(1))
    plain, _ = Laq(4).send(Tensors(schema, numbers), None, context)
    parcel, _ = PackedLink(Laq(4)).send(Tensors(schema, numbers), None, context)
    assert plain is not None
    assert parcel is not None
    assert parcel.blocks[0].body_bytes < 0.8 * plain.blocks[0].body_bytes
    assert is_equal(PackedLink(Laq(4)).receive(parcel, None, context)[0], Laq(4).receive(plain, None, context)[0])


def test_it_is_what_the_link_inside_is() -> None:
    assert PackedLink(Laq()).has_memory
    assert not PackedLink(Plain()).has_memory
    link = PackedLink(ErrorFeedback())
    assert parse_link(named_plain(links, link), "u") == link
    with pytest.raises(ConfigError, match=r"packed\.least must be at least 0"):
        PackedLink(Laq(), -1)
    with pytest.raises(ConfigError, match=r"u\.link: 'top_k' is not one of the links"):
        parse_link({"name": "packed", "link": "top_k"}, "u")
