"""A link around another one: everything that it does not change is the other link's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.around import AroundLink
from fedreuse.compression.links.broadcast import Broadcast
from fedreuse.compression.links.error_feedback import ErrorFeedback
from fedreuse.compression.links.lbgm import Lbgm
from fedreuse.compression.links.plain import Plain
from fedreuse.core.tensors import is_equal
from tests.compression.links.vectors import context, line, pair, talk


@dataclass(frozen=True)
class Bare(AroundLink):
    """Changes nothing."""


def test_it_is_the_other_link() -> None:
    rng = np.random.default_rng(0)
    updates = [pair(rng.normal(size=10)) for _ in range(6)]
    for link in (ErrorFeedback(TopK(0.3)), Plain(TopK(0.3)), Lbgm()):
        around = Bare(link)
        assert talk(around, updates) == talk(link, updates)
        for ability in ("has_memory", "uses_reference", "drops_coordinates"):
            assert getattr(around, ability) == getattr(link, ability)


def test_what_is_shared_and_delivered_too() -> None:
    link, here = Broadcast(TopK(0.5)), context(line(1, 2).schema)
    assert is_equal(Bare(link).share(line(1, 2), None, here).estimate, link.share(line(1, 2), None, here).estimate)
    feedback = ErrorFeedback(TopK(0.5))
    parcel, state = feedback.send(line(1, 2), None, here)
    assert Bare(feedback).delivered(parcel, state, here)["a"].tolist() == [0, 2]
