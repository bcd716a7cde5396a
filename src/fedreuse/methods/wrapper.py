"""Base classes of wrappers, which delegate to an inner method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fedreuse.core.method import ClientHalf, MethodConfig, ServerHalf, methods
from fedreuse.core.registry import part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fedreuse.core.cohort import Attendance, Cohort
    from fedreuse.core.local_trainer import LocalTrainer
    from fedreuse.core.method import Link
    from fedreuse.core.model import Model
    from fedreuse.core.needs import Needs

__all__ = ["Wrapper", "WrapperClient", "WrapperServer"]

OF_INNER = "a wrapper leaves that to the inner method; set it under method.inner"
"""Reason why a wrapper has no aggregator and no server step of its own."""


@dataclass(frozen=True)
class Wrapper(MethodConfig):
    """A method that changes the messages of an inner method and delegates the rest to it."""

    inner: MethodConfig = part(methods, "fedavg")

    @property
    def needs(self) -> Needs:
        """Needs of the inner method."""
        return self.inner.needs

    @property
    def is_personal(self) -> bool:
        """True if the inner method evaluates personal models."""
        return self.inner.is_personal

    @property
    def uplink_groups(self) -> tuple[str, ...]:
        """Same as the inner method's."""
        return self.inner.uplink_groups

    @property
    def downlink_groups(self) -> tuple[str, ...]:
        """Same as the inner method's."""
        return self.inner.downlink_groups

    @property
    def default_uplink(self) -> Mapping[str, Link]:
        """Same as the inner method's."""
        return self.inner.default_uplink

    @property
    def default_downlink(self) -> Mapping[str, Link]:
        """Same as the inner method's."""
        return self.inner.default_downlink

    def attendance(self, cohorts: Sequence[Cohort], *, is_busy: bool) -> Attendance:
        """Return which clients train, as the inner method decides."""
        return self.inner.attendance(cohorts, is_busy=is_busy)

    def with_codec(self, codec: Any) -> MethodConfig | None:
        """Return the method with another codec in the inner method's link; None if that takes no codec."""
        inner = self.inner.with_codec(codec)
        return None if inner is None else replace(self, inner=inner)


@dataclass(frozen=True)
class WrapperServer(ServerHalf[Any]):
    """A server half around another; its state is a value with a field `inner`."""

    inner: ServerHalf[Any]

    def model(self, state: Any) -> Model:
        """Return the model that is evaluated and deployed."""
        return self.inner.model(state.inner)

    def broadcast(self, state: Any) -> Model:
        """Return the model that clients receive."""
        return self.inner.broadcast(state.inner)

    def forget(self, state: Any, client: int) -> Any:
        """Let the inner half drop its memory of a client."""
        inner = self.inner.forget(state.inner, client)
        return state if inner is state.inner else replace(state, inner=inner)


@dataclass(frozen=True)
class WrapperClient(ClientHalf[Any]):
    """A client half around another; its state is a value with a field `inner`."""

    inner: ClientHalf[Any]

    @property
    def wants_delivered(self) -> bool:
        """True if the inner half needs the delivered tensors."""
        return self.inner.wants_delivered

    def own_model(self, state: Any, received: Model, trainer: LocalTrainer) -> Model:
        """Return the inner half's model."""
        return self.inner.own_model(state.inner, received, trainer)
