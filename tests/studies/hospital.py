"""A small table of visits in six hospitals, with the usual problems of raw data."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def hospital_table(path: Path, rows: int = 300) -> Path:
    """A table of visits in six hospitals with the usual problems."""
    rng = np.random.default_rng(0)
    age, dose = rng.normal(60, 12, rows), rng.uniform(0, 5, rows)
    ill = age / 20 - dose + rng.normal(0, 0.5, rows) > 0.5
    lines = ["visit_id,age,dose,ward,country,hospital,readmitted"]
    for row in range(rows):
        cells = [str(1000 + row), f"{age[row]:.2f}", f"{dose[row]:.3f}", ["icu", "other"][row % 2], "DE",
                 f"h{row % 6}", "yes" if ill[row] else "no"]  # fmt: skip
        lines.append(",".join(cells))
    lines[1] = lines[1].replace(lines[1].split(",")[1], "", 1)
    lines[2] = "1001,inf,1.5,icu,DE,h1,yes"
    lines[3] = "1002,50,1.5,icu,DE,h2,"
    path.write_text("\n".join(lines) + "\n")
    return path
