"""The strategy for existing apps: to the bit what the engine does in one process, through Flower's own interface."""

from __future__ import annotations

import dataclasses
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import FedAvg, Result
from torch import nn

from fedreuse.accounting.ledger import Ledger, LedgerRow
from fedreuse.config.recipe import Recipe
from fedreuse.core.cohort import Cohort
from fedreuse.core.errors import ConfigError, RunError
from fedreuse.deploy.existing_app.array_layout import ArrayLayout, arrays_of
from fedreuse.deploy.existing_app.decorator import fedreuse_train
from fedreuse.deploy.existing_app.strategy import FedReuseStrategy
from fedreuse.engine.executors.serial import Serial
from fedreuse.engine.faults import FaultPlan, Listed, ListedFault, NoFaults
from fedreuse.engine.schedule import AlwaysAvailable, Schedule
from fedreuse.robustness.privacy_accountant import epsilon
from fedreuse.testing.cases import Case
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Setting
from tests.conformance.cases import CASES
from tests.deploy.app_grid import FIRST_NODE, AppGrid, quadratic_app, record_of
from tests.federation import parameters

ROUNDS = 3
EVERYBODY = NoFaults()
FEDERATION = QuadraticFederation.draw(4, QuadraticTraining(lr=0.05, momentum=0.9, noise=0.3), seed=3)
TOP_K = {"update": {"name": "top_k", "ratio": 0.3}}


plain_strategy = partial(FedReuseStrategy, bounds="none")  # the bits of the method itself


def strategy_of(case: Case, **flower: object) -> FedReuseStrategy:
    uplink = {"update": case.uplink} if case.uplink is not None else {}
    return plain_strategy(
        {"name": case.method, **case.options},
        {**uplink, **case.other_uplinks},
        {"model": case.downlink, **case.other_downlinks},
        buffers=case.buffers,
        seed=FEDERATION.seed,
        **flower,
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Scheduled(QuadraticFederation):
    """The same clients, selected as a strategy selects them."""

    look_ahead: int = 0

    def cohort(self, round_number: int, size: int) -> Cohort:
        schedule = Schedule.draw(len(self.examples), ROUNDS, size, AlwaysAvailable(), self.seed)
        return dataclasses.replace(schedule.cohort(round_number, self.look_ahead), population=self.population)


def simulated(
    recipe: Recipe, faults: FaultPlan = EVERYBODY, federation: QuadraticFederation = FEDERATION
) -> tuple[dict[str, np.ndarray], Ledger]:
    """The same rounds in one process, with the population known from the start."""
    scheduled = Scheduled(**vars(federation), look_ahead=recipe.method.needs.look_ahead)
    setting = Setting(cohort=4, executor=Serial("strict"), faults=faults, shares_initial=False)
    session = scheduled.play(recipe.build(), ROUNDS, setting)
    return arrays_of(ArrayLayout.of(record_of(federation)).record(session.model)), session.ledger


def untimed(rows: list[LedgerRow]) -> list[LedgerRow]:
    """Rows without the client's own account of its work, which an app does not give in full."""
    return [dataclasses.replace(row, work=LedgerRow.__dataclass_fields__["work"].default) for row in rows]


def is_possible(case: Case) -> bool:
    needs = case.config.needs
    if case.method == "fedluar" and case.options.get("blocks", 1) == 1:
        return False  # the quadratics have one layer: a run that always recycles it is refused
    is_other = needs.asynchronous or case.config.is_personal  # refused, see below
    if case.method in ("evofed", "decomfl", "fedkseed") or case.options.get("server_memory") == "none":
        return False  # they build on an initial model that clients make: refused, see below
    return not (needs.gradients or needs.corrections or needs.steps or is_other)


def bits(arrays: dict[str, np.ndarray]) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in arrays.items()}


