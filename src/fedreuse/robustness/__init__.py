"""Robustness: attacks on a federation, and client-level differential privacy."""
