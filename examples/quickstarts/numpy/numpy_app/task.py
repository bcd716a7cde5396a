"""Network, data, training and test of the app; `framework` of the run configuration chooses who computes gradients."""

import numpy as np
from sklearn.datasets import load_digits

TEST_EXAMPLES = 297
HIDDEN = 2000


def get_model():
    """Return the arrays of a network with one hidden layer: 150,010 parameters."""
    rng = np.random.default_rng(0)
    first = rng.normal(0, (2 / 64) ** 0.5, (64, HIDDEN)).astype(np.float32)
    last = rng.normal(0, (1 / HIDDEN) ** 0.5, (HIDDEN, 10)).astype(np.float32)
    return [first, np.zeros(HIDDEN, np.float32), last, np.zeros(10, np.float32)]


def _examples():
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    return (images[order] / 16).astype(np.float32), labels[order]


def load_data(partition_id, num_partitions):
    """Return training and validation examples of one partition."""
    images, labels = _examples()
    mine = np.arange(TEST_EXAMPLES + partition_id, len(labels), num_partitions)
    first = int(0.8 * len(mine))
    return [(images[part], labels[part]) for part in (mine[:first], mine[first:])]


def load_centralized_dataset():
    """Return the examples that no partition holds."""
    images, labels = _examples()
    return images[:TEST_EXAMPLES], labels[:TEST_EXAMPLES]


def _numpy_gradients(model, images, labels):
    hidden = np.maximum(images @ model[0] + model[1], 0)
    scores = _softmax(hidden @ model[2] + model[3])
    scores[np.arange(len(labels)), labels] -= 1
    scores /= len(labels)
    inner = (scores @ model[2].T) * (hidden > 0)
    return [images.T @ inner, inner.sum(0), hidden.T @ scores, scores.sum(0)]


def _jax_gradients():
    import jax

    def loss(model, images, labels):
        logits = jax.numpy.maximum(images @ model[0] + model[1], 0) @ model[2] + model[3]
        return -jax.nn.log_softmax(logits)[jax.numpy.arange(len(labels)), labels].mean()

    return jax.jit(jax.grad(loss))


def train(model, data, epochs, lr, batch_size, framework):
    """Train with SGD and momentum, and return the arrays."""
    (images, labels), model = data, [array.copy() for array in model]
    gradients_of = _jax_gradients() if framework == "jax" else _numpy_gradients
    momentum = [np.zeros_like(array) for array in model]
    for _ in range(epochs):
        order = np.random.default_rng().permutation(len(labels))
        for start in range(0, len(order), batch_size):
            part = order[start : start + batch_size]
            gradients = gradients_of(model, images[part], labels[part])
            for array, moving, gradient in zip(model, momentum, gradients, strict=True):
                moving[...] = 0.9 * moving + np.asarray(gradient)
                array -= np.float32(lr) * moving
    return model


def test(model, data):
    """Return mean loss and accuracy."""
    images, labels = data
    scores = _softmax(np.maximum(images @ model[0] + model[1], 0) @ model[2] + model[3])
    loss = -np.log(scores[np.arange(len(labels)), labels] + 1e-12).mean()
    return float(loss), float((scores.argmax(1) == labels).mean())


def _softmax(logits):
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)
