"""The command group `fedreuse lab`."""

from __future__ import annotations

import typer

from fedreuse.cli.app import app
from fedreuse.cli.lab.app import lab_app


def test_the_group_hangs_on_the_application() -> None:
    group = typer.main.get_command(app)
    inner = typer.main.get_command(lab_app)
    assert set(group.commands["lab"].commands) == set(inner.commands)  # type: ignore[attr-defined]
