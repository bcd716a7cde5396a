"""Client app: train and evaluate on the node's own partition."""

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from pytorch_app.task import get_state, load_data, make_net
from pytorch_app.task import test as test_fn
from pytorch_app.task import train as train_fn

app = ClientApp()


def _received(msg, context):
    model = make_net(context.run_config["network"])
    model.load_state_dict(msg.content["arrays"].to_torch_state_dict(), strict=False)
    return model


def _data(context):
    node, run = context.node_config, context.run_config
    return load_data(node["partition-id"], node["num-partitions"], run["batch-size"])


@app.train()
def train(msg: Message, context: Context):
    """Train the received model."""
    model, (trainloader, _) = _received(msg, context), _data(context)
    loss = train_fn(model, trainloader, context.run_config["local-epochs"], msg.content["config"]["lr"])
    metrics = MetricRecord({"train_loss": loss, "num-examples": len(trainloader.dataset)})
    content = RecordDict({"arrays": ArrayRecord(get_state(model)), "metrics": metrics})
    return Message(content=content, reply_to=msg)


@app.evaluate()
def evaluate(msg: Message, context: Context):
    """Evaluate the received model."""
    model, (_, valloader) = _received(msg, context), _data(context)
    loss, accuracy = test_fn(model, valloader)
    metrics = MetricRecord({"eval_loss": loss, "eval_acc": accuracy, "num-examples": len(valloader.dataset)})
    return Message(content=RecordDict({"metrics": metrics}), reply_to=msg)
