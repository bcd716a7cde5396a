"""Gaussian noise: its length, and that it is drawn again in every round."""

from __future__ import annotations

import numpy as np

from fedreuse.methods.averaging import Averaging
from fedreuse.robustness.attacks.gaussian import Gaussian
from tests.robustness.attacks.played import bad_of, play, updates


def test_the_noise_has_the_expected_length_and_the_stream_of_its_client_and_round() -> None:
    attack = Gaussian(0.3, length=10.0)
    honest, noise = updates(play(Averaging())), updates(play(Averaging(), attack))
    size = len(next(iter(honest.values())))
    ratios = [np.linalg.norm(noise[client]) / np.linalg.norm(honest[client]) for client in bad_of(attack)]
    assert 10 * (1 - 4 / (2 * size) ** 0.5) < np.mean(ratios) < 10 * (1 + 4 / (2 * size) ** 0.5)
    again = updates(play(Averaging(), attack))
    later = updates(play(Averaging(), attack, rounds=2))
    for client in bad_of(attack):
        assert np.array_equal(noise[client], again[client])
        assert not np.array_equal(noise[client], later[client])