@pytest.mark.slow
@pytest.mark.parametrize("case", parameters(case for case in CASES if is_possible(case)))
def test_every_method_that_needs_only_the_trained_model_ends_in_the_same_bits(case: Case, tmp_path: Path) -> None:
    strategy = strategy_of(case, min_available_nodes=4, fraction_evaluate=0.0)
    grid = AppGrid(tmp_path, quadratic_app(FEDERATION), 4)
    result = strategy.start(grid, record_of(FEDERATION), ROUNDS)
    expected, ledger = simulated(strategy.resolved)
    assert bits(arrays_of(result.arrays)) == bits(expected)
    assert untimed(strategy.ledger.rows) == untimed(ledger.rows)


def start(
    folder: Path,
    strategy: FedAvg,
    spoil: Any = None,
    federation: QuadraticFederation = FEDERATION,
    **options: object,
) -> Result:
    grid = AppGrid(folder, quadratic_app(federation), 4)
    grid.spoil = spoil or grid.spoil
    return strategy.start(grid, record_of(federation), ROUNDS, timeout=0.5, **options)


@pytest.mark.slow
def test_dense_fedavg_is_flowers_fedavg_to_rounding(tmp_path: Path) -> None:
    # the decorated app answers Flower's own strategy as before; no buffers, for Flower makes fractions of counters
    plain = dataclasses.replace(FEDERATION, has_buffers=False)
    flower = start(tmp_path / "flower", FedAvg(min_available_nodes=4), federation=plain)
    ours = start(tmp_path / "ours", plain_strategy(min_available_nodes=4), federation=plain)
    for name, array in arrays_of(flower.arrays).items():
        np.testing.assert_allclose(arrays_of(ours.arrays)[name], array, rtol=1e-12)
    for told in ("train_metrics_clientapp", "evaluate_metrics_clientapp"):
        by_round = {number: dict(metrics) for number, metrics in getattr(flower, told).items()}
        assert sorted(by_round) == [1, 2, 3]
        for number, metrics in by_round.items():
            assert dict(getattr(ours, told)[number]) == pytest.approx(metrics, rel=1e-12)


@pytest.mark.slow
def test_metrics_of_the_app_are_averaged_by_its_examples(tmp_path: Path) -> None:
    result = start(tmp_path, plain_strategy(min_available_nodes=4))
    by_hand = float((FEDERATION.examples * FEDERATION.steps).sum() / FEDERATION.examples.sum())
    assert result.train_metrics_clientapp[1]["steps"] == pytest.approx(by_hand)


@pytest.mark.slow
def test_the_apps_own_evaluation_function_is_called_as_flower_does(tmp_path: Path) -> None:
    seen = []

    def evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
        seen.append((server_round, arrays["fc.bias"].numpy().tobytes()))
        return MetricRecord({"round": server_round})

    result = start(tmp_path, plain_strategy(min_available_nodes=4), evaluate_fn=evaluate)
    assert [number for number, _ in seen] == [0, 1, 2, 3]
    assert len({data for _, data in seen}) == 4  # the model moves in every round
    assert seen[-1][1] == result.arrays["fc.bias"].numpy().tobytes()


def test_part_of_the_nodes_trains_in_a_round(tmp_path: Path) -> None:
    strategy = plain_strategy("mifa", TOP_K, seed=FEDERATION.seed, fraction_train=0.5, min_available_nodes=4)
    start(tmp_path, strategy)
    assert [sum(event.round_number == number for event in strategy.ledger.events) for number in (1, 2, 3)] == [2, 2, 2]


@pytest.mark.slow
def test_a_lost_reply_is_a_lost_client_to_the_bit(tmp_path: Path) -> None:
    strategy = plain_strategy("clag", seed=FEDERATION.seed, min_available_nodes=4, fraction_evaluate=0.0)

    def lose(request: Message, reply: Message) -> Message | None:
        is_it = request.metadata.group_id == "2" and request.metadata.dst_node_id == FIRST_NODE + 1
        return None if is_it else reply

    result = start(tmp_path, strategy, lose)
    expected, ledger = simulated(strategy.recipe, faults=Listed((ListedFault(2, 1, "lost"),)))
    assert bits(arrays_of(result.arrays)) == bits(expected)
    assert strategy.ledger.events == ledger.events


