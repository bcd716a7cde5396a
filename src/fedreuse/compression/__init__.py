"""Compression: stateless codecs, links with state at sender and receiver, and the wire format."""
