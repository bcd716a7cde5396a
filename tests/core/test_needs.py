"""Needs: a run that cannot be what the method assumes does not start."""

from __future__ import annotations

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.core.needs import Needs


def test_full_participation() -> None:
    needs = Needs(full_participation=True)
    needs.check("gradskip", 50, 50, accept_approximation=False)
    needs.check("gradskip", 10, 50, accept_approximation=True)
    with pytest.raises(
        ConfigError,
        match=r"^method gradskip needs every client in every round, but rounds\.cohort is 10 of 50; "
        r"set rounds\.cohort: 50, or accept_approximation: true to run it outside its theory$",
    ):
        needs.check("gradskip", 10, 50, accept_approximation=False)


def test_no_needs_no_questions() -> None:
    Needs().check("fedavg", 1, 50, accept_approximation=False)
