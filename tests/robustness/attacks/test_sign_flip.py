"""Sign flip, by hand."""

from __future__ import annotations

import numpy as np

from fedreuse.methods.averaging import Averaging
from fedreuse.robustness.attacks.sign_flip import SignFlip
from tests.robustness.attacks.played import bad_of, play, updates


def test_bad_clients_send_minus_their_update_and_honest_buffers() -> None:
    attack = SignFlip(0.2)
    honest, attacked = play(Averaging()), play(Averaging(), attack)
    for client in bad_of(attack):
        assert np.array_equal(updates(attacked)[client], -updates(honest)[client])
    assert np.array_equal(attacked.model.buffers.values, honest.model.buffers.values)
