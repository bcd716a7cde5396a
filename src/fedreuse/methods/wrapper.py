"""What every wrapper around a method passes through to the method inside."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fedreuse.core.method import ClientHalf, MethodConfig, ServerHalf, methods
from fedreuse.core.registry import part

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.local_trainer import LocalTrainer
    from fedreuse.core.method import Link
    from fedreuse.core.model import Model
    from fedreuse.core.needs import Needs

__all__ = ["Wrapper", "WrapperClient", "WrapperServer"]

OF_INNER = "a wrapper leaves that to the method inside; say it under method.inner"
"""Why a wrapper has no aggregator and no server step of its own."""


@dataclass(frozen=True)
class Wrapper(MethodConfig):
    """A method that changes another one's messages; whatever it does not say is as the inner method says."""

    inner: MethodConfig = part(methods, "fedavg")

    @property
    def needs(self) -> Needs:
        """What the inner method assumes."""
        return self.inner.needs

    @property
    def is_personal(self) -> bool:
        """As the inner method."""
        return self.inner.is_personal

    @property
    def uplink_groups(self) -> tuple[str, ...]:
        """Those of the inner method."""
        return self.inner.uplink_groups

    @property
    def downlink_groups(self) -> tuple[str, ...]:
        """Those of the inner method."""
        return self.inner.downlink_groups

    @property
    def default_uplink(self) -> Mapping[str, Link]:
        """Those of the inner method."""
        return self.inner.default_uplink

    @property
    def default_downlink(self) -> Mapping[str, Link]:
        """Those of the inner method."""
        return self.inner.default_downlink

    def with_codec(self, codec: Any) -> MethodConfig | None:
        """Another codec in the inner method's link, if it takes one."""
        inner = self.inner.with_codec(codec)
        return None if inner is None else replace(self, inner=inner)


@dataclass(frozen=True)
class WrapperServer(ServerHalf[Any]):
    """A server half around another; its state is a value with a field `inner`."""

    inner: ServerHalf[Any]

    def model(self, state: Any) -> Model:
        """What is evaluated and deployed."""
        return self.inner.model(state.inner)

    def broadcast(self, state: Any) -> Model:
        """What clients receive."""
        return self.inner.broadcast(state.inner)

    def forget(self, state: Any, client: int) -> Any:
        """A client lost its memory: the inner half may remember it."""
        inner = self.inner.forget(state.inner, client)
        return state if inner is state.inner else replace(state, inner=inner)


@dataclass(frozen=True)
class WrapperClient(ClientHalf[Any]):
    """A client half around another; its state is a value with a field `inner`."""

    inner: ClientHalf[Any]

    @property
    def wants_delivered(self) -> bool:
        """As the inner half."""
        return self.inner.wants_delivered

    def own_model(self, state: Any, received: Model, trainer: LocalTrainer) -> Model:
        """As the inner half."""
        return self.inner.own_model(state.inner, received, trainer)
