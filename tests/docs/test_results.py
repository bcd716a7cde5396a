"""Tables of published results: every document shows what its export says; a failing run stops the build."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from operator import sub
from pathlib import Path
from statistics import fmean

import pytest

from docs.site import results
from fedreuse.lab.bench.results import read
from fedreuse.lab.gate.probe import PROBES_FILE
from fedreuse.report.measured import reached
from fedreuse.report.results import Result
from fedreuse.robustness.privacy_accountant import epsilon
from tests.lab.gate.test_probe import PROBE
from tests.report.runs import write_run

ROOT = Path(__file__).parents[2]
DATA = ("fashion_mnist", "mnist", "cifar10")
DRIFT = "drift over the update's length"
DECISIONS = {path.name[:4]: path for path in (ROOT / "docs" / "decisions").glob("*.md")}
DOCUMENTS = [
    *(ROOT / "docs" / "results").glob("*.md"),
    ROOT / "README.md",
    *(path for path in DECISIONS.values() if "\n<!-- results: " in path.read_text(encoding="utf-8")),
]


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_documents_show_what_the_results_say(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert results.filled(text) == text, f"{document.name} differs from results/; write its tables with `make tables`"


@pytest.mark.parametrize(("plan", "claims"), [("reuse", 6), ("reuse_mnist", 4)])
def test_what_is_said_of_reuse_are_the_differences_of_its_plans(plan: str, claims: int) -> None:
    text = (ROOT / "docs" / "results" / "what-we-found.md").read_text(encoding="utf-8")
    prose, table = text.split(f"<!-- results: {plan} answers -->")
    rows = [line.split(" | ") for line in table.split("**Observations by seed")[0].splitlines() if " - " in line[:80]]
    wanted = [f"{mean} ({interval})" for _, mean, interval, *_ in rows[1:]]  # below the heading
    assert len(wanted) == claims
    said = " ".join(prose.split())
    assert [each for each in wanted if each not in said] == []


@pytest.mark.parametrize(
    ("heading", "plan", "claims"),
    [
        ("Beside rivals\n", "against_rivals", 6),
        ("Beside rivals that need more bytes\n", "rivals_wider", 4),
        ("On CIFAR-10\n", "lean_cifar10", 2),
        ("At the same learning rate\n", "rivals_same_rate", 2),
    ],
)
def test_what_is_said_of_lean_are_the_differences_of_its_plans(heading: str, plan: str, claims: int) -> None:
    text = (ROOT / "docs" / "frontier.md").read_text(encoding="utf-8")
    section = text.partition(f"## {heading}")[2].partition("\n## ")[0]
    prose, _, table = section.partition(f"<!-- results: {plan} answers -->")
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| lean 0.0") and "shown" in line]
    assert len(rows) == claims
    assert [row[0] for row in rows if f"{row[1]} ({row[2]})" not in " ".join(prose.split())] == []
    assert all(row[-1] == "shown |" for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("document", ["README.md", "docs/frontier.md", "docs/results/what-we-found.md"])
def test_what_is_said_of_the_full_size_is_what_its_runs_show(document: str) -> None:
    said = " ".join((ROOT / document).read_text(encoding="utf-8").split())
    row = next(
        line for line in results.tables("full_size", "frontier").splitlines() if line.startswith("| lean 0.02 |")
    )
    _, _, difference, *_ = row.strip("| ").split(" | ")
    assert f"by {difference} points" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("document", "plan", "pair"),
    [
        ("README.md", "lean", "| lean 0.02 - dense FedAvg, averaged:"),
        ("docs/frontier.md", "lean", "| lean 0.02 - dense FedAvg, averaged:"),
        ("docs/results/what-we-found.md", "lean_cifar10", "| lean 0.02 - dense FedAvg:"),
    ],
)
def test_single_differences_in_the_prose_are_those_of_the_plans(document: str, plan: str, pair: str) -> None:
    said = " ".join((ROOT / document).read_text(encoding="utf-8").partition("<!-- end -->")[2].split())
    row = next(line for line in results.tables(plan, "answers").splitlines() if line.startswith(pair))
    _, mean, interval, *_ = row.strip("| ").split(" | ")
    assert f"{mean} ({interval})" in said


@pytest.mark.slow
def test_what_is_said_of_more_parts_is_what_their_runs_show() -> None:
    said = " ".join((ROOT / "docs" / "frontier.md").read_text(encoding="utf-8").split())
    rows = [line.strip("| ").split(" | ") for line in results.tables("lean_more_parts", "development").splitlines()]
    last = {row[0]: float(row[2]) for row in rows if len(row) == 6 and row[2][0].isdigit()}
    far = [
        last["lean 0.02"] - last[name] for name in last if name.endswith("(MIFA)") or name in ("EF21-SGDM", "SCAFCOM")
    ]
    assert f"are {min(far):.1f} to {max(far):.1f} points behind" in said
    assert max(last["Adam at the server"], last["reuse by age, with longer messages"]) < last["lean 0.02"]


@pytest.mark.slow
def test_what_is_said_of_the_last_parts_is_what_their_runs_show() -> None:
    said = " ".join((ROOT / "docs" / "frontier.md").read_text(encoding="utf-8").split())
    rows = [line.strip("| ").split(" | ") for line in results.tables("lean_last_parts", "development").splitlines()]
    last = {row[0]: float(row[2]) for row in rows if len(row) == 6 and row[2][0].isdigit()}
    lean, dense = "lean 0.02", "dense FedAvg, averaged"

    def by(name: str, other: str = lean) -> str:
        return f"{abs(last[name] - last[other]):.2f}"

    more, fading = by("twice the bytes at first"), by("residuals fade by 0.9 a round")
    assert f"by 0.9 a round are {more} and {fading} points above `lean`" in said
    norms = ("GroupNorm", "no normalisation")
    group, none = ((f"{by(f'{lean}, {norm}')} points", by(f"{dense}, {norm}", dense)) for norm in norms)
    assert f"GroupNorm costs `lean` {group[0]} and dense FedAvg {group[1]}" in said
    assert f"`lean` is {none[0]} lower and dense FedAvg {none[1]}" in said
    gates = sorted(by(name) for name in last if name.startswith("reuse by") and "max_age" not in name)
    assert f"Reuse by either gate lies {gates[0]} to {gates[1]} points below `lean`" in said
    assert f"and {by('reuse by drift, max_age 8, with longer messages')} where updates of seven rounds" in said


@pytest.mark.slow
def test_what_is_said_of_renormalised_reuse_is_what_its_runs_show() -> None:
    said = " ".join((ROOT / "docs" / "frontier.md").read_text(encoding="utf-8").split())
    rows = [line.strip("| ").split(" | ") for line in results.tables("lean_renormalised", "development").splitlines()]
    last = {row[0]: float(row[2]) for row in rows if len(row) == 6 and row[2][0].isdigit()}
    behind = last["lean 0.02"] - last["reuse by age, renormalised"]
    assert f"reuse by age comes within {behind:.2f} points of `lean`" in said


def test_what_is_said_of_the_learning_rate_are_the_effects() -> None:
    text = (ROOT / "docs" / "frontier.md").read_text(encoding="utf-8")
    section = text.partition("## At the same learning rate")[2].partition("\n## ")[0]
    said, table = " ".join(section.partition("<!--")[0].split()), section.partition("| effect |")[2]
    effects = {row[0]: f"{row[1]} ({row[2]})" for line in table.splitlines()
               if len(row := line.strip("| ").split(" | ")) == 6}  # fmt: skip
    assert f"`lean` is {effects['method']} points above" in said
    assert f"no effect that was seen, {effects['rate']}" in said


def test_what_is_said_of_the_papers_numbers_is_what_its_runs_show() -> None:
    text = (ROOT / "docs" / "results" / "what-we-found.md").read_text(encoding="utf-8")
    section = text.partition("## Are the paper's numbers reproduced?")[2].partition("\n## ")[0]
    said = " ".join(section.split())
    cells = [line.strip("| ").split(" | ") for line in section.splitlines()]
    published = [row for row in cells if len(row) == 7 and row[5][0].isdigit() and row[6] != "-"]
    means = {(row[0], row[1]): [float(cell.split(" ")[0]) for cell in row[3:]] for row in published}
    above = {of: f"{mean[0] - mean[1]:.2f}" for of, mean in means.items()}
    saved = {of: abs(mean[2] - mean[3]) for of, mean in means.items()}
    assert saved["FashionMNIST", "FedAvg"] == saved["MNIST", "FedAvg"] == 0
    assert saved["FashionMNIST", "DG"] < 0.1
    first, second = above["FashionMNIST", "FedAvg"], above["FashionMNIST", "DG"]
    assert f"by {first} points for Top-K FedAvg and {second} for DG-FedReuse" in said
    both = next(row for row in cells if len(row) == 8 and row[2][0].isdigit())
    assert (both[2], abs(float(both[4]) - float(both[5])) < 0.1) == (both[3], True)
    differences = [row for row in cells if len(row) == 6 and row[0] == "FashionMNIST" and "DG - FedAvg" in row[1]]
    by_seed = {row[1].partition(", ")[2]: row[2:] for row in differences}
    assert f"the paper has at {by_seed['paper'][-1]} points (mean and standard deviation of three seeds)" in said
    assert f"is {by_seed['runs'][-1]} here, with both signs among the seeds" in said
    assert {cell[0] for cell in by_seed["runs"][:3]} == {"+", "-"}
    best = by_seed["paper's best"][-1]
    assert f"that the paper adds ({best})" in said
    paired = next(row for row in cells if len(row) == 9 and row[:2] == ["DG-FedReuse", "Top-K FedAvg"])
    assert f"Its interval is {paired[3]} ({paired[4]}): three seeds cannot tell" in said
    least, most = (float(end) for end in paired[4].split(" to "))
    assert least < 0 < most


def test_what_is_said_of_mnist_at_full_size_is_what_was_seen() -> None:
    text = (ROOT / "docs" / "results" / "what-we-found.md").read_text(encoding="utf-8")
    section = text.partition("On MNIST (`fedreuse compare configs/paper/round90_mnist.yaml`):")[2]
    said = " ".join(section.partition("\n## ")[0].split())
    scores = {(run.variant, run.seed): 100 * (run.test_score or 0) for run in results.stored("round90_mnist")}
    cells = [line.strip("| ").split(" | ") for line in section.splitlines()]
    published = {row[1]: row for row in cells if len(row) == 7 and row[0] == "MNIST" and row[3] != "-"}
    below = {}
    for method, variant in (("FedAvg", "Top-K FedAvg"), ("DG", "DG-FedReuse")):
        mean, paper = (float(cell.split(" ")[0]) for cell in published[method][3:5])
        below[variant] = (f"{paper - scores[variant, 101]:.2f}", f"{paper - mean:.2f}")
        assert all(abs(scores[variant, seed] - paper) < 0.2 for seed in (202, 303))
    assert "With the seeds 202 and 303 all four accuracies lie within 0.20 points of the paper's means" in said
    (first, first_mean), (second, second_mean) = below.values()
    assert f"With seed 101 Top-K FedAvg is {first} points below, DG-FedReuse {second}" in said
    assert f"the means over seeds are {first_mean} and {second_mean} points below the paper's" in said
    runs, paper = (float(cell.split(" ")[0]) for cell in published["DG"][5:7])
    assert f"DG-FedReuse saves {paper - runs:.2f} points less than the paper's mean" in said
    paired = next(row for row in cells if len(row) == 9 and row[:2] == ["DG-FedReuse", "Top-K FedAvg"])
    by_seed = paired[8].split(" ")
    assert f"The difference between the methods is {paired[3]} ({paired[4]})" in said
    own = next(row[-1] for row in cells if row[:2] == ["MNIST", "DG - FedAvg, paper"])
    assert f"with the other two it is {by_seed[1]} and {by_seed[2]}. The paper has {own}" in said
    assert published["FedAvg"][5:] == ["76.88 ± 0.00", "76.88 ± 0.00"]


def test_what_is_said_of_last_models_is_what_was_seen() -> None:
    text = (ROOT / "docs" / "results" / "what-we-found.md").read_text(encoding="utf-8")
    said = " ".join(text.partition("Why is seed 101 so low?")[2].partition("\n## ")[0].split())
    seen = read(results.SCORES / "last-models.json").rows
    mnist = {(row["variant"], row["seed"]): row for row in seen if row["dataset"] == "mnist"}
    low = [mnist[variant, 101] for variant in ("Top-K FedAvg", "DG-FedReuse")]
    merged, again = (" and ".join(f"{100 * row[key][8]:.1f}" for row in low) for key in ("recall", "recall_again"))
    assert f"they have {merged} % of its training examples right" in said
    assert f"they bring the 8 to {again} %" in said
    assert all(0.4 < row["cohort_share"][8] / row["share"][8] < 0.55 for row in low)
    others = [row for (_, seed), row in mnist.items() if seed != 101]
    assert len(others) == 4
    assert min(min(row["recall"]) for row in others) > 0.98
    seven = mnist["Top-K FedAvg", 202]
    assert 0.4 < seven["cohort_share"][7] / seven["share"][7] < 0.55
    deep = [row for row in seen if row["dataset"] == "cifar10"]
    again = " and ".join(f"{100 * row['score_again']:.1f}" for row in deep)
    assert f"have {again} % of the training examples right instead of 10.0" in said
    assert {f"{row['score']:.3f}" for row in deep} == {"0.100"}


def test_what_is_said_of_scores_from_round_to_round_is_what_was_seen() -> None:
    text = (ROOT / "docs" / "results" / "what-we-found.md").read_text(encoding="utf-8")
    said = " ".join(text.split())
    deepest = {}
    for run in results.stored("every_round_mnist"):
        rounds, scores = run.history.taken("validation_score")
        falls = {int(at): 100 * (before - now) for at, before, now in zip(rounds[1:], scores, scores[1:], strict=False)}
        late = {at: fall for at, fall in falls.items() if at > 11}
        assert [at for at, fall in late.items() if fall > 1] == [14, 32]
        assert max(late, key=late.__getitem__) == 32
        assert abs(scores[32] - scores[30]) < 0.001  # rounds 33 and 31
        deepest[run.variant] = f"{late[32]:.2f}"
    assert f"One round can cost {deepest['Top-K FedAvg']} points" in said
    assert f"the deepest by {deepest['dense running statistics']}" in said


def arrivals(text: str, study: str) -> dict[str, tuple[float, float]]:
    """By variant the mean round of arrival, and what had crossed by then."""
    table = text.partition(f"<!-- results: {study} arrival 0.95 -->")[2].partition("<!-- end -->")[0]
    cells = [line.strip("| ").split(" | ") for line in table.splitlines()]
    return {row[0]: (float(row[4]), float(row[5])) for row in cells if len(row) == 6 and row[1].isdigit()}


def test_what_is_said_of_a_warm_up() -> None:
    text = (ROOT / "docs" / "frontier.md").read_text(encoding="utf-8")
    found, said = arrivals(text, "warm_up"), " ".join(text.split())
    dense, lean = found["dense FedAvg"], found["lean 0.02"]
    twice, four = found["twice the bytes at first"], found["four times the bytes at first"]
    assert f"arrives after {twice[0]} rounds instead of {lean[0]}, with four times as many after {four[0]} too" in said
    assert f"{twice[1]} and {four[1]} MB have crossed instead of {lean[1]}" in said
    shares = [f"{dense[1] / one[1]:.0f}" for one in (twice, four, lean)]
    assert f"a {shares[0]}th and a {shares[1]}th of dense FedAvg's bytes instead of a {shares[2]}th" in said
    assert f"which is {1.2 * dense[0]:.1f} here" in said
    assert min(rounds for name, (rounds, _) in found.items() if name != "dense FedAvg") > 1.2 * dense[0]


@pytest.mark.slow
def test_what_is_said_of_the_goals_of_lean() -> None:
    text = (ROOT / "docs" / "frontier.md").read_text(encoding="utf-8")
    section = text.partition("## What was asked, and what was reached")[2].partition("\n## ")[0]
    cells = [line.strip("| ").split(" | ") for line in section.splitlines() if "| lean 0.0" in line]
    rows = [row for row in cells if row[0] in DATA]
    least = {data: [float(row[3].split("(")[1].split(" ")[0]) for row in rows if row[0] == data] for data in DATA}
    most = {data: [float(row[3].split(" ")[3].rstrip(")")) for row in rows if row[0] == data] for data in DATA}
    within = {"lean 0.05": -0.3, "lean 0.02": -0.5, "lean 0.01": -1.5}
    assert all(float(row[3].split(" ")[0]) >= within[row[1]] for row in rows)  # estimates
    assert {data for data in DATA if min(least[data]) > -0.5 and max(most[data]) < 0.5} == {"mnist"}
    reached = {row[0]: [] for row in rows}
    for row in (row for row in rows if row[1] == "lean 0.02"):
        reached[row[0]].append(float(row[5]) <= 1.2 and float(row[6]) >= 40)
    assert reached == {"fashion_mnist": [True, True], "mnist": [False], "cifar10": [True, True]}
    means = arrivals(section, "first_rounds")
    (dense_rounds, dense_bytes), (rounds, nbytes) = means["dense FedAvg"], means["lean 0.02"]
    assert (f"{rounds / dense_rounds:.2f}", f"{dense_bytes / nbytes:.0f}") == ("1.30", "41")
    assert means["lean 0.02, not averaged"][0] == rounds
    predicted = text.partition("<!-- results: lean predicted -->")[2].partition("<!-- end -->")[0]
    off = [float(line.strip("| ").split(" | ")[-1]) for line in predicted.splitlines() if line.startswith("| lean 0.0")]
    assert len(off) == 3
    assert max(map(abs, off)) <= 10


def test_what_is_said_of_the_factorial_are_its_effects() -> None:
    text = (ROOT / "docs" / "results" / "what-we-found.md").read_text(encoding="utf-8")
    section = text.partition("## Do reuse and Top-K add up?")[2].partition("\n## ")[0]
    said, effects = " ".join(section.partition("<!--")[0].split()), section.partition("| effect |")[2]
    rows = [line.split(" | ") for line in effects.splitlines() if line.startswith(("| reuse", "| codec"))]
    assert len(rows) == 3
    assert [row for row in rows if f"{row[1]} ({row[2]})" not in said] == []
    assert f"a mean effect of {rows[0][5].rstrip(' |')} points" in said


@pytest.mark.slow
def test_what_is_said_of_the_ablations_is_what_they_show() -> None:
    text = (ROOT / "docs" / "results" / "what-we-found.md").read_text(encoding="utf-8")
    section = text.partition("## What does each part of DG-FedReuse do?")[2].partition("\n## ")[0]
    said, table = " ".join(section.partition("<!--")[0].split()), section.partition("| variant | minus |")[2]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if " | the paper | 3 |" in line]
    by_name = {row[0]: row for row in rows}
    assert len(by_name) == 8
    assert f"{by_name['no age limit'][3]} ({by_name['no age limit'][4]})" in said
    others = [abs(float(row[3])) for name, row in by_name.items() if name != "no age limit"]
    assert f"{max(others):.2f} points at most" in said
    digests = {(one.variant, one.seed): one.model_digest for one in results.stored("ablations")}
    assert all(digests["no quota", seed] == digests["the paper", seed] for seed in (101, 202, 303))


def test_what_is_said_of_rounding_and_coding_is_what_was_seen() -> None:
    said = " ".join(DECISIONS["0077"].read_text(encoding="utf-8").split())
    rows = {row["way"]: row for row in read(ROOT / "docs" / "bench" / "lean-coding.json").rows if "way" in row}
    assert all(max(map(sub, row["energy_at_random"], row["energy"])) < 0 for row in rows.values())
    up, down = ({name: fmean(seen) for name, seen in rows[way].items() if isinstance(seen, list)} for way in rows)
    gain, slope = (up["energy_by_row"] - up["energy"], _slope(up))
    assert f"buy {gain:.4f} of the energy for {100 * up['row_scale_bytes'] / up['bytes']:.1f} % of the bytes" in said
    assert f"more coordinates would buy {slope * up['row_scale_bytes']:.4f} for them" in said
    gain, slope = (down["energy_by_row"] - down["energy"], _slope(down))
    share, worth = (100 * one / down["bytes"] for one in (down["row_scale_bytes"], gain / slope))
    assert f"Down they buy {gain:.4f} for {share:.1f} %, as much as {worth:.1f} % more bytes would" in said
    saved = [100 * (1 - one["entropy_bytes"] / one["bytes"]) for one in (up, down)]
    assert f"would save {saved[0]:.1f} % up and {saved[1]:.1f} % down" in said


def _slope(seen: dict[str, float]) -> float:
    """Energy that a byte buys, up to a tenth more bytes."""
    return (seen["more_energy"] - seen["energy"]) / (seen["more_bytes"] - seen["bytes"])


def test_what_is_said_of_sums_of_broadcasts_is_what_was_seen() -> None:
    seen = read(ROOT / "docs" / "bench" / "lean-coding.json")
    ratios: dict[int, dict[int, float]] = {}
    for row in (row for row in seen.rows if row["part"] == "sums"):
        ratios.setdefault(row["after"], {})[row["missed"]] = row["sum_bytes"] / row["apart_bytes"]
    half, end = ratios.values()
    assert (max(end), min(end)) == (32, 1)
    assert (end[32], end[1]) == (min(end.values()), max(end.values()))
    words = f"{end[32]:.1f} to {end[1]:.1f} times as long as the broadcasts themselves"
    said = {number: " ".join(DECISIONS[number].read_text(encoding="utf-8").split()) for number in ("0073", "0077")}
    assert f"{words}, for 32 to 1 missed ones" in said["0073"]
    assert f"{words} for 32 to 1 missed ones" in said["0077"]
    apart = max(abs(half[missed] - end[missed]) for missed in half)
    assert f"after {min(ratios)} broadcasts the ratios differ from these by {apart:.2f} at most" in said["0073"]
    assert f"for {seen.settings['sums']['rounds']} rounds" in said["0073"]


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(results, "STORED", tmp_path)
    entries = []
    for variant, gain in (("a", 0.0), ("b", 0.125)):
        for seed in (1, 2):
            name = f"{variant}-{seed}"
            write_run(tmp_path / "small" / name, seed=seed, test_score=0.5 + gain)
            entries.append({"folder": name, "variant": variant, "labels": {"method": variant, "seed": f"seed {seed}"}})
    (tmp_path / "small" / "study.json").write_text(json.dumps({"study": "small", "runs": entries}))
    return tmp_path / "small"


@pytest.mark.slow
@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("comparison", "62.50"),
        ("paired", "12.5"),
        ("runs", "| b-2 |"),
        ("frontier", "12.50 (12.50 to 12.50)"),
        ("costs", "| b | 62.5 | 0.00 | 0.00 |"),
        ("development", "| b | 60.00 | 50.00 |"),
    ],
)
def test_a_marked_place_gets_its_table_and_keeps_it(kind: str, shown: str) -> None:
    text = results.filled(f"before\n<!-- results: small {kind} -->\nold\n<!-- end -->\nafter")
    assert shown in text
    assert "old" not in text
    assert results.filled(text) == text


def test_what_crossed_is_compared_with_the_measured_first_variant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two clients, two rounds: 20 and 1 kB each way and round; messages are 110 B down and 30 B up, three times."""
    monkeypatch.setattr(results, "STORED", tmp_path)
    entries = []
    for variant, crossing in (("dense", 20_000), ("lean", 1_000)):
        write_run(tmp_path / "nodes" / variant, crossing=crossing)
        entries.append({"folder": variant, "variant": variant, "labels": {"method": variant}})
    (tmp_path / "nodes" / "study.json").write_text(json.dumps({"study": "nodes", "runs": entries}))
    reached = results.tables("nodes", "target", "0.6")
    assert "| dense | 2 | 3 | 0.00 | 0.00 | 0.04 | 0.04 | - | - | 1.5 |" in reached
    assert "| lean | not reached | - | - | - | - | - | - | - | 1.5 |" in results.tables("nodes", "target", "0.7")
    text = results.tables("nodes", "transport")
    assert "| dense | 50.00 | 0.00 | 0.00 | 0.04 | 0.04 | 0.00 | 0.00 | 0.00 | 10.0 | 9.9 | 2 |" in text
    assert "| lean | 50.00 | 0.00 | 0.00 | 0.00 | 0.00 | 95.00 | 95.00 | 95.00 | 0.5 | 0.4 | 2 |" in text


