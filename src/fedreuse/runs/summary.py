"""Results of a run as plain data: one row per round, and a summary."""

from __future__ import annotations

from dataclasses import asdict, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, get_args

from fedreuse.accounting.boundaries.boundary import boundary_of
from fedreuse.accounting.memory import memory_of
from fedreuse.accounting.outcomes import count_outcomes
from fedreuse.accounting.saving import Saving
from fedreuse.accounting.traffic import evaluation_bytes, savings
from fedreuse.accounting.work import total_work
from fedreuse.core.message import Outcome
from fedreuse.core.tensors import to_arrays
from fedreuse.robustness.privacy import spent
from fedreuse.runs.facts import digest_of_model
from fedreuse.runs.resources import ROWS, energy_of, peaks_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from fedreuse.accounting.boundaries.boundary import Reference
    from fedreuse.accounting.ledger import Ledger
    from fedreuse.core.model import Model
    from fedreuse.runs.live import LiveRun

__all__ = ["arrays_of", "communication", "last_of", "round_row", "summarise"]


_SEALED: Mapping[str, Any] = {"score": None, "loss": None, "examples": None}


def round_row(
    live: LiveRun,
    number: int,
    seen: tuple[int, int],
    scores: Mapping[str, float | None],
    began: float,
    simulated: float,
) -> dict[str, Any]:
    """Return one round's scores, client outcomes, seconds, and bytes under every boundary.

    `seen`, `began` and `simulated` are the sizes of the ledger, the wall-clock time and the simulated time at the start
    of the round.
    """
    rows, events = live.ledger.rows[seen[0] :], live.ledger.events[seen[1] :]
    row: dict[str, Any] = {"round": number, **scores}
    for outcome in get_args(Outcome):
        row[outcome] = sum(event.outcome == outcome for event in events)
    row["seconds"] = perf_counter() - began
    if live.federation.fleet is not None:
        row["simulated_seconds"] = live.record.seconds - simulated
    if live.ledger.lags:
        row["lag"] = live.ledger.lags.get(number)
    for name, traffic in savings(rows, events, live.reference, number).items():
        if boundary_of(name).counts_evaluation:
            continue  # the last evaluation follows the last round
        row[f"down_bytes ({name})"] = int(traffic.down[-1])
        row[f"up_bytes ({name})"] = int(traffic.up[-1])
        if not boundary_of(name).is_measured:
            row[f"dense_bytes ({name})"] = int(traffic.dense_down[-1] + traffic.dense_up[-1])
    return row


def summarise(
    live: LiveRun, test: Mapping[str, Any] | None, model: Model, model_round: int | None = None
) -> dict[str, Any]:
    """Summarise the whole run.

    Args:
        live: The run, after its last round.
        test: Scores on the test split; None while it is sealed.
        model: The model that the run returns.
        model_round: The round of that model, if not the last.
    """
    test = _SEALED if test is None else test
    # stored rows are read once, not once for each of their sums
    ledger = replace(live.ledger, rows=list(live.ledger.rows), events=list(live.ledger.events))
    config = live.federation.config
    metrics, resources = (live.directory.journal.rows(kind) for kind in ("metrics", ROWS))
    return {
        "run_id": config.run_id,
        "method": config.to_plain()["method"]["name"],
        "rounds": len(metrics),
        "test_score": test["score"],
        "test_loss": test["loss"],
        "test_examples": test["examples"],
        "validation_score": last_of(metrics[:model_round], "validation_score"),
        "validation_loss": last_of(metrics[:model_round], "validation_loss"),
        **({} if model_round is None else {"model_round": model_round}),
        **{f"test_{name}": value for name, value in test.get("metrics", {}).items()},
        **{
            f"validation_{name}": last_of(metrics[:model_round], f"validation_{name}")
            for name in config.task.scoring.others
        },
        **({"personal_test": test["personal"]} if "personal" in test else {}),
        **({"clients_test": test["clients"]} if "clients" in test else {}),
        **({"attack_success": test["attack_success"]} if "attack_success" in test else {}),
        **({"privacy": privacy} if (privacy := spent(config.method, ledger.events)) is not None else {}),
        "communication": communication(ledger, live.reference, len(metrics)),
        "evaluation": evaluation_bytes(ledger.rows),
        "events": count_outcomes(ledger.events),
        "counts": ledger.counts,
        "work": asdict(total_work(ledger.rows)),
        "memory_bytes": {**memory_of(live.record, live.store), **peaks_of(resources)},
        **energy_of(resources),
        "seconds": sum(row["seconds"] for row in metrics),
        **(
            {}
            if live.federation.fleet is None
            else {"simulated_seconds": sum(row["simulated_seconds"] for row in metrics)}
        ),
        "model_digest": digest_of_model(model),
    }


def arrays_of(model: Model) -> dict[str, np.ndarray]:
    """Return the tensors of a model by the names that its network gives them."""
    parts = (model.weights, model.buffers, model.counters)
    return {name: array for part in parts for name, array in to_arrays(part).items()}


def communication(ledger: Ledger, reference: Reference, num_rounds: int) -> dict[str, Any]:
    """Return bytes and savings under every boundary, in each direction."""
    by_boundary = savings(ledger.rows, ledger.events, reference, num_rounds)
    return {name: Saving.of(traffic).to_plain() for name, traffic in by_boundary.items()}


def last_of(metrics: list[dict[str, Any]], name: str) -> float | None:
    """Return the last value of a metric that is not None."""
    return next((row[name] for row in reversed(metrics) if row[name] is not None), None)
