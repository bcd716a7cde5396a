"""Protocols and values that every part shares; no torch, no method, no input or output."""