@pytest.mark.slow
@pytest.mark.usefixtures("stored")
def test_a_table_of_measured_bytes_needs_a_meter() -> None:
    with pytest.raises(ValueError, match="a: a number is missing"):
        results.tables("small", "transport")


def test_probes_of_a_gate_have_tables() -> None:
    drawn = results.tables("gate", "gate")
    assert "**Reliability of the gate's score**" in drawn
    assert "Unverified" not in drawn


def test_probes_without_a_checksum_are_called_unverified(stored: Path) -> None:
    place = stored.parent / "old"
    place.mkdir()
    (place / PROBES_FILE).write_text(json.dumps({"probes": [PROBE, {**PROBE, "client": 2, "harm": -1.0}]}))
    assert results.tables("old", "gate").endswith("Unverified: written before gate studies had checksums.")


def test_what_is_said_of_the_gate_is_what_its_probes_show() -> None:
    text = (ROOT / "docs" / "results" / "what-we-found.md").read_text(encoding="utf-8")
    said = " ".join(text.partition("## Does the gate see anything?")[2].partition("<!--")[0].split())
    drawn = results.tables("gate", "gate")
    rows = {row[0]: row[1:] for line in drawn.splitlines() if len(row := line.strip("| ").split(" | ")) == 8}
    score, whole, number = (rows[name][0] for name in ("proxy score, one draw", "proxy over all examples", "chance"))
    assert f"{score} for one draw of the score and {whole} for all examples, {number} for the random number" in said
    assert f"reaches {rows[DRIFT][0]}; age alone, {rows['age'][0]}" in said
    against = rows["gradient against cached update"]
    assert f"against the cached update, {against[0]}, do not" in said
    assert f"(rho {against[5]})" in said
    assert "in 130 of 179 cases" in drawn
    reliability = [row for line in drawn.splitlines() if len(row := line.strip("| ").split(" | ")) == 10][1:]
    assert min(float(row[5]) for row in reliability) > 0.95
    shares = [round(float(row[6].rstrip("%"))) for row in reliability]
    assert f"({min(shares)} to {max(shares)} % of the draws)" in said


