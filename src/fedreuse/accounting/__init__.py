"""Accounting of messages, bytes under each boundary, computation and memory."""
