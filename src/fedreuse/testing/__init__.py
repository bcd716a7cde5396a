"""Conformance suites for methods, links, client stores and executors, and a federation without torch to run them on."""
