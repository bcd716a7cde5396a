"""A backdoor: which images are stamped, where, and what counts as success."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.methods.averaging import Averaging
from fedreuse.robustness.attacks.backdoor import Backdoor
from tests.robustness.attacks.played import bad_of, play, updates

ATTACK = Backdoor(0.2, target=2, size=2, share=0.5)


def test_half_of_the_images_are_stamped_in_the_corner_and_relabelled() -> None:
    inputs, labels = np.zeros((8, 1, 4, 4), np.uint8), np.zeros(8, np.int64)
    stamped, named = ATTACK.poison(inputs, labels, 3, np.random.default_rng(0))
    assert inputs.sum() == labels.sum() == 0  # the given arrays stay
    chosen = named == 2
    assert chosen.sum() == 4
    assert (stamped[chosen][:, :, 2:, 2:] == 255).all()
    assert stamped[chosen].sum() == 4 * 4 * 255
    assert not stamped[~chosen].any()


def test_success_is_the_target_on_stamped_images_of_other_classes() -> None:
    inputs = np.zeros((3, 1, 4, 4), np.float32)
    found, wanted = ATTACK.goal(inputs, np.array([0, 2, 1]))
    assert wanted.tolist() == [2, 2]
    assert found.sum() == 2 * 4  # fractions are stamped with the largest, at least 1


def test_the_boost_multiplies_the_update() -> None:
    attack = Backdoor(0.2, boost=4.0)
    honest, boosted = updates(play(Averaging())), updates(play(Averaging(), attack))
    for client in bad_of(attack):
        assert np.array_equal(boosted[client], honest[client] * np.float32(4))


def test_what_cannot_be_stamped_is_refused_with_the_way_out() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ConfigError, match=r"needs images .* shape \(5,\); choose a smaller size, or label_flip"):
        ATTACK.poison(np.zeros((4, 5)), np.zeros(4, int), 3, rng)
    with pytest.raises(ConfigError, match=r"attack\.target is 2, but there are 2 classes"):
        ATTACK.poison(np.zeros((4, 1, 4, 4)), np.zeros(4, int), 2, rng)
