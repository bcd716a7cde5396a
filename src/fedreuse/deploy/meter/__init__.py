"""Byte meters between nodes and server, which can also limit bandwidth, add delay and lose packets."""
