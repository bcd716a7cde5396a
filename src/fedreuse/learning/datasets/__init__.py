"""The datasets by name; importing this package registers them and reads nothing."""

from fedreuse.learning.datasets import cifar, digits, files, mnist, pathmnist, synthetic, text

__all__ = ["cifar", "digits", "files", "mnist", "pathmnist", "synthetic", "text"]
