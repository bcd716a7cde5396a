"""What could have been found, against tables of the t-test and against the tests themselves."""

import numpy as np
import pytest
from scipy import stats

from fedreuse.report.statistics.hypotheses import Hypothesis, sign_flip_p, t_p
from fedreuse.report.statistics.power import detectable, seeds_for_sign_flips, seeds_for_t, smallest_margin


@pytest.mark.parametrize("num_pairs", [5, 10, 20])
@pytest.mark.parametrize("alpha", [0.05, 0.005, 0.0005])
def test_the_detectable_difference_has_the_power_it_promises(num_pairs, alpha) -> None:
    effect = detectable(1.0, num_pairs, Hypothesis(), alpha, 0.8) * np.sqrt(num_pairs)
    critical = stats.t.ppf(1 - alpha / 2, num_pairs - 1)
    assert stats.nct.sf(critical, num_pairs - 1, effect) == pytest.approx(0.8, abs=1e-6)


def test_thirty_four_pairs_for_half_a_standard_deviation() -> None:
    # Cohen (1988); G*Power and R give 33.4 pairs for d = 0.5, two-sided 5 %, power 0.8
    assert detectable(1.0, 34, Hypothesis()) < 0.5 < detectable(1.0, 33, Hypothesis())


@pytest.mark.slow
def test_the_margin_of_equivalence_has_at_least_the_power_it_promises() -> None:
    margin = detectable(1.0, 5, Hypothesis("equivalence", 0.1))
    rng, hypothesis = np.random.default_rng(3), Hypothesis("equivalence", margin)
    shown = [t_p(rng.normal(size=5).tolist(), hypothesis) <= 0.05 for _ in range(600)]
    assert 0.75 < np.mean(shown) < 0.9


def test_non_inferiority_says_how_far_on_the_worse_side() -> None:
    effect = detectable(1.0, 5, Hypothesis(better="higher"))
    assert detectable(1.0, 5, Hypothesis("non_inferiority", 3.0, "higher")) == pytest.approx(3.0 - effect)
    assert detectable(1.0, 5, Hypothesis("superiority", 3.0, "higher")) == pytest.approx(3.0 + effect)


@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_the_smallest_margin_is_the_edge_of_the_test(alpha) -> None:
    values = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    margin = smallest_margin(values.std(ddof=1), 5, alpha)
    assert t_p(values.tolist(), Hypothesis("equivalence", margin * 1.0001)) < alpha
    assert t_p(values.tolist(), Hypothesis("equivalence", margin * 0.9999)) > alpha


def test_seeds_for_t_is_the_first_number_that_could() -> None:
    number = seeds_for_t(0.01, 0.004, 0.025)
    assert smallest_margin(0.01, number, 0.025) < 0.004 <= smallest_margin(0.01, number - 1, 0.025)


@pytest.mark.parametrize(("tests", "two_sided", "one_sided"), [(1, 6, 5), (2, 7, 6), (4, 8, 7)])
def test_seeds_for_sign_flips_is_the_first_number_that_could(tests, two_sided, one_sided) -> None:
    assert seeds_for_sign_flips(Hypothesis(), 0.05 / tests) == two_sided
    assert seeds_for_sign_flips(Hypothesis("equivalence", 1.0), 0.05 / tests) == one_sided
    values = [1.0 + number for number in range(two_sided)]
    assert sign_flip_p(values, Hypothesis()) <= 0.05 / tests < sign_flip_p(values[:-1], Hypothesis())
