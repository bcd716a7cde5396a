"""What the tests of attacks share: ten clients of which some are bad, through real rounds."""

from __future__ import annotations

import numpy as np

from fedreuse.core.method import Method, MethodConfig
from fedreuse.core.model import Model
from fedreuse.robustness.attacks.attack import Attack
from fedreuse.robustness.attacks.hostile import under_attack
from fedreuse.testing.quadratic import QuadraticFederation, Session, Setting

FEDERATION = QuadraticFederation.draw(10)


def play(
    config: MethodConfig, attack: Attack | None = None, rounds: int = 1, max_norm: float | None = None, cohort: int = 10
) -> Session:
    """A method under attack after some rounds."""
    method = Method(*config.halves("dense"), max_norm=max_norm)
    if attack is not None:
        method = under_attack(method, attack, attack.clients(10, FEDERATION.seed))
    return Session(FEDERATION, method, Setting(cohort=cohort)).advance(rounds)


def bad_of(attack: Attack) -> frozenset[int]:
    """Who is bad in `play`."""
    return attack.clients(10, FEDERATION.seed)


def updates(session: Session) -> dict[int, np.ndarray]:
    """What each client sent up last, as the server decodes it."""
    schema = session.schema.of_group("update")
    sent = {}
    for crossing in session.crossings:
        parcel = crossing.envelope.parcels.get("update")
        if crossing.direction == "up" and parcel is not None:
            sent[crossing.client] = parcel.decode(schema).values
    return sent


def same(one: Model, other: Model) -> bool:
    """Whether two models are the same bits."""
    parts = zip(_values(one), _values(other), strict=True)
    return all(mine.tobytes() == theirs.tobytes() for mine, theirs in parts)


def _values(model: Model) -> tuple[np.ndarray, ...]:
    return model.weights.values, model.buffers.values, model.counters.values
