"""The client: trains where its data is."""

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from fedreuse.deploy import fedreuse_train

from digits_app.task import Net, load_data
from digits_app.task import train as train_fn

app = ClientApp()


@app.train()
@fedreuse_train
def train(msg: Message, context: Context):
    net = Net()
    net.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    partition, partitions = context.node_config["partition-id"], context.run_config["num-clients"]
    loader = load_data(partition, partitions, seed=msg.content["config"]["server-round"])
    loss = train_fn(net, loader, context.run_config["local-epochs"], msg.content["config"]["lr"])
    metrics = MetricRecord({"train_loss": loss, "num-examples": len(loader.dataset)})
    content = RecordDict({"arrays": ArrayRecord(net.state_dict()), "metrics": metrics})
    return Message(content=content, reply_to=msg)
