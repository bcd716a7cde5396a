"""Conformance suites for methods, links, client stores and executors, and a small federation without torch."""
