"""Datasets by name: downloaded, generated, or read from the user's own files; one file each."""
