"""The library `peft`: absent, it is named with the way out (what it makes: test_lora)."""

from __future__ import annotations

import sys

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.learning.networks.mlp import Mlp
from fedreuse.learning.networks.peft_adapters import adapt_with_peft


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(ConfigError, match=r"network\.library is peft, but the package is not installed; pip install"):
        adapt_with_peft(Mlp((4,)).build((3,), 2), (), ["fc"], 2, 4.0)
