"""Progress bars of notebooks: drawn in one output, replaced as rounds complete."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from fedreuse.runs.listeners.notebook import NotebookBar, in_notebook


def test_a_test_is_no_notebook() -> None:
    assert not in_notebook()


def test_one_output_is_replaced(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, html: Any) -> None:
            shown.append(html.data)

    def show(html: Any, display_id: bool) -> Handle:
        assert display_id
        shown.append(html.data)
        return Handle()

    ipython = ModuleType("IPython.display")
    ipython.__dict__.update(display=show, HTML=lambda text: SimpleNamespace(data=text))
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", ipython)
    bar = NotebookBar()
    bar.start()
    number = bar.add_task("", total=4, completed=1, status="", head="<a>")
    bar.update(number, completed=4, status="80 %")
    bar.console.print("a line", soft_wrap=True)
    bar.stop()
    assert shown[0] == shown[-1] == ""
    assert "&lt;a&gt;" in shown[1]
    assert "max='4'" in shown[2]
    assert "round 4/4 80 %" in shown[2]
    assert capsys.readouterr().out == "a line\n"