@pytest.mark.slow
def test_a_run_that_fails_is_in_no_document(stored: Path) -> None:
    (stored / "a-1" / "test-opened.json").write_text(json.dumps({"result": {"score": 0.1}}))
    with pytest.raises(ValueError, match="results/small: left out: a, seed 1"):
        results.tables("small", "runs")


@pytest.mark.slow
@pytest.mark.usefixtures("stored")
def test_the_two_axes_of_a_study_are_crossed(stored: Path) -> None:
    content = json.loads((stored / "study.json").read_text())
    for entry, (attack, rule) in zip(content["runs"], [(a, r) for a in "xy" for r in "uv"], strict=True):
        entry["labels"] = {"attack": attack, "rule": rule}
    (stored / "study.json").write_text(json.dumps(content))
    assert "| x | 50.0 | 50.0 |\n| y | 62.5 | 62.5 |" in results.tables("small", "crossed")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["comparison", "runs", "frontier", "costs", "paired", "crossed"])
def test_tables_with_test_scores_say_once_how_often_the_split_was_opened(stored: Path, kind: str) -> None:
    for run in sorted(stored.glob("*-*")):
        score = json.loads((run / "summary.json").read_text())["test_score"]
        opened = {"digest": "of the split", "model": run.name, "opened": "then", "result": {"score": score}}
        (run / "test-opened.json").write_text(json.dumps(opened))
    behind = "Behind the test scores stand 4 openings (1 configuration) of the test split of digits."
    assert results.tables("small", kind).count(behind) == 1
    shutil.rmtree(stored / "b-2")
    results.stored.cache_clear()
    behind = "Behind the test scores stand 3 openings (1 configuration) of the test split of digits.\n\nPartial: "
    assert kind == "comparison" or behind in results.tables("small", kind)
    assert "Behind the test scores" not in results.tables("small", "development")


