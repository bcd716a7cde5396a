"""`fedreuse sizes`: the paper's table to the byte, measured on encoded blocks."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass

import pytest

from fedreuse.cli.sizes import PAPER, measure
from fedreuse.compression.codecs.codec import codecs
from tests.cli.conftest import Invoke

# dataset: parameters, dense bytes, signature bytes (the paper's size table)
TABLE = {
    "mnist": (421_834, 1_688_120, 1_611_304),
    "fashion_mnist": (421_834, 1_688_120, 1_611_304),
    "emnist_balanced": (426_607, 1_707_212, 1_630_396),
    "pathmnist": (422_281, 1_689_908, 1_610_788),
    "cifar10": (11_181_642, 44_765_128, 20_520),
    "cifar100": (11_227_812, 44_949_808, 205_200),
}


@pytest.mark.slow
def test_the_papers_six_rows(invoke: Invoke) -> None:
    rows = json.loads(invoke("sizes", "--json").stdout)
    sizes = {row["dataset"]: (row["parameters"], row["dense_bytes"], row["signature_bytes"]) for row in rows}
    assert sizes == TABLE
    assert {row["dataset"]: row["network"] for row in rows} == PAPER
    caches = {row["dataset"]: [round(row["cache_bytes"][n] / 1e9, 4) for n in ("50", "1000")] for row in rows}
    assert (caches["mnist"], caches["pathmnist"], caches["cifar100"]) == (
        [0.0844, 1.6881], [0.0845, 1.6899], [2.2475, 44.9498],
    )  # fmt: skip
    uploads = {row["dataset"]: row["upload_bytes"] for row in rows}
    assert (uploads["mnist"], uploads["cifar10"]) == (390_358, 10_351_858)
    savings = {row["dataset"]: row["saving"] for row in rows}
    assert savings["mnist"] == pytest.approx(0.768762, abs=5e-7)
    assert savings["cifar10"] == pytest.approx(0.768752, abs=5e-7)
    for row in rows:
        assert row["codecs"]["dense"] == {"upload_bytes": row["dense_bytes"], "saving": 0}
        assert row["codecs"]["nonzero"] == {"upload_bytes": row["dense_bytes"], "saving": 0}
        assert "top_k" not in row["codecs"]


@pytest.mark.slow
def test_dense_buffers_cost_a_little_more() -> None:
    assert measure("mnist", "cnn", buffers="dense").saving == pytest.approx(0.76841, abs=5e-6)
    assert measure("cifar10", "resnet18", buffers="dense").saving == pytest.approx(0.76809, abs=5e-6)


def test_one_row_by_hand(invoke: Invoke) -> None:
    # mlp 64-96-10 has no buffers: 64*96 + 96 + 96*10 + 10 = 7,210 numbers; head "fc": 96*10 + 10
    (row,) = json.loads(invoke("sizes", "--dataset", "digits", "--network", "mlp", "--ratio", "0.5", "--json").stdout)
    assert (row["parameters"], row["dense_bytes"], row["signature_bytes"]) == (7_210, 28_840, 3_880)
    # half of each tensor and a bitmap: 4*3072 + 768, 4*48 + 12, 4*480 + 120, 4*5 + 2
    assert row["upload_bytes"] == 13_056 + 204 + 2_040 + 22


def test_settings_of_a_network(invoke: Invoke) -> None:
    words = ("sizes", "--dataset", "digits", "--network")
    # cnn of width 4 on 8x8: conv 40, norm 8, conv 296, norm 16, fc 8*4*2 + 2 = 66, fc 2*10 + 10 = 30: in all 456
    (row,) = json.loads(invoke(*words, "{name: cnn, width: 4, hidden: 2, norm: group}", "--json").stdout)
    assert (row["parameters"], row["dense_bytes"], row["signature_bytes"]) == (456, 4 * 456, 4 * 96)
    assert row["network"] == "{name: cnn, width: 4, hidden: 2, norm: group}"
    shown = invoke(*words, "{name: cnn, norm: layer}")
    assert shown.exit_code == 2
    assert "--network.norm: input should be 'batch', 'group' or 'none', got 'layer'" in " ".join(shown.stderr.split())
    assert "--network: '{name: cnn' is not a mapping" in invoke(*words, "{name: cnn").stderr


def test_a_table_for_people(invoke: Invoke) -> None:
    shown = invoke("sizes", "--dataset", "synthetic")
    assert shown.exit_code == 0
    assert "update_fields" in shown.stdout
    assert "measured on encoded blocks" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 100


@pytest.mark.slow
def test_every_dataset_is_named_in_full_beside_every_codec(invoke: Invoke) -> None:
    shown = invoke("sizes").stdout
    assert max(map(len, shown.splitlines())) <= 100
    words = [line.split() for line in shown.splitlines()]
    for dataset in PAPER:
        assert (
            sum(dataset in line for line in words) == 4
        )  # its rows of model and update, a column of either codec table
    for codec in codecs.names():
        rows = [line for line in words if line[:1] == [codec] and len(line) == 1 + len(PAPER)]
        assert len(rows) == (0 if codec == "top_k" else 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--ratio", "0"], "must be in (0, 1], got 0.0"),
        (["--ratio", "1.5"], "must be in (0, 1], got 1.5"),
        (["--dataset", "mnits"], "did you mean 'mnist'?"),
        (["--dataset", "digits", "--network", "resnet81"], "did you mean 'resnet18'?"),
        (["--buffers", "as_weight"], "did you mean 'as_weights'?"),
        (["--dataset", "tests.cli.test_sizes:Shapeless"], "attributes `shape` and `num_classes`"),
    ],
)
def test_mistakes(invoke: Invoke, words: list[str], text: str) -> None:
    shown = invoke("sizes", *words)
    assert shown.exit_code == 2
    assert text in " ".join(shown.stderr.split())


@pytest.mark.slow
def test_no_data_is_needed() -> None:
    script = (
        "import sys\nfrom fedreuse.cli import app\n"
        "app(['sizes', '--dataset', 'digits', '--json'], standalone_mode=False)\n"
        "assert 'sklearn' not in sys.modules and 'pyarrow' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)


@dataclass(frozen=True)
class Shapeless:
    """A user's dataset without the attributes `shape` and `num_classes`."""

    def load(self, folder: object) -> None:
        raise NotImplementedError


def test_a_ratio_out_of_range_is_the_options_fault(invoke: Invoke) -> None:
    shown = invoke("sizes", "--dataset", "mnist", "--ratio", "0")
    assert shown.exit_code == 2
    assert shown.stderr == "error: --ratio must be in (0, 1], got 0.0\n"
