"""Differences to the initial model: by hand, equal to a first difference of `delta`, without state."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedreuse.compression.codecs.rand_k import RandK
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.delta import Delta
from fedreuse.compression.links.from_initial import FromInitial
from fedreuse.core.errors import ConfigError, NotHeld
from fedreuse.core.method import LinkContext
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal
from fedreuse.testing.quadratic import QuadraticFederation, Setting
from tests.federation import NOISY, build, is_same

SCHEMA = Schema((TensorSpec("w", (4,)),))
CONTEXT = LinkContext(SCHEMA, 2, 0, np.random.default_rng(0), initial=Tensors(SCHEMA, np.float32([1, 1, 1, 1])))


def test_a_message_by_hand() -> None:
    link = FromInitial(TopK(0.5))
    parcel, state = link.send(Tensors(SCHEMA, np.float32([4, 1, -1, 2])), None, CONTEXT)
    received, held = link.receive(parcel, None, CONTEXT)
    assert received["w"].tolist() == [4, 1, -1, 1]  # 3 and -2 are the largest differences
    assert state is held is None
    assert not link.has_memory
    assert is_equal(received, Delta(TopK(0.5), start="initial").receive(parcel, None, CONTEXT)[0])


def test_another_initial_model_is_noticed() -> None:
    parcel, _ = FromInitial(TopK(0.5)).send(Tensors(SCHEMA, np.float32([4, 1, -1, 2])), None, CONTEXT)
    other = replace(CONTEXT, initial=Tensors(SCHEMA, np.float32([1, 1, 1, 0])))
    with pytest.raises(NotHeld):
        FromInitial(TopK(0.5)).receive(parcel, None, other)


def test_a_run_whose_clients_are_asked_once_equals_delta() -> None:
    federation = QuadraticFederation.draw(8, NOISY)
    links = ({"name": "from_initial", "codec": "dense"}, {"name": "delta", "codec": "dense", "start": "initial"})
    one, other = (federation.play(build("fedavg", downlink=link), 2, Setting(cohort=4)) for link in links)
    assert is_same(one.models[1], other.models[1])
    assert not one.record.contacts or all(not contact.downlink for contact in one.record.contacts.values())


def test_an_expanding_codec_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"from_initial\.codec must be contractive"):
        FromInitial(RandK(0.1))
