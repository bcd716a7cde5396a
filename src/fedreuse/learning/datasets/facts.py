"""Facts of each published dataset: files, counts, classes, pixel statistics and the digest of its arrays."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FACTS", "Facts", "Files"]


@dataclass(frozen=True)
class Files:
    """Canonical file names of one published form of a dataset, by the array they hold."""

    train_inputs: tuple[str, ...]
    train_labels: tuple[str, ...]
    test_inputs: tuple[str, ...]
    test_labels: tuple[str, ...]

    def names(self) -> tuple[str, ...]:
        """Return every file name once, in order."""
        return tuple(dict.fromkeys(self.train_inputs + self.train_labels + self.test_inputs + self.test_labels))


@dataclass(frozen=True)
class Facts:
    """Facts of a dataset that are known before any file is opened."""

    num_classes: int
    shape: tuple[int, ...]
    examples: dict[str, int]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    forms: tuple[Files, ...] = ()
    layouts: tuple[str, ...] = ()
    """Folders, below the folder of all datasets, into which other tools put these files."""
    is_balanced: bool = False
    is_augmented: bool = False
    pickled: tuple[str, ...] = ()
    """Files of a published form that is refused, because reading pickles can run code."""
    digest: str | None = None
    """SHA-256 of all arrays; None if the published files were out of reach, so that no digest is pinned."""
    array_digests: tuple[str, ...] = ()
    """SHA-256 of train inputs, train labels, test inputs and test labels, which show the damaged file."""

    @property
    def has_met_published_files(self) -> bool:
        """True if the reader was tried on the published files, and not only on files made by tests."""
        return self.digest is not None


def _idx(train: str, test: str) -> Files:
    return Files(*((f"{split}-{kind}-ubyte",) for split in (train, test) for kind in ("images-idx3", "labels-idx1")))


def _batches(train: tuple[str, ...], test: str) -> Files:
    return Files(train, train, (test,), (test,))


FACTS: dict[str, Facts] = {
    "digits": Facts(
        num_classes=10,
        shape=(1, 8, 8),
        examples={"train": 1442, "test": 355},
        mean=(0.3052,),
        std=(0.3760,),
        digest="c2fe6236f9044e3733661e3a63d4ef9275e3b1a7c1902326a7564cda7b14eec8",
        array_digests=(
            "d1e64762103d093c2a9a6c4224f037a3fc9478f17680106104bfe89de2856804",
            "928701f88c59bebbcec822c3eba7541fac359e03d98c2645eba5ab7dd2b9a1ff",
            "74f18aa98648244e6ce0fb5eb81c28336e01e9e8ae3a4b8784cd01a132a929ad",
            "5181b57dc415d3218be9ed81a0dd679216d40f6ddde8d73ffec23068ba4052a0",
        ),
    ),
    "mnist": Facts(
        num_classes=10,
        shape=(1, 28, 28),
        examples={"train": 60_000, "test": 10_000},
        mean=(0.1307,),
        std=(0.3081,),
        forms=(_idx("train", "t10k"),),
        layouts=("MNIST/raw",),
        digest="11de40ec28a7c150195b86fd3a818037e73f1e8d04ab1621d02836dbdf8a2d54",
        array_digests=(
            "b54ccc41cbf15a6935ce4afe2353d2b96e822f604c229b7981356bc0fe4864b7",
            "709bf8e34a5eecad0ba9e319b1d154e9069f3e5492f2bb65e5da9a7ce1e406b2",
            "c1e336d807fdbb055f2b8cdb0943491b44a0d25b838ad0851128cdda2c6164c0",
            "bc4f9655c228502ea84fb679f1b5c618ad81c0ca308f62e8b89621010716f3d7",
        ),
    ),
    "fashion_mnist": Facts(
        num_classes=10,
        shape=(1, 28, 28),
        examples={"train": 60_000, "test": 10_000},
        mean=(0.2860,),
        std=(0.3530,),
        forms=(_idx("train", "t10k"),),
        layouts=("FashionMNIST/raw", "fashion-mnist"),
        is_balanced=True,
        digest="b42e0f3189f494f730119201c9e1a41654a875ffd564ea07b7cf8032d5327c02",
        array_digests=(
            "23107827087bc5e7103459d77e76c949e359a37bfa939251872f47d6db091fd8",
            "88995d042facf70155ca62b7a88dd4014d224cd706334779814e1776a30f60f3",
            "3e6c70d3ce80310e581f2acdb60800b8f1e7922edc0f659150d05cf69ff2a394",
            "33177131bc427da42cf335c3e428fe9353fa2ed1a70f539380e18ac1faa5b3a9",
        ),
    ),
    "emnist_balanced": Facts(
        num_classes=47,
        shape=(1, 28, 28),
        examples={"train": 112_800, "test": 18_800},
        mean=(0.1751,),
        std=(0.3332,),
        forms=(_idx("emnist-balanced-train", "emnist-balanced-test"),),
        layouts=(".", "EMNIST/raw", "gzip"),
        is_balanced=True,
    ),
    "pathmnist": Facts(
        num_classes=9,
        shape=(3, 28, 28),
        examples={"train": 89_996, "test": 7_180, "validation": 10_004},
        mean=(0.5, 0.5, 0.5),
        std=(0.5, 0.5, 0.5),
        forms=(_batches(("pathmnist.npz",), "pathmnist.npz"),),
        layouts=(".", "medmnist"),
    ),
    "cifar10": Facts(
        num_classes=10,
        shape=(3, 32, 32),
        examples={"train": 50_000, "test": 10_000},
        mean=(0.4914, 0.4822, 0.4465),
        std=(0.2470, 0.2435, 0.2616),
        forms=(_batches(tuple(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"),),
        layouts=("cifar-10-batches-bin", "cifar-10-batches-py"),
        pickled=("data_batch_1", "test_batch"),
        is_balanced=True,
        is_augmented=True,
        digest="e6216b9018fcebdb2fc8d67681111ecdcbcb1599320d6cfc1c4f6ff4b91839a8",
        array_digests=(
            "0761308ba291f4ab15371632f9df5b1eedf29fb3fc5de1bfd4d7b5744936aee3",
            "f3eca90f353f9ae29daca343e949b1802bde4fd1733bf70f78b9da4b2765ebb4",
            "1722e5e14754b5efb4327e348c55e39c8227153c1a95b7b2130f1521b8097235",
            "e48789e454371556a2bb51ca3d0ae85c540e7312f8c74b0090d23c69408a5979",
        ),
    ),
    "cifar100": Facts(
        num_classes=100,
        shape=(3, 32, 32),
        examples={"train": 50_000, "test": 10_000},
        mean=(0.5071, 0.4866, 0.4409),
        std=(0.2673, 0.2564, 0.2762),
        forms=(_batches(("train.bin",), "test.bin"),),
        layouts=("cifar-100-binary", "cifar-100-python"),
        pickled=("train", "test"),
        is_balanced=True,
        is_augmented=True,
    ),
}
