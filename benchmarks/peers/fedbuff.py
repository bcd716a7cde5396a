"""FedBuff beside FLSim's: the same arrivals through both servers, and how far their models are apart.

python -m benchmarks.peers.fedbuff record arrivals.npz          with this package
python benchmarks/peers/fedbuff.py compare arrivals.npz         with FLSim 0.1.0, which needs Python 3.10 or older

`record` plays an asynchronous federation of quadratics on uneven lines and stores the update and age of every arrival
and the models after every step. `compare` feeds updates and ages to FLSim's aggregator and staleness weight. FLSim sums
the buffer, so its server learning rate is that of the paper divided by K.
"""

from __future__ import annotations

import sys

import numpy as np

__all__ = ["compare", "record"]

BUFFER, AT_WORK, CLIENTS, STEPS, SERVER_LR, EXPONENT = 3, 6, 10, 40, 0.7, 0.5


def record(path: str) -> None:
    """Run FedBuff of this package and store what arrived and the models."""
    from fedreuse.engine.clock import Clock
    from fedreuse.engine.devices import Draw, Profile
    from fedreuse.testing.cases import Case
    from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Setting

    federation = QuadraticFederation.draw(
        CLIENTS, QuadraticTraining(lr=0.05, momentum=0.9, noise=0.3), has_buffers=False
    )
    clock = Clock(Profile(up=Draw(low=20.0, high=400.0), down=200.0, latency=0.5).fleet(CLIENTS, 3))
    method = Case("fedbuff", {"buffer": BUFFER, "server_lr": SERVER_LR, "staleness": EXPONENT}).build()
    session = federation.play(method, STEPS, Setting(cohort=AT_WORK, clock=clock))
    models = np.stack([model.weights.values for model in session.models])
    updates, ages = [], []
    for event in session.ledger.events:
        asked = event.round_number - (event.age or 0)
        trained = federation.trainer(event.client, asked).train(session.models[asked - 1]).model
        updates.append(trained.weights.values - models[asked - 1])
        ages.append(event.age or 0)
    np.savez(path, models=models, updates=np.stack(updates), ages=np.array(ages))


def compare(path: str) -> tuple[float, int]:
    """Return the largest difference between FLSim's models and the stored ones, and the largest age."""
    import torch
    from flsim.interfaces.model import IFLModel
    from flsim.optimizers.async_aggregators import FedAvgWithLRFedBuffAggregatorConfig
    from flsim.utils.async_trainer.async_staleness_weights import PolynomialStalenessWeightConfig
    from hydra.utils import instantiate
    from omegaconf import OmegaConf

    class Weights(IFLModel):  # type: ignore[misc]  # FLSim has no types
        """A model of nothing but weights."""

        def __init__(self, values: np.ndarray) -> None:
            self.module = torch.nn.Module()
            self.module.weights = torch.nn.Parameter(torch.tensor(values))

        def fl_get_module(self) -> torch.nn.Module:
            return self.module

        def fl_forward(self, batch: object) -> None:
            del batch

        def fl_create_training_batch(self, **options: object) -> None:
            del options

        def fl_cuda(self) -> None:
            """Stay on the CPU."""

        def get_eval_metrics(self, batch: object) -> None:
            del batch

        def get_num_examples(self, batch: object) -> int:
            del batch
            return 1

    with np.load(path) as stored:
        models, updates, ages = stored["models"], stored["updates"], stored["ages"]
    server = Weights(models[0])
    buffered = FedAvgWithLRFedBuffAggregatorConfig(lr=SERVER_LR / BUFFER, buffer_size=BUFFER)
    aggregator = instantiate(OmegaConf.structured(buffered), global_model=server)
    discount = instantiate(OmegaConf.structured(PolynomialStalenessWeightConfig(exponent=EXPONENT, avg_staleness=0)))
    apart = 0.0
    for number, (update, age) in enumerate(zip(updates, ages), start=1):  # noqa: B905 - as in Python 3.9
        aggregator.zero_grad()
        delta = Weights(-update)  # FLSim: before minus after
        has_stepped = aggregator.on_client_training_end(delta, delta, weight=discount.weight(int(age)))
        assert has_stepped == (number % BUFFER == 0)
        if has_stepped:
            found = server.module.get_parameter("weights").detach().numpy()
            apart = max(apart, float(np.abs(found - models[number // BUFFER]).max()))
    return apart, int(ages.max())


if __name__ == "__main__":
    command, file = sys.argv[1:]
    if command == "record":
        record(file)
    else:
        apart, oldest = compare(file)
        sys.stdout.write(
            f"largest difference {apart:.3g} over {STEPS} steps of {BUFFER} replies, the oldest {oldest} steps old\n"
        )
