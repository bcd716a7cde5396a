"""The CPU is told by its model and its instruction set."""

import platform

from fedreuse.core.cpu import cpu


def test_it_names_the_machine_first():
    told = cpu()
    assert told.keys() == {"model", "instruction_set"}
    assert told["instruction_set"][0] == platform.machine()


def test_flags_are_read_as_whole_words(monkeypatch, tmp_path):
    info = tmp_path / "cpuinfo"
    monkeypatch.setattr("fedreuse.core.cpu.Path", lambda _: info)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("platform.processor", lambda: "unknown")
    assert cpu() == {"model": "unknown", "instruction_set": ["x86_64"]}
    info.write_text("processor\t: 0\nmodel name\t: Fast 3000\nflags\t\t: fpu avx2 fma4 fma\n\npower management\n")
    assert cpu() == {"model": "Fast 3000", "instruction_set": ["x86_64", "avx2", "fma"]}
    info.write_text("processor\t: 0\n")
    assert cpu() == {"model": "unknown", "instruction_set": ["x86_64"]}
