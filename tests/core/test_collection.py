"""Objects from before a run are exempt from garbage collection while it lasts."""

from __future__ import annotations

import gc

import pytest

from fedreuse.core.collection import long_lived


def test_the_exemption_ends_with_the_context_also_after_an_error() -> None:
    assert gc.get_freeze_count() == 0
    with long_lived():
        frozen = gc.get_freeze_count()
        assert frozen > 1000
        with long_lived():  # a run inside a run
            pass
        assert gc.get_freeze_count() > 1000
    assert gc.get_freeze_count() == 0
    with pytest.raises(ValueError, match="stop"), long_lived():
        raise ValueError("stop")
    assert gc.get_freeze_count() == 0
