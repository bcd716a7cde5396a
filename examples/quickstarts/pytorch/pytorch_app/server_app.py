"""Server app: FedAvg with evaluation at the clients and at the server."""

import json
from functools import partial
from pathlib import Path

from flwr.app import ArrayRecord, ConfigRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from pytorch_app.task import get_state, load_centralized_dataset, make_net, test

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train, and write the accuracies of the last round."""
    run = context.run_config
    strategy = FedAvg(
        fraction_evaluate=run["fraction-evaluate"],
        min_train_nodes=run["min-nodes"],
        min_evaluate_nodes=run["min-nodes"],
        min_available_nodes=run["min-nodes"],
    )
    result = strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord(get_state(make_net(run["network"]))),
        train_config=ConfigRecord({"lr": run["learning-rate"]}),
        num_rounds=run["num-server-rounds"],
        evaluate_fn=partial(global_evaluate, run["network"]),
    )
    last = run["num-server-rounds"]
    scores = {
        "clients": result.evaluate_metrics_clientapp[last]["eval_acc"],
        "server": result.evaluate_metrics_serverapp[last]["accuracy"],
    }
    Path(run["result-file"]).write_text(json.dumps(scores))


def global_evaluate(network: str, server_round: int, arrays: ArrayRecord) -> MetricRecord:
    """Evaluate the model on examples that no client has."""
    model = make_net(network)
    model.load_state_dict(arrays.to_torch_state_dict(), strict=False)
    loss, accuracy = test(model, load_centralized_dataset())
    return MetricRecord({"accuracy": accuracy, "loss": loss})
