"""Network, data, training and test of the app."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

TEST_EXAMPLES = 297


class Net(nn.Module):
    """A network with batch normalisation for 8x8 images: 151,498 parameters and 6 arrays of running statistics."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, padding=1),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
        )
        self.hidden = nn.Linear(64 * 4 * 4, 128)
        self.fc = nn.Linear(128, 10)

    def forward(self, x):
        """Return the logits."""
        return self.fc(torch.relu(self.hidden(self.features(x))))


def _examples():
    """Return all digits in a fixed random order."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    return torch.tensor(images[order].reshape(-1, 1, 8, 8) / 8 - 1, dtype=torch.float32), torch.tensor(labels[order])


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
    """Train with SGD and momentum, and return the mean loss."""
    optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
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
