"""The server: federated averaging, with a look at the test examples after every round."""

import numpy as np
import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from fedreuse.deploy import FedReuseStrategy

from digits_app.task import Net, load_test_data, test

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    torch.manual_seed(0)
    arrays = ArrayRecord(Net().state_dict())
    strategy = FedReuseStrategy({"name": "fed_ef", "codec": {"name": "top_k", "ratio": 0.05}}, downlink={"model": "delta"},
        fraction_evaluate=0.0, min_available_nodes=context.run_config["num-clients"],
    )
    result = strategy.start(
        grid=grid,
        initial_arrays=arrays,
        num_rounds=context.run_config["num-rounds"],
        train_config=ConfigRecord({"lr": context.run_config["learning-rate"]}),
        evaluate_fn=evaluate,
    )
    np.savez(context.run_config["model-file"], **{name: array.numpy() for name, array in result.arrays.items()})


def evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
    net = Net()
    net.load_state_dict(arrays.to_torch_state_dict())
    loss, accuracy = test(net, load_test_data())
    return MetricRecord({"loss": loss, "accuracy": accuracy})
