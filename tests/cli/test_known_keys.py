"""Keys and names from the shipped schema: what is refused, with the message of the real reader, and what is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fedreuse.cli import known_keys
from fedreuse.cli.known_keys import check_file, check_overrides
from fedreuse.config.run_config import load
from fedreuse.core.errors import ConfigError

CONFIGS = Path(known_keys.__file__).parents[1] / "configs"
FILES = sorted(CONFIGS.rglob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(CONFIGS)))
def test_every_shipped_file_is_accepted(file: Path) -> None:
    check_file(file)


@pytest.mark.parametrize(
    "override",
    [
        "rounds.cuont=3",
        "roundz.count=3",
        "method=fedavgg",
        "method.name=fedavgg",
        "method.mux=1",
        "network=cnnn",
        "task.partition=irid",
        "local.optimizer.lrr=0.1",
        "method.aggregate=medain",
        "attack=sign_flipp",
        "rounds.count",
    ],
)
def test_a_typing_error_has_the_message_of_the_real_reader(override: str) -> None:
    changes = ["method=averaging", override] if "aggregate" in override else [override]
    with pytest.raises(ConfigError) as early:
        check_file(Path("digits"), changes)
    with pytest.raises(ConfigError) as late:
        load("digits", changes)
    assert str(early.value) == str(late.value)


@pytest.mark.parametrize(
    "override",
    [
        "rounds.clients_per_round=3",
        "method={name: fedprox, mu: 0.1}",
        "uplink.update=top_k",
        "uplink.update.ratio=0.1",
        "task.metrics=[accuracy, loss]",
        "task.metrics=loss",
        "executor.workers=auto",
        "method={name: 'mine:Own', any: 3}",
        "listeners=[csv]",
        "deploy.timeout_seconds=3",
        "tune.trials=4",
    ],
)
def test_nothing_else_is_refused(override: str) -> None:
    check_file(Path("digits"), [override])
    check_overrides([override])


def test_a_part_of_an_unknown_base_may_be_a_users_own() -> None:
    check_overrides(["method.anything=1"])
    with pytest.raises(ConfigError, match=r"rounds\.cuont"):
        check_overrides(["rounds.cuont=1"])


def test_newer_code_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_keys, "_newer_code", lambda: "new_key: int = 3; fedavgg")
    check_file(Path("digits"), ["rounds.new_key=3"])
    with pytest.raises(ConfigError, match=r"fedavgg.*did you mean 'fedavg'"):
        check_file(Path("digits"), ["method=fedavgg"])


@pytest.mark.slow
@pytest.mark.parametrize("words", [["run", "digits", "rounds.cuont=3"], ["compare", "demo", "method=fedavgg"]])
def test_a_typing_error_imports_no_torch(words: list[str]) -> None:
    script = (
        "import sys\nfrom fedreuse.cli import app\n"
        f"try:\n    app({words})\nexcept SystemExit as end:\n    assert end.code == 2\n"
        "assert not {'torch', 'numpy', 'pydantic'} & sys.modules.keys()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert "did you mean" in done.stderr
