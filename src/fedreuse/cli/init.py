"""`fedreuse init`: a first configuration for a dataset or a file, after a few questions or from options."""

from __future__ import annotations

from dataclasses import MISSING, fields
from pathlib import Path
from string import Template
from typing import Annotated, Any

import click
import typer

from fedreuse.cli.app import AsJson, app
from fedreuse.cli.output import command_line, show_json, show_lines
from fedreuse.core.errors import UserError

__all__ = ["init_command"]

_SCHEMA_LINE = "# yaml-language-server: $schema=fedreuse.schema.json"
_NONE = "none"
_TEXT = Template("""\
# yaml-language-server: $$schema=fedreuse.schema.json
# Made by `fedreuse init`. `fedreuse schema > fedreuse.schema.json` lets your editor complete and check this file.
task:
  name: $dataset                 # fedreuse list datasets; your own as package.module:Name
  clients: $clients
  partition: {name: dirichlet, alpha: 0.5, min_examples: 5}   # distribution over clients; a small alpha is uneven
  validation: 0.1                # share of every client's examples that is held out
network: $network
local: {epochs: 2, batch: $batch, optimizer: {name: sgd, lr: $lr, momentum: 0.9}}
method: $method                  # fedreuse describe $method
rounds: {count: $rounds, cohort: $cohort, evaluate_every: 5}
seed: 101
""")
_SMALL = {"digits": (30, 16, 0.02), "synthetic": (30, 32, 0.02)}
"""Clients, batch and learning rate for datasets of a few thousand examples."""
_USUAL = (50, 128, 0.05)


@app.command("init", epilog="Example: fedreuse init first.yaml --dataset digits --method dg_fedreuse --rounds 20")
def init_command(
    file: Annotated[Path, typer.Argument(help="The file to write.")] = Path("config.yaml"),
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="Dataset, or a CSV, Parquet or npz file (default: asks).")
    ] = None,
    method: Annotated[str | None, typer.Option("--method", help="Federated method (default: asks).")] = None,
    rounds: Annotated[int | None, typer.Option("--rounds", min=1, help="Number of rounds (default: asks).")] = None,
    label: Annotated[str | None, typer.Option("--label", help="Column to predict, of a file (default: asks).")] = None,
    client: Annotated[
        str | None, typer.Option("--client", help="Column of the client, of a file; none: simulated (default: asks).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a first configuration from three questions.

    The file has comments. An option answers its question. An existing file is not overwritten. For a file of data, its
    columns are asked for, the table is prepared as in `fedreuse try`, and network and batch follow from it.
    """
    from fedreuse.config.run_config import load

    if file.exists():
        raise UserError(f"{file} exists already and is not overwritten; name another file")
    offered = [name for name in _names("datasets") if not _keys_of(name)]
    dataset = dataset or _ask("dataset", "digits", [*offered, "or the path of a file"])
    source = Path(dataset).expanduser()
    roles = _roles(source, label, client) if source.exists() and dataset not in _names("datasets") else None
    if dataset in _names("datasets") and (keys := _keys_of(dataset)):
        raise UserError(
            f"dataset {dataset} has keys without a default ({', '.join(keys)}), so no file is written; see "
            f"`fedreuse describe {dataset}`, and Your own files in docs/reference/configuration.md"
        )
    method = method or _ask("method", "dg_fedreuse", _names("methods"))
    rounds = rounds or _answer("--rounds", "How many rounds?", default=20, type=click.IntRange(min=1))
    decisions: tuple[str, ...] = ()
    if roles is None:
        text = _fill(dataset, method, rounds)
    else:
        text, decisions = _fill_for_file(file, dataset, roles, method, rounds)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    try:
        load(file)
    except UserError:
        file.unlink()
        raise
    steps = [command_line("run", file)]
    if _must_be_fetched(dataset):
        steps.insert(0, command_line("data", "fetch", dataset))
    if as_json:
        show_json({"file": str(file), "next": steps, "decisions": list(decisions)})
    else:
        show_lines(*(f"data: {decision}" for decision in decisions), f"wrote {file}", "next:")
        show_lines(*(f"  {step}" for step in steps))


def _names(kind: str) -> list[str]:
    from fedreuse.config.catalog import registry_of

    return registry_of(kind).names()


def _keys_of(dataset: str) -> list[str]:
    """Return the keys of a dataset that have no default."""
    from fedreuse.config.catalog import registry_of

    parts = fields(registry_of("datasets").get(dataset, "task"))
    return [key.name for key in parts if key.default is MISSING and key.default_factory is MISSING]


def _ask(thing: str, default: str, names: list[str]) -> str:
    typer.echo(f"Which {thing}? {', '.join(names)}", err=True)
    answer: str = _answer(f"--{thing}", "  name", default=default)
    return answer


def _answer(option: str, question: str, **how: Any) -> Any:
    """Prompt for an answer; without a terminal, raise an error that names the option."""
    try:
        return typer.prompt(question, err=True, **how)
    except click.Abort:
        typer.echo(err=True)
        raise UserError(f"no answer, so no file is written; answer with the option {option}") from None


def _fill(dataset: str, method: str, rounds: int) -> str:
    clients, batch, lr = _SMALL.get(dataset, _USUAL)
    network = "resnet18" if dataset.startswith("cifar") else "cnn"
    words: dict[str, Any] = {"dataset": dataset, "method": method, "rounds": rounds, "clients": clients, "batch": batch}
    return _TEXT.substitute(words, lr=lr, network=network, cohort=10)


def _roles(source: Path, label: str | None, client: str | None) -> tuple[str, str | None]:
    """Return the columns of label and client; those that no option names are asked for."""
    from fedreuse.learning.files.raw import is_raw_table, read_raw

    is_table = is_raw_table(source, label or "label", client)
    columns: list[str] = read_raw(source).table.column_names if is_table else []
    label = label or (_ask("label", "label" if "label" in columns else columns[-1], columns) if columns else "label")
    others = [name for name in columns if name != label]
    client = client or (_ask("client", _NONE, [*others, _NONE]) if columns else _NONE)
    return label, None if client == _NONE else client


def _fill_for_file(
    file: Path, source: str, roles: tuple[str, str | None], method: str, rounds: int
) -> tuple[str, tuple[str, ...]]:
    """Prepare a file of data beside the configuration, and return the configuration's text and the decisions."""
    import yaml

    from fedreuse.studies.proposal import propose
    from fedreuse.studies.trial import Request, task_of

    task, decisions, _ = task_of(Request(source, *roles), file.parent / f"{file.stem}-data")
    proposal = propose(task)
    base = {key: value for key, value in proposal.base.items() if key != "development_seeds"}
    local = base["local"]
    rate = proposal.rates[len(proposal.rates) // 2]
    plain = {
        **base,
        "local": {**local, "optimizer": {**local["optimizer"], "lr": rate}},
        "method": method,
        "rounds": {"count": rounds, **base["rounds"], "evaluate_every": 5},
        "seed": 101,
    }
    head = f"{_SCHEMA_LINE}\n# Made by `fedreuse init` for {source}. Learning rates to try: "
    rates = ", ".join(f"{one:g}" for one in proposal.rates)
    return f"{head}{rates}.\n" + yaml.safe_dump(plain, sort_keys=False), decisions


def _must_be_fetched(dataset: str) -> bool:
    from fedreuse.learning.datasets.facts import FACTS
    from fedreuse.learning.datasets.fetch import available

    return dataset in FACTS and not available(dataset, None)
