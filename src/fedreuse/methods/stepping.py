"""Server halves that move a model with a server step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from fedreuse.core.method import ServerHalf
from fedreuse.methods.server_steps.server_step import evaluated

if TYPE_CHECKING:
    from fedreuse.core.model import Model
    from fedreuse.methods.server_steps.server_step import ServerStep

__all__ = ["SteppingServer"]


class _Stepped(Protocol):
    """A state with the model that clients receive and the state of the step that moves it."""

    @property
    def model(self) -> Model: ...

    @property
    def step(self) -> Any: ...


S = TypeVar("S", bound=_Stepped)


class SteppingServer(ServerHalf[S]):
    """Base class of server halves with a `step`, which also decides the model that is evaluated."""

    if TYPE_CHECKING:  # a field in some subclasses, a property in others

        @property
        def step(self) -> ServerStep:
            """The server step that moves the model."""

    def model(self, state: S) -> Model:
        """Return the model that is evaluated and deployed."""
        return evaluated(self.step, state.model, state.step)

    def broadcast(self, state: S) -> Model:
        """Return the model that clients receive."""
        return state.model