@pytest.mark.parametrize(("name", "kind"), [("lean_mnist", "answers"), ("six_nodes", "transport")])
def test_published_tables_of_plans_and_nodes_say_it_too(name: str, kind: str) -> None:
    assert results.tables(name, kind).count("Behind the test scores stand") == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["comparison", "runs", "frontier", "costs", "paired"])
def test_a_study_that_lacks_runs_says_so_below_every_table(stored: Path, kind: str) -> None:
    shutil.rmtree(stored / "b-2")
    assert results.tables("small", kind).endswith("Partial: 3 of 4 runs of small are complete. Absent: b, seed 2.")


def test_scores_without_runs_are_called_that() -> None:
    text = results.tables("private-digits", "costs")
    assert text.endswith("before there were exports: no audit vouches for them.")
    assert "| private, noise 4 | 4.56 | 91.5 | 43.34 | 43.34 |" in text


ROBUST = results.scores_alone("robust-digits")


def score(attack: str, rule: str) -> float:
    return fmean(run.test_score for run in ROBUST if (run.labels["attack"], run.labels["rule"]) == (attack, rule))


def test_one_rule_stays_within_three_points_of_the_clean_run_and_costs_it_at_most_one() -> None:
    clean, rule = score("no attack", "mean"), "centred clipping, capped"
    assert score("no attack", rule) >= clean - 0.01
    fifth = {run.labels["attack"] for run in ROBUST if run.labels["attack"].endswith(", 20 %")}
    assert len(fifth) == 10
    assert min(score(attack, rule) for attack in fifth) >= clean - 0.03
    assert min(score(attack, rule) for attack in fifth) >= score("no attack", rule) - 0.03  # of its own clean run, too
    assert score("false counts, 20 %", "centred clipping") < 0.2  # the cap is needed
    rules = {run.labels["rule"] for run in ROBUST}
    third = {run.labels["attack"] for run in ROBUST if run.labels["attack"].endswith(", 30 %")}
    assert all(min(score(attack, each) for attack in third) < clean - 0.03 for each in rules)


