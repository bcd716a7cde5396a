"""One claim: its words, and the labels it may name."""

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.lab.plans.claims import Contrast, claims_of

AXES = {"method": ["dense", "DG-FedReuse", "Top-K"], "dataset": ["digits", "mnist"]}


@pytest.mark.parametrize(
    ("contrast", "title"),
    [
        (Contrast("A", "B"), "A - B: a difference"),
        (Contrast("A", "B", "superiority", 0.02, "higher"), "A - B: higher by more than 0.02"),
        (Contrast("A", "B", "non_inferiority", 0.01, "higher"), "A - B: not lower by 0.01"),
        (Contrast("A", "B", "non_inferiority", 5.0, "lower"), "A - B: not higher by 5"),
        (Contrast("A", "B", "equivalence", 0.01, within=("mnist",)), "A - B within mnist: equivalence within 0.01"),
    ],
)
def test_a_title_says_the_claim(contrast, title) -> None:
    assert contrast.title == title


def test_a_contrast_speaks_of_every_block_unless_restricted() -> None:
    claims = claims_of(Contrast("DG-FedReuse", "Top-K"), AXES)
    assert [claim.where for claim in claims] == ["digits", "mnist"]
    assert claims[1].cells == (
        {"dataset": "mnist", "method": "DG-FedReuse"}, {"dataset": "mnist", "method": "Top-K"}
    )  # fmt: skip
    assert [claim.where for claim in claims_of(Contrast("DG-FedReuse", "Top-K", within=("mnist",)), AXES)] == ["mnist"]
    assert [claim.where for claim in claims_of(Contrast("a", "b"), {"method": ["a", "b"]})] == [""]


def test_both_labels_belong_to_one_axis() -> None:
    assert claims_of(Contrast("mnist", "digits"), AXES)[0].axis == "dataset"
    with pytest.raises(ConfigError, match="its labels belong to different axes"):
        claims_of(Contrast("dense", "mnist"), AXES)


def test_unknown_labels_are_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="the study has no 'TopK'; did you mean 'Top-K'"):
        claims_of(Contrast("dense", "TopK"), AXES)
    with pytest.raises(ConfigError, match="within: the study has no 'mnst'; did you mean 'mnist'"):
        claims_of(Contrast("dense", "Top-K", within=("mnst",)), AXES)
    with pytest.raises(ConfigError, match="within: the study has no 'dense'"):
        claims_of(Contrast("dense", "Top-K", within=("dense",)), AXES)


def test_a_contrast_with_itself_is_refused() -> None:
    with pytest.raises(ConfigError, match="of and against must be two labels"):
        Contrast("A", "A")
