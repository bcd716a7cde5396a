"""What the shell offers: keys, names and shipped configurations, from the registries."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fedreuse.cli.completion import configs, kinds, names, overrides


@pytest.mark.slow
def test_keys_and_their_values() -> None:
    assert overrides("roun") == ["rounds="]
    assert "rounds.cohort=" in overrides("rounds.")
    assert overrides("method=dg") == ["method=dg_fedreuse"]
    assert "method.gate=" in overrides("method.")
    assert "method.gate.quota=" in overrides("method.gate.q")
    assert overrides("buffers=as") == ["buffers=as_weights"]
    assert overrides("accept_approximation=t") == ["accept_approximation=true"]
    assert overrides("no.such.key") == []


def test_names_kinds_and_configurations() -> None:
    assert names("top") == ["top_k"]
    assert kinds("met") == ["methods", "metrics"]
    assert "paper/fashion_mnist" in configs("paper/")


@pytest.mark.slow
def test_a_real_shell_is_answered() -> None:
    words = "fedreuse run digits method=dg"
    environment = {"_FEDREUSE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "3"}
    script = "import sys; sys.argv[0] = 'fedreuse'; from fedreuse.cli import main; main()"
    import os

    shown = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert shown.stdout.split() == ["method=dg_fedreuse"], shown.stderr
