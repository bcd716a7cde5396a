"""Resident client apps: a worker beside the SuperNode keeps the app in memory; processes of messages only forward."""
