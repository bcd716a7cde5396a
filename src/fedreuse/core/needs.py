"""What a method assumes of a run, checked before anything starts."""

from __future__ import annotations

from dataclasses import dataclass

from fedreuse.core.errors import ConfigError

__all__ = ["Needs"]


@dataclass(frozen=True)
class Needs:
    """What a method assumes of a run, checked before anything starts.

    Args:
        full_participation: Every client takes part in every round; may be waived by `accept_approximation`.
        look_ahead: How many future cohorts the server half must know.
        gradients: Clients can differentiate the loss.
        corrections: Something is added to the gradient of every local step.
        steps: The method says how many local steps are taken.

    Without `gradients`, `corrections` and `steps` a method needs nothing but the trained model.

    Raises:
        ConfigError: By `check`, if a run is not what the method assumes.

    Example:
        >>> from fedreuse import Needs
        >>> needs = Needs(full_participation=True)
        >>> needs.check("mine", cohort=10, clients=10, accept_approximation=False)
    """

    full_participation: bool = False
    look_ahead: int = 0
    gradients: bool = False
    corrections: bool = False
    steps: bool = False

    def check(self, name: str, cohort: int, clients: int, accept_approximation: bool) -> None:
        """Refuse a run that cannot be what the method assumes."""
        if self.full_participation and cohort < clients and not accept_approximation:
            raise ConfigError(
                f"method {name} needs every client in every round, but rounds.cohort is {cohort} of {clients}; "
                f"set rounds.cohort: {clients}, or accept_approximation: true to run it outside its theory"
            )
