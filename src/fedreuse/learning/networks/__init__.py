"""Networks: torch modules by name, built for an input shape and a number of classes."""

from fedreuse.learning.networks import cnn, mlp, resnet18  # noqa: F401  (each registers itself)
