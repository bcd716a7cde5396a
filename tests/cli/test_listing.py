"""`fedreuse list` and `fedreuse describe`: every registry, every name, and a hint for a name that is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedreuse.cli.listing import cite
from fedreuse.config.catalog import registries
from tests.cli.conftest import Invoke


@pytest.mark.slow
@pytest.mark.parametrize("kind", registries)
def test_every_kind_is_listed_with_a_summary(invoke: Invoke, kind: str) -> None:
    told = json.loads(invoke("list", kind, "--json").stdout)
    assert [entry["name"] for entry in told] == registries[kind].names()
    assert all(entry["summary"] for entry in told)
    shown = invoke("list", kind)
    assert shown.exit_code == 0
    assert all(entry["name"] in shown.stdout for entry in told)


@pytest.mark.slow
def test_an_unknown_kind_or_name(invoke: Invoke) -> None:
    assert "did you mean 'methods'?" in invoke("list", "metods").stderr
    assert "did you mean 'top_k'?" in invoke("describe", "topk").stderr
    assert invoke("list", "metods").exit_code == invoke("describe", "topk").exit_code == 2


def test_a_description_has_fields_types_and_defaults(invoke: Invoke) -> None:
    (told,) = json.loads(invoke("describe", "top_k", "--json").stdout)
    assert told["kind"] == "codecs"
    (ratio,) = told["fields"]
    assert (ratio["name"], ratio["type"], ratio["default"]) == ("ratio", "float", "0.2")
    assert "in (0, 1]" in ratio["meaning"]
    assert "largest coordinates" in told["summary"]
    shown = invoke("describe", "dg_fedreuse").stdout
    assert "\nrho: " in shown
    assert "0.7279635" in shown
    assert "'name': 'proxy'" in shown
    assert "caches" in shown, "the card's text"


def test_a_name_of_several_kinds_is_shown_for_each(invoke: Invoke) -> None:
    kinds = {entry["kind"] for entry in json.loads(invoke("describe", "random", "--json").stdout)}
    assert kinds >= {"gates", "faults"}


def test_a_part_without_fields(invoke: Invoke) -> None:
    assert "It has no fields." in invoke("describe", "natural").stdout


@pytest.mark.slow
def test_runs_are_listed(invoke: Invoke, complete: Path, in_folder: Path) -> None:
    empty = invoke("list", "runs")
    assert empty.exit_code == 0
    assert "no runs in runs yet" in empty.stdout
    assert json.loads(invoke("list", "runs", "--json").stdout) == []
    shown = invoke("list", "runs", complete.parent)
    assert "fedavg, top_k 0.2" in shown.stdout
    assert len(json.loads(invoke("list", "runs", complete.parent, "--json").stdout)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["methods", "links", "codecs"])
def test_paper_kind_and_cost_of_everything_with_a_card(invoke: Invoke, kind: str) -> None:
    told = json.loads(invoke("list", kind, "--json").stdout)
    assert all(entry["kind"] and entry["cost"] for entry in told)
    assert kind != "methods" or all(entry["paper"] for entry in told)
    shown = invoke("list", kind).stdout
    assert max(map(len, shown.splitlines())) <= 100
    assert "cost for a selected client" in shown


@pytest.mark.parametrize(
    ("paper", "short"),
    [
        ('Li, Li, "On Feedback", ICML 2023', "Li and Li, ICML 2023"),
        ('McMahan, Moore, Ramage, "Learning", AISTATS 2017; more: "Else", 2018', "McMahan et al., AISTATS 2017"),
        ('Aftab, Rakesh, Samanta, "DG-FedReuse"', "Aftab et al."),
        ("unpublished", "unpublished"),
        ("", "-"),
    ],
)
def test_a_paper_in_short(paper: str, short: str) -> None:
    assert cite(paper) == short


def test_a_folder_that_is_not_there_is_a_mistake(invoke: Invoke, in_folder: Path) -> None:
    shown = invoke("list", "runs", "nope")
    assert shown.exit_code == 2
    assert "nope: no such directory" in shown.stderr
