"""What a method assumes of a run, checked before anything starts."""

from __future__ import annotations

from dataclasses import dataclass

from fedreuse.errors import ConfigError

__all__ = ["Needs"]


@dataclass(frozen=True)
class Needs:
    """Assumptions of a method. `full_participation` may be waived by accepting an approximation."""

    full_participation: bool = False
    look_ahead: int = 0
    gradients: bool = False

    def check(self, name: str, cohort: int, clients: int, accept_approximation: bool) -> None:
        """Refuse a run that cannot be what the method assumes."""
        if self.full_participation and cohort < clients and not accept_approximation:
            raise ConfigError(
                f"method {name} needs every client in every round, but rounds.cohort is {cohort} of {clients}; "
                f"set rounds.cohort: {clients}, or accept_approximation: true to run it outside its theory"
            )
