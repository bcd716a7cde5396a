"""Laboratory sections of a report page: tests of plans, gate studies, comparison with the paper."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from fedreuse.lab.gate.section import gate_with_study
from fedreuse.lab.paper.section import paper_comparison
from fedreuse.lab.plans.record import read_plan
from fedreuse.lab.plans.section import inference

if TYPE_CHECKING:
    from pathlib import Path

    from fedreuse.lab.paper.protocol import Suite
    from fedreuse.report.page.page import SectionMaker

__all__ = ["lab_sections", "planned_targets"]


def lab_sections(suites: Sequence[Suite] = ()) -> list[SectionMaker]:
    """Return the laboratory's sections for `page_of`.

    Args:
        suites: Suites of the paper's protocol; if given, a section compares their runs with the paper's numbers.
    """
    return [gate_with_study, inference, *([partial(paper_comparison, suites=suites)] if suites else [])]


def planned_targets(places: Sequence[Path]) -> list[float]:
    """Return the validation targets of the plans in some folders, each once."""
    records = [record for place in places if (record := read_plan(place)) is not None]
    return list(dict.fromkeys(target for record in records for target in record.current.plan.targets))
