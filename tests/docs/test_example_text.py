"""The tutorial on text: its bytes are those of its configurations, and the stored studies are those of its files."""

from __future__ import annotations

from pathlib import Path

import yaml

from docs.site.stored import runs_of
from fedreuse.accounting.dense import dense_reference
from fedreuse.learning.networks.network import networks
from fedreuse.learning.trainer import initial_network

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorials" / "text-and-adapters.md").read_text(encoding="utf-8")


def study(name: str) -> dict[str, object]:
    content: dict[str, object] = yaml.safe_load(
        (ROOT / "configs" / "text" / f"{name}.yaml").read_text(encoding="utf-8")
    )
    return content


def test_bytes_of_a_round_under_every_boundary() -> None:
    found = []
    for name in ("full", "lora"):
        spec = study(name)["base"]["network"]  # type: ignore[index]
        if name == "lora":
            spec = {**spec, "of": spec["of"]["of"]}  # the same shapes without the pretrained file
        model = initial_network(networks.parse(spec, "network"), (64,), 98, 1).read()
        reference = dense_reference(model.schema)
        assert f"{model.weights.schema.size:,} weights" in PAGE
        found.append(
            (reference.dense_bytes, 2 * reference.dense_bytes, reference.request_bytes + reference.reply_bytes)
        )
    rows = zip(("`update_fields`", "`symmetric_fields`, `all_fields`", "`messages`"), *found, strict=True)
    for boundary, whole, adapters in rows:
        assert f"| {boundary} | {whole:,} | {adapters:,} |" in PAGE


def test_stored_studies_are_those_of_the_files() -> None:
    for name in ("full", "lora"):
        runs = runs_of(f"text-{name}")
        axes = study(name)["axes"]
        assert all(run.is_complete and not run.fault for run in runs)
        assert {run.variant for run in runs} == {*axes["method"]}  # type: ignore[index]
        assert {run.seed for run in runs} == {*axes["seed"]}  # type: ignore[index]
