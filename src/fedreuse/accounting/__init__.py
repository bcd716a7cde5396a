"""The ledger at the door, the boundaries drawn over it, work and memory."""
