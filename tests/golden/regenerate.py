"""Write the golden traces anew: python -m tests.golden.regenerate (a change needs a Numerics line in the changelog).

Runs are quadratics in float64, so traces depend on the CPU by rounding at most: bytes and counts are stored exactly,
numbers are compared to 1e-9.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fedreuse.accounting.boundaries.boundary import Reference
from fedreuse.accounting.traffic import savings
from fedreuse.core.model import Model
from fedreuse.engine.faults import RandomFaults
from fedreuse.testing.cases import Case
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Session, Setting

FOLDER = Path(__file__).parent
TOP_K = {"name": "top_k", "ratio": 0.3}
PROXY = {"name": "proxy", "tau_start": 0.3, "tau_floor": 0.1, "decay": 0.2, "max_age": 3, "quota": 0.7, "batches": 2}
RELIABLE, UNRELIABLE = RandomFaults(), RandomFaults(lost=0.15, late=0.1)
NUM_ROUNDS = 8
RUNS: dict[str, tuple[Case, RandomFaults]] = {
    "fedavg": (Case("fedavg"), RELIABLE),
    "error_feedback": (Case("fedavg", uplink={"name": "error_feedback", "codec": TOP_K}), UNRELIABLE),
    "fedprox_as_weights": (Case("fedprox", {"mu": 0.5}, uplink=TOP_K, buffers="as_weights"), RELIABLE),
    "dg_fedreuse": (Case("dg_fedreuse", {"gate": PROXY}, uplink=TOP_K), UNRELIABLE),
    "age_only_as_weights": (
        Case("dg_fedreuse", {"gate": "age_only"}, uplink=TOP_K, buffers="as_weights"),
        RELIABLE,
    ),
    "lean": (Case("lean", {"budget": 0.8}), UNRELIABLE),
}


def play(name: str) -> Session:
    """Run one of the cases."""
    case, faults = RUNS[name]
    training = QuadraticTraining(lr=0.05, momentum=0.9, weight_decay=0.01, noise=1.0)
    return QuadraticFederation.draw(7, training).play(case.build(), NUM_ROUNDS, Setting(cohort=4, faults=faults))


def trace(session: Session) -> dict[str, Any]:
    """Ledger, events, bytes under every boundary, objective and final model as plain data."""
    reference = Reference(session.schema.dense_bytes, 200, 180)
    found = savings(session.ledger.rows, session.ledger.events, reference, NUM_ROUNDS)
    return {
        "ledger": [
            [row.round_number, row.exchange, row.client, row.direction, row.kind, row.status, dict(row.fields),
             row.value_bytes, row.header_bytes, row.total_bytes, row.work.training_steps, row.work.proxy_gradients]
            for row in session.ledger.rows
        ],
        "events": [[e.round_number, e.client, e.outcome, e.reason, e.age, e.score] for e in session.ledger.events],
        "counts": dict(session.ledger.counts),
        "bytes": {name: {"up": t.up.tolist(), "down": t.down.tolist()} for name, t in found.items()},
        "savings": {name: [t.saving(), t.mean_saving()] for name, t in found.items()},
        "objective": [session.federation.loss(model) for model in session.models],
        "model": _numbers(session.model),
    }  # fmt: skip


def _numbers(model: Model) -> dict[str, list[float]]:
    parts = {"weights": model.weights, "buffers": model.buffers, "counters": model.counters}
    return {name: tensors.values.tolist() for name, tensors in parts.items()}


def path_of(name: str) -> Path:
    """Where a trace lies."""
    return FOLDER / f"{name}.json"


def main() -> None:
    """Write all traces."""
    for name in RUNS:
        lines = [f"{json.dumps(key)}: {json.dumps(part)}" for key, part in trace(play(name)).items()]
        path_of(name).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
