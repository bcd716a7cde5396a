"""Freed memory is kept: a large tensor comes back without page faults."""

from __future__ import annotations

import resource

import torch

from fedreuse.learning.allocator import keep_freed_memory


def faults_of_a_large_tensor() -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(4_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_a_freed_tensor_is_not_faulted_in_again() -> None:
    if not keep_freed_memory():  # not glibc: nothing is promised
        return
    for _ in range(20):  # the first few leave small pieces between them and cannot be joined
        faults_of_a_large_tensor()
    # 16 MB are 3,907 pages of 4 kB; what is left are small pieces of the interpreter
    assert min(faults_of_a_large_tensor() for _ in range(3)) < 400