def test_the_same_rule_stands_on_images() -> None:
    found = {(run.labels["attack"], run.labels["rule"]): run for run in results.stored("robust_fashion_mnist")}
    attacks = {attack for attack, _ in found} - {"no attack"}
    clean = found["no attack", "mean"].test_score
    below = {attack: clean - found[attack, "centred clipping, capped"].test_score for attack in (*attacks, "no attack")}
    assert len(attacks) == 10
    assert f"{100 * below.pop('no attack'):.1f}" == "0.3"
    assert max(below, key=below.__getitem__) == "false counts, 20 %"
    assert f"{100 * max(below.values()):.1f}" == "2.3"
    assert len([attack for attack in attacks if (attack, "mean") not in found]) == 3
    fooled = {rule: run.attack_success for (attack, rule), run in found.items() if attack == "backdoor, 20 %"}
    assert max(fooled["median"], fooled["multi-Krum"]) < 0.1 < 0.8 < fooled["centred clipping, capped"]
    assert found["replay, 20 %", "mean"].test_score < clean - 0.3
    others = {rule for _, rule in found} - {"mean"}
    assert all(found["replay, 20 %", rule].test_score > found["no attack", rule].test_score - 0.01 for rule in others)


def test_what_narrow_lines_carry_up_to_a_score() -> None:
    said = " ".join((ROOT / "docs" / "measuring.md").read_text(encoding="utf-8").split())
    crossed = {}
    for run in results.stored("narrow_lines"):
        there = reached(run, 0.8)
        crossed[run.variant] = sum(round(there.bytes_of["interface", way] / 1e6, 2) for way in ("up", "down"))
    assert f"`lean` gets there with {crossed['lean 0.05']:.2f} MB of packets" in said
    assert f"dense FedAvg needs {crossed['dense FedAvg']:.2f} MB, Top-K {crossed['Top-K FedAvg']:.2f} MB" in said
    found = " ".join((ROOT / "docs" / "results" / "what-we-found.md").read_text(encoding="utf-8").split())
    assert (
        f"dense FedAvg needs {crossed['dense FedAvg']:.2f} MB of packets both ways, acknowledgements and repetitions "
        f"included, Top-K {crossed['Top-K FedAvg']:.2f}, Top-K with error feedback "
        f"{crossed['Top-K + error feedback']:.2f}, DG-FedReuse {crossed['DG-FedReuse + Top-K']:.2f}, and `lean` 0.05 "
        f"{crossed['lean 0.05']:.2f}."
    ) in found


