"""A client app that stays: a worker beside the SuperNode holds it, and the process of each message only forwards."""
