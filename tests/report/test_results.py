"""What a run directory says: numbers that agree with its ledger, its summary and its study."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fedreuse.core.errors import RunDirectoryError
from fedreuse.report.results import compared_alike, plain, read_run, read_runs, same_models
from fedreuse.runs.launch import run
from fedreuse.store.directory import RunDirectory
from tests.report.runs import write_run
from tests.tiny import tiny


def test_savings_by_hand(tmp_path: Path) -> None:
    result = read_run(write_run(tmp_path / "run"))
    # two clients in each of two rounds, a dense model is 100 B; uploads of 20 B: two, then one beside a reuse
    update = result.savings["update_fields"]
    assert update.up_bytes == 20 + 20 + 20 + 16
    assert update.up == pytest.approx(1 - 76 / 400)
    assert update.mean_round_up == pytest.approx(((1 - 40 / 200) + (1 - 36 / 200)) / 2)
    assert update.down is None
    symmetric = result.savings["symmetric_fields"]
    assert symmetric.both == pytest.approx(1 - (76 + 400) / 800)
    assert symmetric.down == 0
    everything = result.savings["all_fields"]
    # three models of 100 B down, three uploads of 20 B up; a reused client costs nothing on the wire
    assert everything.both == pytest.approx(1 - (300 + 60) / 800)
    assert everything.down == pytest.approx(1 / 4)
    messages = result.savings["messages"]
    assert messages.both == pytest.approx(1 - (3 * 110 + 3 * 30) / (4 * 110 + 4 * 115))


def test_scores_events_and_work(tmp_path: Path) -> None:
    result = read_run(write_run(tmp_path / "run", test_score=0.75))
    assert result.is_complete
    assert (result.test_score, result.validation_score) == (0.75, 0.6)
    assert (result.rounds, result.planned_rounds) == (2, 2)
    assert result.events == {"fresh": 3, "fresh: age": 1, "reused": 1}
    assert (result.reuse_share, result.lost_share) == (1 / 4, 0)
    assert result.work["flops"] == 3_000_000_000
    assert result.variant == "dg_fedreuse, error_feedback(top_k 0.2)"
    assert json.loads(json.dumps(plain(result), allow_nan=False))["directory"] == str(tmp_path / "run")


@pytest.mark.slow
def test_links_that_a_method_chose_for_the_federation_are_named(tmp_path: Path) -> None:
    result = read_run(run(tiny(method={"name": "lean", "budget": 0.9}), tmp_path / "run"))
    assert result.uplink.startswith("error_feedback(fit ")
    assert result.downlink == "dense" or result.downlink.startswith("delta(fit ")


def test_a_run_without_updates_links_travels_dense(tmp_path: Path) -> None:
    assert read_run(write_run(tmp_path / "run", uplink={})).variant == "dg_fedreuse"


def test_an_incomplete_run_has_what_there_is(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", is_complete=False)
    result = read_run(directory)
    assert not result.is_complete
    assert result.test_score is None
    assert result.memory_bytes is None
    assert result.savings["update_fields"].up == pytest.approx(1 - 76 / 400)


def test_nothing_but_a_configuration(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", is_complete=False)
    for file in directory.path.iterdir():
        if file.name != "config.yaml":
            file.unlink()
    result = read_run(RunDirectory.open(directory.path))
    assert (result.rounds, result.savings, result.run_id) == (0, {}, "")


def test_not_a_number_is_null(tmp_path: Path) -> None:
    result = read_run(write_run(tmp_path / "run", test_score=float("nan")))
    assert plain(result)["test_score"] is None


@pytest.mark.slow
def test_a_studys_runs_bear_its_names(tmp_path: Path) -> None:
    write_run(tmp_path / "a")
    write_run(tmp_path / "b")
    write_run(tmp_path / "not of the study")
    runs = [{"folder": "b", "variant": "second"}, {"folder": "a", "variant": "first"}, {"folder": "x", "variant": "y"}]
    (tmp_path / "study.json").write_text(json.dumps({"study": "s", "runs": runs}))
    assert [(result.directory.name, result.variant) for result in read_runs(tmp_path)] == [
        ("b", "second"),
        ("a", "first"),
    ]
    (tmp_path / "study.json").write_text("{}")
    with pytest.raises(RunDirectoryError, match=r"study\.json"):
        read_runs(tmp_path)


@pytest.mark.slow
def test_what_must_be_equal_is_compared_within_a_seed(tmp_path: Path) -> None:
    same = [read_run(write_run(tmp_path / name)) for name in ("a", "b")]
    assert compared_alike(same) == []
    other_seed = read_run(write_run(tmp_path / "c", seed=2, digests={"partition": "other"}))
    assert compared_alike([*same, other_seed]) == []
    other = read_run(write_run(tmp_path / "d", digests={"partition": "other", "initial_model": "other"}))
    assert compared_alike([*same, other]) == ["partition", "initial model"]


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ({"name": "plain", "codec": {"name": "top_k", "ratio": 0.1}}, "top_k 0.1"),
        ({"name": "laq", "bits": 4, "max_lag": 100}, "laq 4 100"),
        ({"name": "clag", "zeta": 1.0, "codec": {"name": "packed", "codec": {"name": "dense"}}}, "clag(packed(dense))"),
    ],
)
def test_links_in_few_words(link: dict, words: str, tmp_path: Path) -> None:
    assert read_run(write_run(tmp_path / "run", uplink={"update": link})).uplink == words


def test_variants_that_end_with_the_same_model_are_found(tmp_path: Path) -> None:
    result = read_run(write_run(tmp_path / "run"))
    one, other = (replace(result, variant=name, model_digest="abc") for name in ("Fed-EF", "EF21"))
    third = replace(result, variant="FedAvg", model_digest="abd")
    elsewhere = replace(result, variant="Fed-EF", seed=result.seed + 1, model_digest="abc")
    unfinished = replace(result, variant="LAQ", model_digest="")
    assert same_models([one, third, elsewhere, unfinished, replace(unfinished)]) == []
    assert same_models([one, third, other, elsewhere]) == [(result.seed, ("Fed-EF", "EF21"))]
