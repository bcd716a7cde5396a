"""The ledger of messages, the boundaries drawn over it, work and memory."""
