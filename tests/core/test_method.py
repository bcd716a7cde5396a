"""Methods: what is absent is dense, and a configuration says what it assumes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.core.method import BufferPolicy, ClientHalf, LinkContext, Method, MethodConfig, ServerHalf, methods
from fedreuse.core.needs import Needs
from fedreuse.core.schema import Schema
from fedreuse.methods.averaging import AveragingServer, TrainingClient


def test_links_and_settling_are_optional() -> None:
    method = Method(AveragingServer(), TrainingClient())
    assert (dict(method.uplink), dict(method.downlink), method.client.wants_delivered) == ({}, {}, False)


def test_a_client_may_ask_to_see_what_arrived() -> None:
    @dataclass(frozen=True)
    class Curious(TrainingClient):
        wants_delivered = True

    assert Method(AveragingServer(), Curious()).client.wants_delivered


def test_what_a_half_does_not_say_is_the_default() -> None:
    """Remembers nobody, looks at nothing that arrives, uses the model it was sent."""
    server, client = AveragingServer(), TrainingClient()
    state, received = object(), object()
    assert server.forget(state, 3) is state  # type: ignore[arg-type]
    assert client.own_model(None, received, None) is received  # type: ignore[arg-type]


def test_halves_that_declare_nothing_are_refused() -> None:
    class Bare:
        pass

    for halves, base in (((Bare(), TrainingClient()), "ServerHalf"), ((AveragingServer(), Bare()), "ClientHalf")):
        with pytest.raises(ConfigError, match=rf"^Bare is no {base}; write class Bare\({base}\[...\]\)"):
            Method(*halves)  # type: ignore[arg-type]


def test_a_configuration_defines_halves_and_has_defaults_for_the_rest() -> None:
    @dataclass(frozen=True)
    class Half(MethodConfig):
        pass

    @dataclass(frozen=True)
    class Whole(MethodConfig):
        def halves(self, buffers: BufferPolicy) -> tuple[ServerHalf[Any], ClientHalf[Any]]:
            return AveragingServer(), TrainingClient()

    with pytest.raises(TypeError, match="halves"):
        Half()  # type: ignore[abstract]
    assert Whole().needs == Needs()
    assert (dict(Whole().default_uplink), dict(Whole().default_downlink)) == ({}, {})


def test_every_registered_method_has_halves_and_a_docstring() -> None:
    for name in methods.names():
        config = methods.parse(name, "method")
        for policy in ("dense", "as_weights"):
            server, client = config.halves(policy)
            assert all(hasattr(server, verb) for verb in ("init", "round", "model"))
            assert all(hasattr(client, verb) for verb in ("init", "answer", "settle"))
        assert type(config).__doc__


def test_a_links_context() -> None:
    context = LinkContext(Schema(), 1, 2, np.random.default_rng(0))
    assert dict(context.values) == {}
