"""Perplexity by token, and that it does not select."""

from __future__ import annotations

from math import inf, isnan

import pytest
import torch

from fedreuse.core.errors import ConfigError
from fedreuse.learning.metrics.perplexity import Perplexity
from fedreuse.learning.targets import IGNORED
from fedreuse.learning.task import parse_task
from tests.learning.metrics.batches import merged


def test_equal_scores_are_doubt_over_all_tokens() -> None:
    outputs, labels = torch.zeros(2, 3, 7), torch.tensor([[0, 1, 2], [6, IGNORED, IGNORED]])
    found = merged(Perplexity(), outputs, labels, [1, 1])
    assert Perplexity().value(found.score, found.examples) == pytest.approx(7.0, rel=1e-12)


def test_the_ends() -> None:
    assert isnan(Perplexity().value(0, 0))
    assert Perplexity().value(-1e6, 1) == inf


def test_it_is_reported_and_does_not_select() -> None:
    with pytest.raises(ConfigError, match=r"higher is better.*; take log_likelihood, .*'perplexity'"):
        parse_task({"name": "digits", "metric": "perplexity"}, "task")
