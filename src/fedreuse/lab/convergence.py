"""Convergence of every method on strongly convex quadratics, beside what theory expects.

F_i(w) = 1/2 (w - b_i)' A_i (w - b_i), A_i diagonal in [0.2, 2], b_i normal with deviation 2: clients disagree strongly.
Every method runs with its own defaults through the real rounds, links and codecs, 5 of 20 clients per round (all 20 if
it needs them), K local steps of 0.05 without noise. Distances to the minimum of the mean of all F_i are relative to
that of the initial model, averaged over the last fifth of the rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.config.recipe import Recipe
from fedreuse.core.errors import FedreuseError
from fedreuse.core.method import Scope, methods
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.methods.lean import Lean
from fedreuse.report.tables import Table
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Setting

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fedreuse.core.method import MethodConfig

__all__ = ["EXPECTED", "Measured", "convergence_table", "lean_rows", "lean_table", "method_rows"]

_CLIENTS, _COHORT = 20, 5
_NEAR = 0.5
"""Relative distance up to which a method has approached the minimum."""
_DRIFT = "neighbourhood: sampled clients; with K > 1 also client drift"
_MEMORY = "no noise of sampling; with K > 1 client drift remains"
_CONTROL = "the minimum: controls remove drift and heterogeneity"
_FEEDBACK = "FedAvg's neighbourhood, larger by the residuals of absent clients"
_ESTIMATES = "the minimum if all clients take part and the step is small against the codec's contraction"
_SCALED = "neighbourhood set by the server's learning rate"
EXPECTED = {
    **dict.fromkeys(("averaging", "fedavg", "fedprox", "fedpaq", "docofl", "flasc", "movement"), _DRIFT),
    **dict.fromkeys(("fedavgm", "fedexp"), "FedAvg's neighbourhood, larger: moves are longer"),
    **dict.fromkeys(("fedadagrad", "fedadam", "fedyogi"), _SCALED),
    **dict.fromkeys(("fedvarp", "mifa", "fedstale"), _MEMORY),
    **dict.fromkeys(("scaffold", "scallion", "scafcom", "proxskip", "gradskip"), _CONTROL),
    **dict.fromkeys(("fed_ef", "stc_up", "stc_updown"), _FEEDBACK),
    **dict.fromkeys(("ef21", "ef21_sgdm", "econtrol", "clag", "laq", "lbgm"), _ESTIMATES),
    **dict.fromkeys(("buffered", "fedbuff", "fedasync"), "FedAvg's neighbourhood, larger by the staleness of replies"),
    "ca2fl": "FedBuff's neighbourhood without the noise of sampling; staleness and drift remain",
    "fedreuse_async": "neighbourhood: stale and reused updates are old",
    "ditto": "global model as FedAvg; the personal models are its result",
    "dg_fedreuse": "neighbourhood: reused updates are old",
    "fedluar": "neighbourhood: recycled layers repeat an old direction",
    "lean": "FedAvg's neighbourhood while s g < a + b, which its damping ensures",
}
"""Expectation by method; methods added later have none until someone derives it."""


@dataclass(frozen=True)
class Measured:
    """Distance of one method to the minimum, relative to that of the initial model."""

    method: str
    steps: int
    cohort: int
    middle: float
    last: float
    verdict: str
    expected: str


def method_rows(names: Iterable[str] | None = None, rounds: int = 400) -> Iterator[Measured]:
    """Yield every method with 1 and 5 local steps; a method that refuses the problem gets its reason as the verdict."""
    for name in methods.names() if names is None else names:
        for steps in (1, 5):
            yield _measured(name, steps, rounds)


def _measured(name: str, steps: int, rounds: int) -> Measured:
    problem = QuadraticFederation.draw(_CLIENTS, QuadraticTraining(lr=0.05), has_buffers=False)
    problem = replace(problem, steps=np.full(_CLIENTS, steps))
    cohort = _COHORT
    try:
        budget = {"budget": Lean().smallest_budget(Scope(problem.schema, _CLIENTS, _COHORT, rounds))}
        config = methods.parse({"name": name, **(budget if name == "lean" else {})}, "method")
        cohort = _CLIENTS if config.needs.full_participation else _COHORT
        found = _distances(problem, config, cohort, rounds)
    except FedreuseError as error:
        return Measured(name, steps, cohort, float("nan"), float("nan"), f"refused: {error}", EXPECTED.get(name, "-"))
    middle, last = (float(np.mean(found[at : at + rounds // 5])) for at in (2 * rounds // 5, 4 * rounds // 5))
    return Measured(name, steps, cohort, middle, last, _verdict(middle, last), EXPECTED.get(name, "-"))


def _distances(problem: QuadraticFederation, config: MethodConfig, cohort: int, rounds: int) -> np.ndarray:
    scope = Scope(problem.schema, _CLIENTS, cohort, rounds)
    recipe = Recipe(config, dict(config.default_uplink), dict(config.default_downlink))
    resolved = config.resolve(scope)
    if resolved is not None:
        recipe = Recipe(resolved.method, resolved.uplink, resolved.downlink)
    with np.errstate(all="ignore"):
        session = problem.play(recipe.build(), rounds, Setting(cohort))
    weight = problem.examples[:, None] * problem.curvatures
    minimum = (weight * problem.optima).sum(0) / weight.sum(0)
    away = np.array([np.linalg.norm(model.weights.values - minimum) for model in session.models])
    relative: np.ndarray = away[1:] / away[0]
    return relative


def _verdict(middle: float, last: float) -> str:
    if not np.isfinite(last) or last > 1:
        return "diverges"
    if last > _NEAR:
        return "does not approach" if last > 0.9 * middle else "still approaching"
    return "minimum" if last < 1e-3 else "neighbourhood"


def convergence_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """Return rows of `method_rows`, as plain data, as a table."""
    lines = tuple(
        (f"`{row['method']}`", str(row["steps"]), str(row["cohort"]), *(_short(row[at]) for at in ("middle", "last")),
         row["verdict"], EXPECTED.get(row["method"], row["expected"]))
        for row in rows
    )  # fmt: skip
    headers = ("method", "K", "clients per round", "middle", "last", "ends in", "theory expects")
    legend = (
        "Distance to the minimum relative to the initial model's, means over the middle and last fifth of the rounds. "
        "minimum: below 0.001; neighbourhood: below 0.5."
    )
    return Table("Every method with its defaults, 20 clients", headers, lines, legend)


def lean_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """Return rows of `lean_rows` as a table."""
    lines = tuple(
        (row["method"], f"{row['budget']:g}", "-" if row["damped"] is None else "yes" if row["damped"] else "no",
         *(f"{distance:.1f}" for distance in row["distances"]), f"{row['share']:.4f}")
        for row in rows
    )  # fmt: skip
    headers = ("method", "budget", "damped", "after 30 rounds", "75", "150", "bytes / dense")
    legend = "46,730 weights, 5 of 20 clients, 5 local steps of 0.1. Distance to the fixed point of FedAvg's round."
    return Table("Two lossy links", headers, lines, legend)


def _short(number: float) -> str:
    return "-" if np.isnan(number) else f"{number:.2g}"


def lean_rows(budgets: Iterable[tuple[float, str]], rounds: int = 150) -> Iterator[dict[str, Any]]:
    """Yield `lean` on 46,730 weights with and without damping: distances to FedAvg's point, and the measured share.

    FedAvg's point is the fixed point of its round with all clients. The large coordinates are few, as in a network.
    """
    problem, point = _large()
    schema, both = problem.schema, 2 * problem.schema.dense_bytes * rounds * _COHORT
    yield {
        "method": "fedavg",
        "budget": 1.0,
        "damped": None,
        **_followed(problem, point, Recipe(methods.parse("fedavg", "method")), rounds, both),
    }
    for budget, memory in budgets:
        lean = Lean(budget, server_memory=memory)  # type: ignore[arg-type]  # one of the two
        found = lean.resolve(Scope(schema, _CLIENTS, _COHORT, rounds))
        averaging: Any = found.method
        free = replace(averaging, step=replace(averaging.step, inner=averaging.step.inner.inner))
        for is_damped, method in ((False, free), (True, averaging)):
            recipe = Recipe(method, found.uplink, found.downlink)
            name = "lean" if memory == "per_client" else "lean, shared"
            yield {
                "method": name,
                "budget": budget,
                "damped": is_damped,
                **_followed(problem, point, recipe, rounds, both),
            }


def _followed(
    problem: QuadraticFederation, point: np.ndarray, recipe: Recipe, rounds: int, dense: int
) -> dict[str, Any]:
    session = problem.play(recipe.build(), rounds, Setting(_COHORT))
    at = (rounds // 5, rounds // 2, rounds)
    distances = [float(np.linalg.norm(session.models[number].weights.values - point)) for number in at]
    return {
        "rounds": list(at),
        "distances": distances,
        "share": sum(r.total_bytes for r in session.ledger.rows) / dense,
    }


def _large() -> tuple[QuadraticFederation, np.ndarray]:
    shapes = {"a.weight": (200, 200), "b.weight": (66, 100), "b.bias": (130,)}
    weights = Schema(tuple(TensorSpec(name, shape) for name, shape in shapes.items()))
    rng, size, steps, lr = np.random.default_rng(0), weights.size, 5, 0.1
    curvatures = rng.uniform(0.2, 2.0, (_CLIENTS, size))
    target = rng.standard_normal(size) * rng.exponential(1.0, size) ** 2
    target *= 20 / np.linalg.norm(target)
    optima = target + 10 * rng.standard_normal((_CLIENTS, size)) / np.sqrt(size)
    problem = QuadraticFederation(
        curvatures, optima, np.full(_CLIENTS, 10), np.full(_CLIENTS, steps), np.zeros((_CLIENTS, 3)),
        np.ones((_CLIENTS, 3)), QuadraticTraining(lr=lr), has_buffers=False, weights=weights, initial_scale=0.0,
    )  # fmt: skip
    pulled = 1 - (1 - lr * curvatures) ** steps
    return problem, (pulled * optima).sum(0) / pulled.sum(0)
