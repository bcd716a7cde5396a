"""Plans that cannot be what they say are refused, with the way out."""

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.core.registry import parse, to_plain
from fedreuse.lab.plans.plan import Plan

AXES = {"method": ["A", "B", "C"]}
FIVE = [401, 402, 403, 404, 405]
EQUAL = {"of": "A", "against": "B", "test": "equivalence", "margin": 0.01}


def _plan(**changes):
    return parse(Plan, {"contrasts": [EQUAL], **changes}, "plan")


def test_a_plan_survives_the_way_to_plain_data_and_back() -> None:
    plan = _plan(factorials=[["reuse", "codec"]], targets=[0.9], development_seeds=[1, 2], sd=0.002)
    assert parse(Plan, to_plain(plan), "plan") == plan


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"contrasts": []}, "plan.contrasts: a list expected"),
        ({"contrasts": [{**EQUAL, "margn": 1}]}, r"plan.contrasts\[0\].margn: unknown key; did you mean 'margin'"),
        ({"contrasts": [{**EQUAL, "margin": 0}]}, r"plan.contrasts\[0\].margin must be above 0 for equivalence"),
        ({"contrasts": [EQUAL, EQUAL]}, "contrasts must differ"),
        ({"contrasts": [{**EQUAL, "test": "equality"}]}, r"contrasts\[0\].test"),
        ({"alpha": 0.7}, r"alpha must be in \(0, 0.5\)"),
        ({"power": 1.0}, r"power must be in \(0, 1\)"),
        ({"sd": 0.0}, "sd must be above 0"),
        ({"metric": "tests"}, "plan.metric"),
        ({"correction": "fdr"}, "plan.correction"),
    ],
)
def test_values_out_of_range_name_their_place(changes, said) -> None:
    with pytest.raises(ConfigError, match=said):
        _plan(**changes)


@pytest.mark.parametrize("seeds", [[401], [401, 402, 403, 404]])
def test_too_few_seeds_are_refused(seeds) -> None:
    with pytest.raises(ConfigError, match="at least 5 seeds"):
        _plan().check(seeds, AXES)


def test_development_seeds_cannot_confirm() -> None:
    with pytest.raises(ConfigError, match=r"development_seeds.*got \[402\]"):
        _plan(development_seeds=[1, 402]).check(FIVE, AXES)


def test_sign_flips_that_can_never_reject_are_refused_with_the_seeds_that_could() -> None:
    plan = _plan(contrasts=[EQUAL, {"of": "A", "against": "C"}], decide="sign_flip")
    with pytest.raises(ConfigError, match=r"'A - B: .*5 seeds .*0.03125.* 0.025 .* 6 seeds"):
        plan.check(FIVE, AXES)
    with pytest.raises(ConfigError, match=r"'A - C: a difference'.* 7 seeds, or decide: t"):
        plan.check(range(6), AXES)
    plan.check(range(7), AXES)


def test_a_margin_below_the_known_spread_is_refused_with_the_seeds_that_could() -> None:
    with pytest.raises(ConfigError, match=r"with 5 seeds .*0.01907 .* 13 seeds"):
        _plan(sd=0.02).check(FIVE, AXES)
    _plan(sd=0.02).check(range(13), AXES)
    _plan(sd=0.002).check(FIVE, AXES)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"contrasts": [{**EQUAL, "margin": 1}]}, r"margin is a share: 0.01 is one point.* must be below 1, got 1"),
        ({"contrasts": [{"of": "A", "against": "C", "margin": 2, "better": "higher"}]}, "margin is a share"),
        ({"targets": [0.8, 85]}, r"targets are shares: 0.85 is 85 %; .*, got \[85"),
        ({"targets": [0]}, "must be above 0 and at most 1"),
    ],
)
def test_a_margin_or_target_in_percent_is_refused_where_scores_are_shares(changes, said) -> None:
    with pytest.raises(ConfigError, match=said):
        _plan(**changes).check(FIVE, AXES, is_share=True)
    _plan(**changes).check(FIVE, AXES)  # a log-likelihood or one's own score may be of any size


def test_bytes_have_margins_in_bytes_and_a_whole_share_is_a_target() -> None:
    _plan(metric="bytes", contrasts=[{**EQUAL, "margin": 5e6}]).check(FIVE, AXES, is_share=True)
    _plan(contrasts=[{**EQUAL, "margin": 0.99}], targets=[1]).check(FIVE, AXES, is_share=True)


def test_every_block_is_a_claim_that_shares_alpha() -> None:
    plan, axes = _plan(sd=0.009), {**AXES, "dataset": ["mnist", "digits"]}
    assert [claim.where for claim in plan.claims(axes)] == ["mnist", "digits"]
    assert plan.strictest_alpha(2) == 0.025
    assert _plan(correction="none").strictest_alpha(2) == 0.05
    plan.check(FIVE, AXES)
    with pytest.raises(ConfigError, match="2 claims, correction holm"):
        plan.check(FIVE, axes)


def test_factorials_are_two_axes_of_two_labels() -> None:
    axes = {"method": ["A", "B"], "dataset": ["mnist", "digits", "cifar"], "codec": ["dense", "sparse"]}
    _plan(factorials=[["method", "codec"]]).check(FIVE, axes)
    for pair, said in (
        (["method", "dataset"], "axis 'dataset' must have two labels"),
        (["method", "codecs"], "factorials: the study has no 'codecs'; did you mean 'codec'"),
        (["method", "method"], "two axes expected"),
    ):
        with pytest.raises(ConfigError, match=said):
            _plan(factorials=[pair]).check(FIVE, axes)
