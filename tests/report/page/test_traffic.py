"""Communication section: all parts together are the bytes of the messages."""

from __future__ import annotations

from statistics import fmean

import pytest

from fedreuse.report.page.shown import Shown
from fedreuse.report.page.traffic import communication

pytestmark = pytest.mark.slow  # the runs behind it


def test_parts_add_up_to_the_messages(shown: Shown) -> None:
    section = communication(shown)
    data = section.figures[0].data
    for variant, one in zip(shown.variants, data["variants"], strict=True):
        crossed = fmean(result.savings["messages"].used("both") for result in variant.results)
        assert sum(one["total"]) * 1e6 == pytest.approx(crossed, rel=1e-4)
        rounds = [sizes for sizes in one["rounds"] if sizes]
        assert sum(map(sum, rounds)) * 1e3 == pytest.approx(crossed, rel=1e-4)
    assert "up: control" in data["shares"]
    assert "reuse" in section.figures[0].text
    titles = [table.title for table in section.tables]
    assert titles[0] == "MB of messages by part (means over seeds)"
    assert "Links" in titles
