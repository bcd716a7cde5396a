"""Server app: FedAvg with evaluation at the clients and at the server."""

import json
from pathlib import Path

import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from batchnorm_app.task import Net, load_centralized_dataset, test

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train, and write the accuracies of the last round."""
    run = context.run_config
    torch.manual_seed(0)
    strategy = FedAvg(
        fraction_evaluate=run["fraction-evaluate"],
        min_train_nodes=run["min-nodes"],
        min_evaluate_nodes=run["min-nodes"],
        min_available_nodes=run["min-nodes"],
    )
    result = strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord(Net().state_dict()),
        train_config=ConfigRecord({"lr": run["learning-rate"]}),
        num_rounds=run["num-server-rounds"],
        evaluate_fn=global_evaluate,
    )
    last = run["num-server-rounds"]
    scores = {
        "clients": result.evaluate_metrics_clientapp[last]["eval_acc"],
        "server": result.evaluate_metrics_serverapp[last]["accuracy"],
    }
    Path(run["result-file"]).write_text(json.dumps(scores))


def global_evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
    """Evaluate the model on examples that no client has."""
    model = Net()
    model.load_state_dict(arrays.to_torch_state_dict())
    loss, accuracy = test(model, load_centralized_dataset())
    return MetricRecord({"accuracy": accuracy, "loss": loss})
