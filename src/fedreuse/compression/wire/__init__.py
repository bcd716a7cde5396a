"""The wire format: blocks (tensors) in parcels (groups) in envelopes (messages), to and from bytes."""