@pytest.mark.slow
@pytest.mark.parametrize("what", ["everything", "the memory"])
def test_a_client_that_lost_its_disk_starts_over(tmp_path: Path, what: str) -> None:
    strategy = plain_strategy("clag", seed=FEDERATION.seed, min_available_nodes=4, fraction_evaluate=0.0)

    def wipe(request: Message, reply: Message) -> Message:
        if request.metadata.group_id == "1":
            folder = tmp_path / f"node-{request.metadata.dst_node_id - FIRST_NODE}"
            if folder.name == "node-2":
                gone = [folder] if what == "everything" else list(folder.glob("*/client-*.safetensors"))
                assert gone
                for path in gone:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
        return reply

    start(tmp_path, strategy, wipe)
    lost = [(event.round_number, event.client) for event in strategy.ledger.events if event.outcome == "lost"]
    assert lost == [(2, 2)]  # it says that it forgot, and is at first contact in round 3
    kinds = {row.kind for row in strategy.ledger.rows if row.client == 2 and row.round_number == 2}
    assert kinds == {"train", "forgot"}


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        ("proxskip", "method proxskip sets the number of local steps"),
        ("gradskip", "method gradskip sets the number"),
        ("ditto", "method ditto keeps models at clients"),
    ],
)
def test_what_no_existing_app_can_do_is_refused_by_name(method: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=f"^{reason}.*fedreuse deploy"):
        plain_strategy(method)


@pytest.mark.parametrize("method", ["fedbuff", {"name": "lean", "budget": 0.9, "buffer": 2}])
def test_asynchronous_methods_are_refused_by_name(method: object) -> None:
    with pytest.raises(ConfigError, match=r"^method (fedbuff|lean) is asynchronous, but an app waits"):
        plain_strategy(method)


@pytest.mark.parametrize("method", ["scaffold", "fedprox", "dg_fedreuse", {"name": "movement", "inner": "fedprox"}])
def test_what_needs_network_and_loss_is_refused_by_name_without_them(tmp_path: Path, method: object) -> None:
    name = method if isinstance(method, str) else method["name"]  # type: ignore[index]
    with pytest.raises(RunError, match=rf"method {name} .* without network.*@fedreuse_train\(network=Net"):
        start(tmp_path, plain_strategy(method, min_available_nodes=4))  # type: ignore[arg-type]


def test_a_round_without_a_start() -> None:
    with pytest.raises(RunError, match=r"start\(grid"):
        plain_strategy().configure_train(1, ArrayRecord(), None, None)


@pytest.mark.slow
def test_two_starts_in_one_app_do_not_mix(tmp_path: Path) -> None:
    strategy = plain_strategy("clag", seed=FEDERATION.seed, min_available_nodes=4, fraction_evaluate=0.0)
    grid = AppGrid(tmp_path, quadratic_app(FEDERATION), 4)
    first = strategy.start(grid, record_of(FEDERATION), ROUNDS)
    second = strategy.start(grid, record_of(FEDERATION), ROUNDS)
    assert bits(arrays_of(first.arrays)) == bits(arrays_of(second.arrays))


class Quadratic(nn.Module):
    """A client's quadratic as a torch network: the same three weights, each a parameter."""

    def __init__(self) -> None:
        super().__init__()
        for spec in FEDERATION.schema.weights:
            name, _, leaf = spec.name.rpartition(".")
            if not hasattr(self, name):
                self.add_module(name, nn.Module())
            values = torch.zeros(spec.shape, dtype=torch.float64)
            self.get_submodule(name).register_parameter(leaf, nn.Parameter(values))

    def loss(self, client: int) -> torch.Tensor:
        weights = torch.cat([weight.reshape(-1) for weight in self.parameters()])
        away = weights - torch.from_numpy(FEDERATION.optima[client])
        return 0.5 * (torch.from_numpy(FEDERATION.curvatures[client]) * away * away).sum()


