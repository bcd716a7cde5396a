"""The CPU is told by its model and its instruction set."""

import platform

from fedreuse.core.cpu import cpu


def test_it_names_the_machine_first():
    told = cpu()
    assert told.keys() == {"model", "instruction_set"}
    assert told["instruction_set"][0] == platform.machine()
