"""Networks, data, training and test of the app; `network` of the run configuration chooses the network."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

TEST_EXAMPLES = 297


class LeNet(nn.Module):
    """LeNet for 32x32 colour images: 62,006 parameters."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        """Return the logits."""
        x = functional.max_pool2d(functional.relu(self.conv1(x)), 2)
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2)
        x = functional.relu(self.fc1(torch.flatten(x, 1)))
        return self.fc3(functional.relu(self.fc2(x)))


class Transformer(nn.Module):
    """A vision transformer of the Hugging Face library, with random weights, or LoRA adapters on a frozen one."""

    def __init__(self, lora):
        super().__init__()
        from transformers import ViTConfig, ViTForImageClassification

        sizes = {"hidden_size": 192, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 768}
        none = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        torch.manual_seed(0)  # every node has the same frozen weights
        self.vit = ViTForImageClassification(ViTConfig(image_size=32, patch_size=8, num_labels=10, **sizes, **none))
        if lora:
            from peft import LoraConfig, get_peft_model

            layers = ["q_proj", "k_proj", "v_proj", "o_proj", "fc1", "fc2"]
            self.vit = get_peft_model(self.vit, LoraConfig(r=16, target_modules=layers, modules_to_save=["classifier"]))

    def forward(self, x):
        """Return the logits."""
        return self.vit(pixel_values=x).logits


def _batchnorm():
    """Return a network with batch normalization: 151,562 parameters and running statistics of 2 layers."""
    return nn.Sequential(
        *(nn.Conv2d(3, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU()),
        *(nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(64 * 4 * 4, 128), nn.ReLU(), nn.Linear(128, 10)),
    )


NETWORKS = {
    "lenet": LeNet,
    "batchnorm": _batchnorm,
    "transformer": lambda: Transformer(lora=False),
    "lora": lambda: Transformer(lora=True),
}


def make_net(name):
    """Return the network with a name, with the same initial weights everywhere."""
    torch.manual_seed(0)
    return NETWORKS[name]()


def get_state(net):
    """Return the arrays that server and clients exchange: the state, or of frozen networks the trained weights."""
    trained = {name for name, weight in net.named_parameters() if weight.requires_grad}
    is_frozen = len(trained) < len(list(net.parameters()))
    return {name: tensor for name, tensor in net.state_dict().items() if name in trained or not is_frozen}


def _examples():
    """Return all digits, scaled to 32x32 and three channels, in a fixed random order."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    images = torch.tensor(images[order].reshape(-1, 1, 8, 8) / 8 - 1, dtype=torch.float32)
    return functional.interpolate(images, (32, 32)).repeat(1, 3, 1, 1), torch.tensor(labels[order])


def load_data(partition_id, num_partitions, batch_size):
    """Return training and validation batches of one partition."""
    images, labels = _examples()
    mine = torch.arange(TEST_EXAMPLES + partition_id, len(labels), num_partitions)
    first = int(0.8 * len(mine))
    parts = [TensorDataset(images[part], labels[part]) for part in (mine[:first], mine[first:])]
    return DataLoader(parts[0], batch_size=batch_size, shuffle=True), DataLoader(parts[1], batch_size=256)


def load_centralized_dataset():
    """Return the examples that no partition holds."""
    images, labels = _examples()
    return DataLoader(TensorDataset(images[:TEST_EXAMPLES], labels[:TEST_EXAMPLES]), batch_size=256)


def train(net, trainloader, epochs, lr):
    """Train with SGD and momentum, transformers with AdamW, and return the mean loss."""
    weights = [weight for weight in net.parameters() if weight.requires_grad]
    is_transformer = isinstance(net, Transformer)
    optimizer = torch.optim.AdamW(weights, lr=lr) if is_transformer else torch.optim.SGD(weights, lr=lr, momentum=0.9)
    net.train()
    total = 0.0
    for _ in range(epochs):
        for images, labels in trainloader:
            optimizer.zero_grad()
            loss = functional.cross_entropy(net(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
    return total / (epochs * len(trainloader))


def test(net, testloader):
    """Return mean loss and accuracy."""
    net.eval()
    loss = correct = count = 0
    with torch.no_grad():
        for images, labels in testloader:
            outputs = net(images)
            loss += functional.cross_entropy(outputs, labels, reduction="sum").item()
            correct += (outputs.argmax(1) == labels).sum().item()
            count += len(labels)
    return loss / count, correct / count
