"""Client app: train and evaluate on the node's own partition."""

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from numpy_app.task import load_data
from numpy_app.task import test as test_fn
from numpy_app.task import train as train_fn

app = ClientApp()


@app.train()
def train(msg: Message, context: Context):
    """Train the received model."""
    run, node = context.run_config, context.node_config
    data, _ = load_data(node["partition-id"], node["num-partitions"])
    model = train_fn(
        msg.content["arrays"].to_numpy_ndarrays(),
        data,
        run["local-epochs"],
        msg.content["config"]["lr"],
        run["batch-size"],
        run["framework"],
    )
    loss, _ = test_fn(model, data)
    metrics = MetricRecord({"train_loss": loss, "num-examples": len(data[1])})
    return Message(RecordDict({"arrays": ArrayRecord(model), "metrics": metrics}), reply_to=msg)


@app.evaluate()
def evaluate(msg: Message, context: Context):
    """Evaluate the received model."""
    _, data = load_data(context.node_config["partition-id"], context.node_config["num-partitions"])
    loss, accuracy = test_fn(msg.content["arrays"].to_numpy_ndarrays(), data)
    metrics = MetricRecord({"eval_loss": loss, "eval_acc": accuracy, "num-examples": len(data[1])})
    return Message(RecordDict({"metrics": metrics}), reply_to=msg)
