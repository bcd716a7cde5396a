"""What TensorBoard's own reader finds in the files of a run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.runs.launch import run
from fedreuse.runs.listeners.tensorboard import TensorBoard
from tests.runs.listeners.test_csv import Crash, CrashAfter
from tests.tiny import tiny

tensorboard = pytest.importorskip("tensorboard", reason="the extra `track` is not installed")


def read(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Steps and values by tag."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder))
    found.Reload()
    assert found.Tags()["tensors"] == ["configuration/text_summary"]
    text = found.Tensors("configuration/text_summary")[0].tensor_proto.string_val[0].decode()
    assert "clients: 6" in text
    return {tag: [(item.step, item.value) for item in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


def close(values: list[tuple[int, float]], wanted: list[tuple[int, float]]) -> bool:
    """Equal in single precision, which is what the files hold."""
    return [step for step, _ in values] == [step for step, _ in wanted] and all(
        found == pytest.approx(value, rel=1e-6) for (_, found), (_, value) in zip(values, wanted, strict=True)
    )


@pytest.mark.slow
def test_everything_of_a_run_is_there_also_after_a_crash(tmp_path: Path) -> None:
    config = tiny(listeners=["tensorboard", {"name": "tensorboard", "folder": str(tmp_path / "all")}])
    with pytest.raises(Crash):
        run(config, tmp_path / "run", listeners=[CrashAfter(2)])
    directory = run(config, tmp_path / "run", resume=True)
    found = read(directory.path / "tensorboard")
    assert found == read(tmp_path / "all" / "run")
    metrics, summary = directory.metrics(), directory.summary
    for column, tag in (("up_bytes (messages)", "up_bytes/messages"), ("down_bytes (all_fields)",
                        "down_bytes/all_fields"), ("fresh", "events/fresh"), ("seconds", "time/seconds")):  # fmt: skip
        # the crash came before these listeners heard of round 2
        assert close(found[tag], [(row["round"], row[column]) for row in metrics]), tag
    scores = [(row["round"], row["validation_score"]) for row in metrics if row["validation_score"] is not None]
    assert close(found["scores/validation_score"], scores)
    boundaries = {tag.split("/")[1] for tag in found if tag.startswith("up_bytes/")}
    assert boundaries == {name for name, totals in summary["communication"].items() if totals["up_bytes"]}
    assert close(found["test/score"], [(4, summary["test_score"])])
    assert close(found["saving/messages"], [(4, summary["communication"]["messages"]["saving"])])
    assert found["work/training_steps"]


def test_without_the_library_the_run_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ConfigError, match=r"tensorboard cannot be imported \(.*\); install it with: pip install"):
        TensorBoard().start()
    with pytest.raises(ConfigError, match="tensorboard cannot be imported"):
        run(tiny(listeners=["tensorboard"]), tmp_path / "run")
    assert not (tmp_path / "run").exists()
