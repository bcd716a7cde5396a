"""The figure of a federation, for few and many classes and clients."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fedreuse.report.federation_figure import Shown, federation_figure


@pytest.mark.slow
@pytest.mark.parametrize(
    ("clients", "classes", "kind"), [(1, 2, "class"), (40, 10, "flag"), (40, 40, "token"), (40, 1, "")]
)
def test_it_is_drawn(tmp_path: Path, clients: int, classes: int, kind: str) -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 50, (clients, classes)) + 1
    sizes = rng.integers(1, 5000, 1000)
    shown = Shown(counts, [str(n) for n in range(clients)], [str(n) for n in range(classes)], kind)
    path = federation_figure(shown, sizes, rng.random(1000), tmp_path / "new/f.png")
    with Image.open(path) as image:
        assert image.size == (1800 if kind else 750, 720)
        assert len(image.convert("RGB").getcolors(2**24) or ()) > 50
