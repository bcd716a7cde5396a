"""Random damage: a sample of what `python -m tests.runs.damage` plays, and that it would notice a wrong result."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.runs.checkpoints import Checkpoints
from fedreuse.store.journal import Journal
from tests.runs.damage import COMPLETE, KILLED, Template, campaign, make

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> list[Template]:
    return make(tmp_path_factory.mktemp("templates"))


def test_damage_ends_in_the_exact_result_or_in_a_refusal(templates: list[Template], tmp_path: Path) -> None:
    assert [template.name for template in templates] == [*KILLED, *COMPLETE]
    done = campaign(templates, tmp_path, cases=84, seed=11)
    assert [case for case in done if case.outcome not in ("exact", "refused")] == []
    assert {case.outcome for case in done} == {"exact", "refused"}
    assert {case.damage for case in done} == {"flip", "cut", "blank", "delete", "aim"}


def test_without_comparing_it_would_be_noticed(
    templates: list[Template], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Journal, "_compare", lambda *_: None)
    monkeypatch.setattr(Checkpoints, "_check_restored", lambda *_: None)
    done = campaign(templates[:2], tmp_path, cases=60, seed=3)
    assert any(case.outcome not in ("exact", "refused") for case in done)
