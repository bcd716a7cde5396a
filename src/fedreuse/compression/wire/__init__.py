"""What crosses the border, to and from bytes: blocks in parcels in envelopes."""