@pytest.mark.slow
def test_what_is_said_of_work_and_memory_is_what_the_runs_took() -> None:
    text = (ROOT / "docs" / "results" / "what-we-found.md").read_text(encoding="utf-8")
    said = " ".join(text.partition("## What does it cost in work and memory?")[2].partition("\n## ")[0].split())
    runs = results.stored("reuse")

    def mean(variant: str, value: Callable[[Result], float]) -> float:
        return fmean(value(run) for run in runs if run.variant == variant)

    work = {name: mean(name, lambda run: run.work["flops"]) for name in ("Top-K", "DG-FedReuse", "age alone")}
    less = {name: f"{100 * (1 - flops / work['Top-K']):.0f} % less" for name, flops in work.items()}
    assert f"computes {less['DG-FedReuse']} than FedAvg, and age alone {less['age alone']}" in said
    assert work["DG-FedReuse"] - work["age alone"] > 0.5 * (work["Top-K"] - work["age alone"])
    decided, reused = (mean("DG-FedReuse", lambda run, kind=kind: 100 * run.events.get(kind, 0) / 600)
                       for kind in ("fresh: score", "reused"))  # fmt: skip
    assert f"made {decided:.1f} % of the selected clients train; {reused:.1f} % were reused" in said
    median = text.partition("**To validation score 0.85: medians")[2].partition("\n\n`fedreuse show")[0]
    flops = {
        row[0]: row[4].split(" (")[0] for line in median.splitlines() if len(row := line.strip("| ").split(" | ")) == 5
    }
    assert f"{flops['DG-FedReuse']} GFLOP against {flops['Top-K']} in the median" in said
    assert f"with error feedback {flops['DG + EF']} against {flops['Top-K + EF']}" in said
    assert f"Age alone: {flops['age alone']}." in said
    digits = {run.variant: [one for one in results.stored("digits_gate") if one.variant == run.variant]
              for run in results.stored("digits_gate")}  # fmt: skip
    score = fmean(100 * run.events.get("fresh: score", 0) / 300 for run in digits["DG-FedReuse"])
    assert f"it alone made {score:.1f} % of the selected clients train" in said
    line = next(row for row in results.tables("digits_gate", "frontier").splitlines() if row.startswith("| age alone"))
    assert f"accuracy differs by {line.strip('| ').split(' | ')[2]} points" in said
    gate, age = (fmean(run.work["flops"] for run in digits[name]) for name in ("DG-FedReuse", "age alone"))
    assert 0.24 < 1 - age / gate < 0.3  # a quarter
    held = {name: mean(name, lambda run: run.memory_bytes["peak.server.all"]) for name in ("Top-K", "DG-FedReuse")}
    assert f"{held['DG-FedReuse'] / held['Top-K']:.0f}" == "11"


def test_what_the_privacy_table_shows() -> None:
    runs = {run.variant: run for run in results.scores_alone("private-digits")}
    spent = {name: run.epsilon for name, run in runs.items()}
    assert spent.pop("FedAvg") is None
    assert spent["private, noise 8"] < spent["private, noise 4"] < spent["private, noise 2"]
    # who is reused by age is public, so decayed releases count less; who is reused by score is not
    assert spent["noise 4, reuse by age"] < spent["private, noise 4"] == spent["noise 4, reuse by proxy"]
    assert spent["private, noise 4"] == epsilon(4.0, 15, 1e-5)
