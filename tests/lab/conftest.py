"""Runs that the tests of the laboratory share with those of the report page."""

from tests.report.page.conftest import planned, shown

__all__ = ["planned", "shown"]
