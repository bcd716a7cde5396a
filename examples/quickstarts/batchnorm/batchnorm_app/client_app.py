"""Client app: train and evaluate on the node's own partition."""

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from batchnorm_app.task import Net, load_data
from batchnorm_app.task import test as test_fn
from batchnorm_app.task import train as train_fn

app = ClientApp()


def _received(msg):
    model = Net()
    model.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    return model


def _data(context):
    node, run = context.node_config, context.run_config
    return load_data(node["partition-id"], node["num-partitions"], run["batch-size"])


@app.train()
def train(msg: Message, context: Context):
    """Train the received model."""
    model, (trainloader, _) = _received(msg), _data(context)
    loss = train_fn(model, trainloader, context.run_config["local-epochs"], msg.content["config"]["lr"])
    metrics = MetricRecord({"train_loss": loss, "num-examples": len(trainloader.dataset)})
    content = RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics})
    return Message(content=content, reply_to=msg)


@app.evaluate()
def evaluate(msg: Message, context: Context):
    """Evaluate the received model."""
    model, (_, valloader) = _received(msg), _data(context)
    loss, accuracy = test_fn(model, valloader)
    metrics = MetricRecord({"eval_loss": loss, "eval_acc": accuracy, "num-examples": len(valloader.dataset)})
    return Message(content=RecordDict({"metrics": metrics}), reply_to=msg)
