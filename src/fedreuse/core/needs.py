"""A method's requirements on a run, checked before the first round."""

from __future__ import annotations

from dataclasses import dataclass

from fedreuse.core.errors import ConfigError

__all__ = ["Needs"]


@dataclass(frozen=True)
class Needs:
    """A method's requirements on a run, checked before the first round.

    Args:
        full_participation: Every client takes part in every round; `accept_approximation` waives this.
        look_ahead: Number of future cohorts the server half must know.
        gradients: Clients compute gradients at given models.
        losses: Clients compute losses of batches at given models.
        corrections: Local training adds a correction to every gradient.
        steps: The method sets the number of local steps.
        buffer: Of an asynchronous method, the replies of a round, at most `rounds.cohort`; 0: the method waits for all.
        lines: The method adapts its messages to the bandwidths of the clients.

    A method without `gradients`, `losses`, `corrections` and `steps` needs only the trained model.

    Example:
        >>> from fedreuse import Needs
        >>> needs = Needs(full_participation=True)
        >>> needs.check("mine", cohort=10, clients=10, accept_approximation=False)
    """

    full_participation: bool = False
    look_ahead: int = 0
    gradients: bool = False
    losses: bool = False
    corrections: bool = False
    steps: bool = False
    buffer: int = 0
    lines: bool = False

    @property
    def asynchronous(self) -> bool:
        """True if requests stay under way from round to round, which needs an order of arrival."""
        return self.buffer > 0

    def check(self, name: str, cohort: int, clients: int, accept_approximation: bool) -> None:
        """Check the size of the cohort.

        Raises:
            ConfigError: If the method needs all clients, the cohort is smaller, and this was not accepted; or if it
                waits for more replies than clients work at the same time.
        """
        if self.buffer > cohort:
            raise ConfigError(
                f"method {name} waits for {self.buffer} replies in a round, but only rounds.cohort = {cohort} clients "
                f"work at the same time; set method.buffer to at most {cohort}, or raise rounds.cohort"
            )
        if self.full_participation and cohort < clients and not accept_approximation:
            raise ConfigError(
                f"method {name} needs every client in every round, but rounds.cohort is {cohort} of {clients}; "
                f"set rounds.cohort: {clients}, or accept_approximation: true to run it outside its theory"
            )
