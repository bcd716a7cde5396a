"""Wrappers pass through what they do not change; a client that lost its memory is forgotten inside, too."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.method import methods
from fedreuse.core.population import Population
from fedreuse.methods.wrapper import Wrapper, WrapperServer
from fedreuse.testing.quadratic import QuadraticFederation, Setting
from tests.federation import NOISY, build
from tests.servers import start

INNER = {"name": "dg_fedreuse", "gate": {"name": "age_only", "max_age": 3}}


@pytest.mark.parametrize("name", ["docofl", "movement"])
def test_a_wrapper_says_what_the_inner_method_says(name: str) -> None:
    wrapper = methods.parse({"name": name, "inner": {"name": "scaffold", "wire": "literal"}}, "method")
    assert isinstance(wrapper, Wrapper)
    assert wrapper.uplink_groups == wrapper.inner.uplink_groups == ("update", "control_change")
    assert set(wrapper.downlink_groups) >= {"model", "control"}
    assert not wrapper.is_personal
    assert methods.parse({"name": name, "inner": "ditto"}, "method").is_personal


@pytest.mark.parametrize("name", ["docofl", "movement"])
def test_a_forgotten_client_is_forgotten_inside(name: str) -> None:
    session = QuadraticFederation.draw(4, NOISY).play(build(name, inner=INNER), 2, Setting(cohort=4))
    server, state = session.method.server, session.record.state
    assert isinstance(server, WrapperServer)
    assert set(state.inner.cache) == {0, 1, 2, 3}
    assert set(server.forget(state, 1).inner.cache) == {0, 2, 3}


def test_an_inner_half_without_memory_stands_as_it_is() -> None:
    server, _ = methods.parse({"name": "movement", "inner": "fedavg"}, "method").halves("dense")
    state = start(server, Population(np.array([10])))
    assert server.forget(state, 0) is state
