"""Addresses and checksums of the published datasets."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SOURCES", "Source"]


@dataclass(frozen=True)
class Source:
    """Files, or archives of files, below one address.

    Args:
        base: The address of their folder.
        files: MD5 by name, as their authors or torchvision publish it.
    """

    base: str
    files: dict[str, str]

    @property
    def addresses(self) -> list[str]:
        """Address of every file."""
        return [f"{self.base}/{name}" for name in self.files]

    @property
    def title(self) -> str:
        """The address of a single file, or of the folder of several."""
        return self.addresses[0] if len(self.files) == 1 else f"{self.base} ({len(self.files)} files)"


SOURCES: dict[str, Source] = {
    "mnist": Source(
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        {
            "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
            "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
            "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
        },
    ),
    "fashion_mnist": Source(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
        {
            "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
            "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
            "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
        },
    ),
    "emnist_balanced": Source(
        "https://biometrics.nist.gov/cs_links/EMNIST", {"gzip.zip": "58c8d27c78d21e728a6bc7b3cc06412e"}
    ),
    "pathmnist": Source(
        "https://zenodo.org/records/10519652/files", {"pathmnist.npz": "a8b06965200029087d5bd730944a56c1"}
    ),
    "cifar10": Source(
        "https://www.cs.toronto.edu/~kriz", {"cifar-10-binary.tar.gz": "c32a1d4ab5d03f1284b67883e8d87530"}
    ),
    "cifar100": Source(
        "https://www.cs.toronto.edu/~kriz", {"cifar-100-binary.tar.gz": "03b5dce01913d631647c71ecec9e9cb8"}
    ),
}
"""Sources of `fedreuse data fetch`, by dataset."""