def torch_app() -> ClientApp:
    """An ordinary torch app: its own network, loss and loop."""
    app = ClientApp()

    def losses(network: Quadratic, context: Context) -> list[torch.Tensor]:
        return [network.loss(context.node_config["partition-id"])]

    @app.train()
    @fedreuse_train(network=Quadratic, loss=losses)
    def train(message: Message, context: Context) -> Message:
        network, client = Quadratic(), context.node_config["partition-id"]
        network.load_state_dict(message.content["arrays"].to_torch_state_dict())
        rule = FEDERATION.training
        optimizer = torch.optim.SGD(network.parameters(), lr=rule.lr, momentum=rule.momentum)
        for _ in range(FEDERATION.steps[client]):
            optimizer.zero_grad()
            network.loss(client).backward()
            optimizer.step()
        metrics = MetricRecord({"num-examples": int(FEDERATION.examples[client])})
        content = RecordDict({"arrays": ArrayRecord(network.state_dict()), "metrics": metrics})
        return Message(content=content, reply_to=message)

    return app


GATE = {"name": "proxy", "tau_start": 0.3, "tau_floor": 0.05, "max_age": 3, "batches": 1}


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [
        {"name": "fedprox", "mu": 0.5},
        {"name": "scaffold"},
        {"name": "scaffold", "option": "I"},
        {"name": "scaffold", "momentum": "outside", "wire": "derived"},
        {"name": "dg_fedreuse", "gate": GATE, "mu": 0.1},
        {"name": "movement", "inner": {"name": "dg_fedreuse", "gate": {"name": "quantile", "batches": 1}}},
    ],
    ids=str,
)
def test_with_network_and_loss_methods_that_need_gradients_are_the_engines_own(method: dict, tmp_path: Path) -> None:
    exact = dataclasses.replace(
        FEDERATION, has_buffers=False, training=dataclasses.replace(FEDERATION.training, noise=0.0)
    )
    strategy = plain_strategy(method, seed=exact.seed, min_available_nodes=4, fraction_evaluate=0.0)
    result = strategy.start(AppGrid(tmp_path, torch_app(), 4), record_of(exact), ROUNDS)
    expected, ledger = simulated(strategy.recipe, federation=exact)
    for name, array in arrays_of(result.arrays).items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-10)
    assert [event.outcome for event in strategy.ledger.events] == [event.outcome for event in ledger.events]
    assert [row.total_bytes for row in strategy.ledger.rows] == [row.total_bytes for row in ledger.rows]
    if "dg" in str(method):
        assert {event.outcome for event in ledger.events} == {"fresh", "reused"}  # otherwise this shows little


@pytest.mark.slow
def test_a_private_mean_draws_a_secret_of_its_own_and_tells_epsilon(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rule = {"name": "averaging", "aggregate": {"name": "private_mean", "clip": 0.5, "noise": 2.0}}
    ends = []
    for number in range(2):
        grid = AppGrid(tmp_path / str(number), quadratic_app(FEDERATION), 4)
        strategy = plain_strategy(rule, fraction_evaluate=0.0, seed=FEDERATION.seed)
        with caplog.at_level("INFO", "flwr"):
            ends.append(strategy.start(grid, record_of(FEDERATION), 2, timeout=1).arrays)
    first, second = (arrays_of(end) for end in ends)
    assert not any(np.array_equal(first[name], second[name]) for name in first if first[name].dtype.kind == "f")
    told = f"fedreuse round 2: epsilon {epsilon(2.0, 2, 1e-5):.3f} so far (delta 1e-05)"
    assert told in caplog.text


def test_members_are_bounded_by_default(tmp_path: Path) -> None:
    strategy = FedReuseStrategy(seed=FEDERATION.seed, min_available_nodes=4, fraction_evaluate=0.0)
    result = start(tmp_path / "bounded", strategy)
    plain = start(
        tmp_path / "plain", plain_strategy(seed=FEDERATION.seed, min_available_nodes=4, fraction_evaluate=0.0)
    )
    assert strategy.bounds == "median"
    assert bits(arrays_of(result.arrays)) != bits(arrays_of(plain.arrays))  # the median norm bounds the longer half
    private = {"name": "averaging", "aggregate": {"name": "private_mean", "clip": 0.5, "noise": 2.0}}
    assert FedReuseStrategy(private).bounds == "none"
    with pytest.raises(ConfigError, match="bounds must be median or none"):
        FedReuseStrategy(bounds="some")  # type: ignore[arg-type]
