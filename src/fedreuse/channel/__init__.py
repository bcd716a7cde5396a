"""Channels: compressed messages between a server and its clients in a loop of your own, without engine or framework."""

from fedreuse.channel.client_channel import ClientChannel, SendBack
from fedreuse.channel.server_channel import AskAgain, ServerChannel

__all__ = ["AskAgain", "ClientChannel", "SendBack", "ServerChannel"]
