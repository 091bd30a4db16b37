"""R-hat, effective draws and verdicts on plain arrays."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import bayes_lcs as bl
from bayes_lcs.inference.diagnostics import (
    Convergence,
    diagnose,
    judge,
    verdict_on,
    warn_of_fits,
)
from bayes_lcs.inference.posterior_draws import PosteriorDraws

# With four half chains of 500 draws each, R-hat of independent draws exceeds 1.01 where an F of 3
# and 1,996 degrees of freedom exceeds 11: less than once in a million, and so do the tests that
# ask for convergence fail.
INDEPENDENT = np.random.default_rng(0).normal(size=(2, 1000))


def verdict(values, name="log_joint"):
    return verdict_on(diagnose({name: values})[name])


def test_independent_draws_converge():
    found = diagnose({"log_joint": INDEPENDENT})["log_joint"]
    assert found["mean"] == pytest.approx(INDEPENDENT.mean())
    assert verdict(INDEPENDENT) == "converged"


def test_the_numbers_are_those_of_the_labelled_layer():
    """What ArviZ says of a named array with its defaults, of the worst entry."""
    import arviz_stats
    import xarray as xr

    strength = np.exp(np.random.default_rng(1).normal(size=(2, 300, 2, 3)).cumsum(axis=1) / 9)
    named = xr.Dataset({"strength": (("chain", "draw", "label", "feature"), strength)})
    found = diagnose({"strength": strength, "prototype": strength, "moved": INDEPENDENT})
    assert set(found) == {"strength"}
    expected = {
        "rhat": arviz_stats.rhat(named).max(),
        "ess_bulk": arviz_stats.ess(named, method="bulk").min(),
        "ess_tail": arviz_stats.ess(named, method="tail").min(),
    }
    for kind, value in expected.items():
        assert found["strength"][kind] == pytest.approx(float(value["strength"]), rel=1e-12)


def test_a_chain_elsewhere_does_not_converge():
    assert verdict(INDEPENDENT + np.array([[0.0], [1.0]])) == "not converged"


def test_a_stuck_chain_among_moving_ones_does_not_converge():
    drawn = np.random.default_rng(2).normal(size=(4, 1000))
    assert verdict(drawn) == "converged"
    drawn[2] = 0.0  # in the middle of the others: means agree, spreads do not
    assert verdict(drawn) == "not converged"


def test_chains_stuck_apart_do_not_converge():
    found = diagnose({"num_clusters": np.repeat([[3], [4]], 100, axis=1)})["num_clusters"]
    assert (found["rhat"], found["ess_bulk"]) == (np.inf, 0.0)
    assert verdict_on(found) == "not converged"


def test_an_entry_that_is_stuck_is_the_worst():
    strength = np.random.default_rng(3).normal(size=(2, 1000, 2))
    assert verdict(strength, "strength") == "converged"
    strength[0, :, 1] = 1.0
    assert verdict(strength, "strength") == "not converged"


def test_a_constant_is_not_convergence():
    assert verdict(np.ones((4, 1000))) == "constant"


@pytest.mark.parametrize("draws", [2, 3])
def test_too_few_draws_for_anything(draws):
    assert verdict(INDEPENDENT[:, :draws]) == "too few draws"


def test_one_chain_has_effective_draws_but_nothing_to_compare():
    found = diagnose({"log_joint": INDEPENDENT[:1]})["log_joint"]
    assert np.isnan(found["rhat"])
    assert found["ess_bulk"] > 400
    assert verdict_on(found) == "one chain"
    assert verdict(INDEPENDENT[:1, :300]) == "not converged"


def test_few_draws_however_good_are_not_enough():
    assert verdict(INDEPENDENT[:, :150]) == "not converged"


def test_rounding_is_no_difference():
    """The same partition with its blocks in another order sums to another last digit."""
    partition = np.random.default_rng(4).integers(0, 3, (2, 1000))
    log_joint = np.array([-9242.567303015308, -9243.999771443649, -9250.0])[partition]
    expected = diagnose({"log_joint": log_joint})
    digits = np.nextafter(log_joint, 0.0)
    log_joint[1] = digits[1]
    log_joint[0, ::2] = np.nextafter(digits, 0.0)[0, ::2]
    assert diagnose({"log_joint": log_joint})["log_joint"] == pytest.approx(
        expected["log_joint"], rel=1e-9
    )
    assert verdict(log_joint) == "converged"
    certain = np.repeat([[-78449.85763513313], [-78449.85763513311]], 500, axis=1)
    assert verdict(certain) == "constant"
    # A difference in the tenth digit is one.
    assert verdict(certain + np.array([[0.0], [1e-5]])) == "not converged"


def draws_of(stats: dict[str, np.ndarray], **unknown: np.ndarray) -> PosteriorDraws:
    data = bl.meeting_requests(seed=0, rows_per_person=5)[0]
    shape = (*INDEPENDENT.shape, data.num_groups)
    z = np.zeros(shape, dtype=np.uint16)
    return PosteriorDraws(bl.ClusteredNaiveBayes(), data, {"z": z, **unknown}, stats)


def test_a_fit_is_judged_by_its_worst_quantity():
    stats = {"log_joint": INDEPENDENT, "largest": np.ones((2, 1000)), "moved": np.ones((2, 1000))}
    fit = judge(draws_of(stats))
    assert fit.verdict == "constant"
    assert fit.names("constant") == ("largest",)
    assert fit.rhat == fit.quantities["log_joint"]["rhat"]
    assert fit.ess == min(fit.quantities["log_joint"][k] for k in ("ess_bulk", "ess_tail"))
    fit = judge(draws_of(stats, beta=INDEPENDENT + np.array([[0.0], [2.0]])))
    assert fit.verdict == "not converged"
    assert fit.rhat == fit.quantities["beta"]["rhat"] > 1.1


def test_where_nothing_is_unknown_nothing_has_to_converge():
    data = bl.meeting_requests(seed=0, rows_per_person=5)[0]
    z = np.zeros((2, 3, data.num_groups), dtype=np.uint16)
    drawn = PosteriorDraws(bl.NoSharing(), data, {"z": z}, {"log_joint": np.ones((2, 3))})
    assert judge(drawn).verdict == "exact"
    assert judge(bl.exact(bl.NoSharing(), data)).verdict == "exact"


def message(fits: dict[str, Convergence], draws: int = 500, chains: int = 2, **options: str) -> str:
    with pytest.warns(bl.SamplingWarning) as caught:
        warn_of_fits(fits, draws, chains, **options)
    assert len(caught) == 1
    return str(caught[0].message)


def test_one_warning_says_which_how_bad_and_what_to_do():
    fits = {f"fold {i}": Convergence("not converged", 1.02 + i / 100, 90.0 - i) for i in range(7)}
    said = message({**fits, "fold 7": Convergence("converged", 1.0, 900.0)})
    assert said == (
        "7 of 8 fits (fold 0; fold 1; fold 2; fold 3; fold 4; and 2 more) did not converge: worst "
        "R-hat 1.080 (should be at most 1.01), fewest effective draws 84 (should be at least "
        "400). The sampler used draws=500, chains=2; draw more (draws=)"
    )


def test_few_draws_are_named_as_the_reason():
    fit = {"the fit": Convergence("not converged", 1.0, 35.0)}
    said = message(fit, draws=20, remedy="use bl.sample")
    assert said.startswith("The fit did not converge: worst R-hat 1.000")
    assert said.endswith("The sampler used only draws=20, chains=2; use bl.sample")
    said = message({"the fit": Convergence("too few draws")}, draws=3)
    assert said.startswith("The fit had too few draws for R-hat")
    assert "only draws=3" in said


def test_one_chain_is_named_as_the_reason():
    alone = "R-hat needs at least two chains: run more (chains=)"
    assert message({"the fit": Convergence("one chain", ess=600.0)}, chains=1) == alone
    said = message({"the fit": Convergence("not converged", ess=35.0)}, chains=1)
    assert said.startswith("The fit did not converge: fewest effective draws 35 (should be")
    assert said.endswith(alone)


def test_constants_are_named():
    constant = diagnose({"largest": np.ones((2, 9)), "beta": np.ones((2, 9))})
    said = message({"a": Convergence("constant", quantities=constant), "b": Convergence("exact")})
    assert said.startswith("In 1 of 2 fits (a) beta, largest never varied, so that R-hat cannot")
    assert "draw more" not in said


def test_no_warning_without_reason():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_fits({"a": Convergence("exact"), "b": Convergence("converged", 1.0, 900.0)}, 9, 1)
        warn_of_fits({}, 9, 1)


def test_chains_that_jump_once_do_not_converge_and_say_nothing_else():
    """Each half of a chain is constant, so that R-hat divides by zero; warnings are errors here."""
    draws = np.array([[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0]])
    found = diagnose({"log_joint": draws})["log_joint"]
    assert found["rhat"] == np.inf
    assert verdict_on(found) == "not converged"
