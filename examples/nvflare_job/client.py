"""An NVFlare client: trains a small network on its share of the digits with NumPy; it knows nothing of compression.

python client.py SCORES     # started by NVFlare; SCORES is the file that the accuracy of each model is appended to
"""

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import nvflare.client as flare
from sklearn.datasets import load_digits

SIZES = (64, 512, 256, 10)
BATCH = 32


def split(flat):
    """Return the weights and biases of each layer as views of the flat vector."""
    layers, start = [], 0
    for size_in, size_out in pairwise(SIZES):
        weight = flat[start : start + size_in * size_out].reshape(size_in, size_out)
        start += weight.size
        layers.append((weight, flat[start : start + size_out]))
        start += size_out
    return layers


def forward(layers, inputs):
    """Return the outputs of every layer."""
    outputs = [inputs]
    for number, (weight, bias) in enumerate(layers):
        result = outputs[-1] @ weight + bias
        outputs.append(result if number == len(layers) - 1 else np.maximum(result, 0))
    return outputs


def train(flat, inputs, labels, rng, lr=0.1):
    """Train in place: one epoch of plain SGD."""
    layers = split(flat)
    for rows in np.array_split(rng.permutation(len(labels)), max(1, len(labels) // BATCH)):
        outputs = forward(layers, inputs[rows])
        scores = np.exp(outputs[-1] - outputs[-1].max(1, keepdims=True))
        gradient = scores / scores.sum(1, keepdims=True)
        gradient[np.arange(len(rows)), labels[rows]] -= 1
        gradient /= len(rows)
        for (weight, bias), output in zip(reversed(layers), reversed(outputs[:-1]), strict=True):
            below = gradient @ weight.T * (output > 0)
            weight -= lr * (output.T @ gradient)
            bias -= lr * gradient.sum(0)
            gradient = below


def accuracy(flat, inputs, labels):
    """Return the share of correct answers."""
    return float((forward(split(flat), inputs)[-1].argmax(1) == labels).mean())


def main():
    """Answer the server's models until the job ends."""
    flare.init()
    site = int(flare.get_site_name().rpartition("-")[2])
    inputs, labels = load_digits(return_X_y=True)
    inputs = (inputs / 16).astype(np.float32)
    order = np.random.default_rng(0).permutation(len(labels))
    test, mine = order[:360], order[360:][site - 1 :: 3]
    while flare.is_running():
        model = flare.receive()
        flat = model.params["numpy_key"].copy()
        score = accuracy(flat, inputs[test], labels[test])
        with Path(sys.argv[1]).open("a") as file:
            file.write(f"round {model.current_round}: accuracy {score:.3f}\n")
        rng = np.random.default_rng((site, model.current_round))
        train(flat, inputs[mine], labels[mine], rng)
        meta = {"NUM_STEPS_CURRENT_ROUND": len(mine)}
        flare.send(flare.FLModel(params={"numpy_key": flat}, metrics={"accuracy": score}, meta=meta))


if __name__ == "__main__":
    main()
