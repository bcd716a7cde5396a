"""Conformance checks of methods, links, client stores and executors; a failed check raises AssertionError.

METHOD_CHECKS, LINK_CHECKS, STORE_CHECKS and EXECUTOR_CHECKS list the single checks by name, so that a test can run
them one by one; `check_method`, `check_link`, `check_store` and `check_executor` run all of them.
"""

from fedreuse.testing.conformance.executors import EXECUTOR_CHECKS, check_executor
from fedreuse.testing.conformance.links import LINK_CHECKS, check_link
from fedreuse.testing.conformance.methods import METHOD_CHECKS, check_card, check_method, check_table
from fedreuse.testing.conformance.stores import STORE_CHECKS, check_store

__all__ = [
    "EXECUTOR_CHECKS",
    "LINK_CHECKS",
    "METHOD_CHECKS",
    "STORE_CHECKS",
    "check_card",
    "check_executor",
    "check_link",
    "check_method",
    "check_store",
    "check_table",
]
