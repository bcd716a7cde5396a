"""Attacks by Byzantine clients, the same in every executor, one file each."""
