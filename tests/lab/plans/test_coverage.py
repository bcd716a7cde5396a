"""Simulated coverage: t on normal differences is nominal; the others are printed as they are."""

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.lab.plans.coverage import simulate


@pytest.mark.slow
@pytest.mark.parametrize("num_pairs", [5, *(pytest.param(number, marks=pytest.mark.long) for number in (10, 20))])
def test_t_is_nominal_on_normal_differences(num_pairs, record_property) -> None:
    rates = simulate("normal", num_pairs, repetitions=2000)
    record_property("rates", str(rates))
    print(rates)
    four_errors = 4 * (0.05 * 0.95 / 2000) ** 0.5
    assert abs(rates.t - 0.95) < four_errors
    # a study of nothing finds nothing at the nominal rate, and a difference on the margin is not called equivalent
    assert abs(rates.t_claims - 0.05) < four_errors
    assert rates.equivalence_claims < 0.05 + four_errors
    assert rates.sign_flip_claims < 0.05 + four_errors
    if num_pairs == 5:
        assert rates.sign_flip_claims == 0.0  # 1/16 is the smallest p


@pytest.mark.slow
def test_the_same_seed_gives_the_same_rates() -> None:
    assert simulate("skewed", 5, 10) == simulate("skewed", 5, 10) != simulate("skewed", 5, 10, seed=2)


def test_an_unknown_distribution_is_refused() -> None:
    with pytest.raises(ConfigError, match="one of normal, skewed, heavy-tailed expected, got 'cauchy'"):
        simulate("cauchy", 5)
