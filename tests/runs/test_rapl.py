"""Energy counters: packages alone, counters that start over, and machines that show none."""

from __future__ import annotations

from pathlib import Path

from fedreuse.runs.rapl import PackageEnergy


def write(folder: Path, **microjoules: int) -> None:
    for name, number in microjoules.items():
        place = folder / name.replace("_", ":").replace("rapl:", "intel-rapl:", 1)
        place.mkdir(parents=True, exist_ok=True)
        (place / "energy_uj").write_text(f"{number}\n")
        (place / "max_energy_range_uj").write_text("10000000\n")


def test_joules_of_all_packages_since_the_last_look(tmp_path: Path) -> None:
    write(tmp_path, rapl_0=1_000_000, rapl_1=9_000_000, rapl_0_0=500_000)
    energy = PackageEnergy(tmp_path)
    write(tmp_path, rapl_0=3_500_000, rapl_1=1_000_000, rapl_0_0=600_000)  # the second one started over
    assert energy.take() == 2.5 + 2.0
    assert energy.take() == 0.0


def test_where_nothing_can_be_read_there_is_no_number(tmp_path: Path) -> None:
    assert PackageEnergy(tmp_path / "absent").take() is None
    write(tmp_path, rapl_0=1)
    energy = PackageEnergy(tmp_path)
    (tmp_path / "intel-rapl:0" / "energy_uj").write_text("no number")
    assert energy.take() is None
