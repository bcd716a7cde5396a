"""Always: everybody trains, nobody is asked."""

from __future__ import annotations

from fedreuse.core.cohort import Cohort
from fedreuse.methods.gates.always import Always


def test_everybody_is_certain() -> None:
    cohort = Cohort(2, (4, 8), seed=0)
    assert Always().certain({4: 1}, cohort) == {4: "always", 8: "always"}
    assert Always().choose({}, {}, {}, cohort) == {}
    assert Always().plan is None
