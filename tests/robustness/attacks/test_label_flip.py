"""Label flip, by hand."""

from __future__ import annotations

import numpy as np

from fedreuse.robustness.attacks.label_flip import LabelFlip


def test_labels_are_mirrored_and_inputs_stay() -> None:
    inputs, labels = np.zeros((3, 2)), np.array([0, 1, 9], np.uint8)
    attack = LabelFlip()
    assert attack.poisons
    kept, flipped = attack.poison(inputs, labels, 10, np.random.default_rng(0))
    assert kept is inputs
    assert flipped.tolist() == [9, 8, 0]
    assert flipped.dtype == np.uint8
