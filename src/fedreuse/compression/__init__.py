"""Compression: stateless codecs, links with memory at both ends, and the wire format."""
