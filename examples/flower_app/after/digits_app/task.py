"""Data, network, training and test of the app."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

TEST_EXAMPLES = 297


class Net(nn.Module):
    """A small network for 8x8 images."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        )
        self.hidden = nn.Linear(64 * 4 * 4, 128)
        self.fc = nn.Linear(128, 10)

    def forward(self, x):
        return self.fc(torch.relu(self.hidden(self.features(x))))


def _examples():
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    inputs = torch.tensor(images[order].reshape(-1, 1, 8, 8) / 16, dtype=torch.float32)
    return TensorDataset(inputs, torch.tensor(labels[order]))


def load_data(partition_id, num_partitions, seed=0):
    """The training examples of one partition."""
    everything = _examples()
    mine = range(TEST_EXAMPLES + partition_id, len(everything), num_partitions)
    shuffle = torch.Generator().manual_seed(seed)
    return DataLoader(torch.utils.data.Subset(everything, mine), batch_size=32, shuffle=True, generator=shuffle)


def load_test_data():
    """The examples that nobody trains on."""
    return DataLoader(torch.utils.data.Subset(_examples(), range(TEST_EXAMPLES)), batch_size=256)


def train(net, loader, epochs, lr):
    """Plain SGD; returns the mean loss."""
    optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
    net.train()
    total = 0.0
    for _ in range(epochs):
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(inputs), labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
    return total / (epochs * len(loader))


def test(net, loader):
    """Mean loss and accuracy."""
    net.eval()
    loss = correct = count = 0
    with torch.no_grad():
        for inputs, labels in loader:
            outputs = net(inputs)
            loss += nn.functional.cross_entropy(outputs, labels, reduction="sum").item()
            correct += (outputs.argmax(1) == labels).sum().item()
            count += len(labels)
    return loss / count, correct / count
