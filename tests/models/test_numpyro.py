"""The NumPyro functions and the collapsed forms say the same.

The evidence is estimated by importance sampling: parameters are drawn from the prior by NumPy and
weighed by NumPyro's joint density over the density that NumPy's draws have. Seeds are fixed; four
standard errors are exceeded by about one seed in 16,000.
"""

from __future__ import annotations

import itertools
from typing import Any

import jax
import numpy as np
import numpyro
import pytest
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import MCMC, NUTS, Predictive
from numpyro.infer.util import log_density
from scipy import stats
from scipy.special import logsumexp

from bayes_lcs.core.counts import count_rows
from bayes_lcs.core.dirichlet import log_dirichlet_density
from bayes_lcs.core.model_protocols import KnownPartitionModel
from bayes_lcs.core.priors import Gamma
from bayes_lcs.core.schema import Schema
from bayes_lcs.models.clustered_naive_bayes import ClusteredNaiveBayes
from bayes_lcs.models.complete_sharing import CompleteSharing
from bayes_lcs.models.no_sharing import NoSharing
from bayes_lcs.models.prototype import Prototype
from bayes_lcs.models.simulation import draw_cells
from tests.models.prototype_grid import grid_log_evidence, log_factor_grid, prior_grid
from tests.oracles import brute_force_posterior

SCHEMA = Schema(2, (2, 2))
GROUPS = np.array([0, 0, 1, 1, 1])
LABELS = np.array([0, 1, 0, 0, -1])
FEATURES = np.array([[0, 1], [1, 1], [0, -1], [1, 0], [0, 0]])
NUM_DRAWS = 20_000
NUM_STICKS = 16

MODELS = [
    NoSharing(),
    NoSharing(label_prior=(2.0, 0.5), feature_prior=Gamma(2.0, 1.0)),
    CompleteSharing(feature_prior=[0.5, (2.0, 1.0)]),
    Prototype(strength_prior=Gamma(2.0, 0.5)),
    ClusteredNaiveBayes(concentration=0.7),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda m: f"{m.name} {m.feature_prior}")


def log_evidence(model: Any, labels: np.ndarray) -> float:
    counts = count_rows(SCHEMA, 2, GROUPS, labels, FEATURES)
    if isinstance(model, Prototype):
        return grid_log_evidence(model, counts)
    if isinstance(model, ClusteredNaiveBayes):
        return brute_force_posterior(counts, model.concentration).log_evidence
    return model.log_marginal(counts)


def log_evidence_of_the_observed(model: Any) -> float:
    """Summed over what the missing labels may be."""
    missing = np.flatnonzero(LABELS < 0)
    terms = []
    for filled in itertools.product(range(SCHEMA.num_labels), repeat=len(missing)):
        labels = LABELS.copy()
        labels[missing] = filled
        terms.append(log_evidence(model, labels))
    return float(logsumexp(terms))


def in_one_block(model: Any, num_groups: int) -> bool:
    """Whether there is one ``theta`` for all groups, and so no axis of groups."""
    known = isinstance(model, KnownPartitionModel)
    return known and not model.partition(num_groups).any()


class PriorDraws:
    """Parameters drawn from the prior by NumPy, with their log density.

    NumPyro's own Dirichlet draws take seconds to compile for each shape.
    """

    def __init__(self, model: Any, schema: Schema, num_groups: int, num_draws: int) -> None:
        self.rng = np.random.default_rng(1)
        self.num_draws = num_draws
        self.sites: dict[str, np.ndarray] = {}
        self.log_density = np.zeros(num_draws)
        num_labels = schema.num_labels
        alpha = model.label_parameters(schema)
        if isinstance(model.feature_prior, Gamma):
            beta = self.gamma("beta", model.feature_prior, ())
            prior = np.broadcast_to(beta[:, None, None], (num_draws, num_labels, schema.num_cells))
        else:
            prior = np.broadcast_to(
                model.feature_parameters(schema), (num_draws, num_labels, schema.num_cells)
            )
        self.dirichlet("phi", alpha, () if model.shares_labels else (num_groups,))
        if isinstance(model, ClusteredNaiveBayes):
            stick = self.rng.beta(1.0, model.concentration, (num_draws, NUM_STICKS - 1))
            self.sites["stick"] = stick
            self.log_density += stats.beta(1.0, model.concentration).logpdf(stick).sum(axis=1)
        for feature in range(schema.num_features):
            own = prior[:, :, schema.cells_of(feature)]
            shape = () if in_one_block(model, num_groups) else (num_groups,)
            if isinstance(model, ClusteredNaiveBayes):
                shape = (NUM_STICKS,)
            if isinstance(model, Prototype):
                bar = self.dirichlet(f"prototype_{feature}", own, (num_labels,))
                strength = self.gamma(f"strength_{feature}", model.strength_prior, (num_labels,))
                own = strength[:, :, None] * bar
            # Draws come first, then groups or sticks, then labels.
            own = own if shape == () else own[:, None]
            self.dirichlet(f"theta_{feature}", own, (*shape, num_labels))

    def gamma(self, name: str, prior: Gamma, shape: tuple[int, ...]) -> np.ndarray:
        draws = self.rng.gamma(prior.shape, 1 / prior.rate, (self.num_draws, *shape))
        self.sites[name] = draws
        self.log_density += prior.log_density(draws).reshape(self.num_draws, -1).sum(axis=1)
        return draws

    def dirichlet(self, name: str, prior: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        full = np.broadcast_to(prior, (self.num_draws, *shape, prior.shape[-1]))
        draws = np.maximum(draw_cells(self.rng, Schema(1, full.shape[-1:]), full), 1e-300)
        logs = log_dirichlet_density(draws, full).reshape(self.num_draws, -1)
        if full.shape[-1] > 1:
            self.sites[name] = draws
            self.log_density += logs.sum(axis=1)
        return draws


def options_of(model: Any) -> dict[str, Any]:
    return {"num_sticks": NUM_STICKS} if isinstance(model, ClusteredNaiveBayes) else {}


@every_model
def test_importance_sampling_finds_the_evidence(model: Any) -> None:
    prior = PriorDraws(model, SCHEMA, 2, NUM_DRAWS)

    def log_joint(sites: dict[str, Any]) -> Any:
        arguments = (SCHEMA, GROUPS, FEATURES, LABELS)
        return log_density(model.numpyro_model, arguments, options_of(model), sites)[0]

    with jax.enable_x64(True):
        logs = np.asarray(jax.jit(jax.vmap(log_joint))(prior.sites)) - prior.log_density
    weights = np.exp(logs - logs.max())
    estimate = logs.max() + np.log(weights.mean())
    standard_error = weights.std() / weights.mean() / np.sqrt(NUM_DRAWS)
    # The stick-breaking prior is cut off; the bound on what that costs goes on top.
    slack = model.truncation_error(2, NUM_STICKS) if options_of(model) else 0.0
    assert standard_error < 0.05
    assert abs(estimate - log_evidence_of_the_observed(model)) < 4 * standard_error + slack


@every_model
def test_rows_are_drawn_within_the_schema(model: Any) -> None:
    schema = Schema(3, (2, 1, 4))
    model = type(model)()
    sites = {k: v[0] for k, v in PriorDraws(model, schema, 2, 1).sites.items()}
    conditioned = numpyro.handlers.substitute(model.numpyro_model, sites)
    trace = numpyro.handlers.trace(numpyro.handlers.seed(conditioned, jax.random.key(0))).get_trace(
        schema, np.repeat([0, 1], 50), **options_of(model)
    )
    labels = np.asarray(trace["label"]["value"])
    assert set(labels) <= {0, 1, 2}
    for feature, num_values in enumerate(schema.num_values):
        values = np.asarray(trace[f"x_{feature}"]["value"])
        assert values.shape == (100,)
        assert set(values) <= set(range(num_values))
    assert ("z" in trace) == isinstance(model, ClusteredNaiveBayes)
    given = numpyro.handlers.trace(numpyro.handlers.seed(conditioned, jax.random.key(0))).get_trace(
        schema, np.repeat([0, 1], 50), labels=labels, **options_of(model)
    )
    assert given["label"]["is_observed"]
    assert not given["x_2"]["is_observed"]


@pytest.mark.parametrize(
    "model",
    [
        CompleteSharing(),
        pytest.param(NoSharing(feature_prior=Gamma()), marks=pytest.mark.slow),
        pytest.param(Prototype(), marks=pytest.mark.slow),
        pytest.param(ClusteredNaiveBayes(concentration=Gamma()), marks=pytest.mark.slow),
    ],
    ids=lambda model: model.name,
)
def test_predictive_draws_from_the_prior(model: Any) -> None:
    draws = Predictive(model.numpyro_model, num_samples=30, parallel=True)(
        jax.random.key(0), SCHEMA, GROUPS
    )
    assert draws["label"].shape == draws["x_1"].shape == (30, 5)
    np.testing.assert_allclose(draws["theta_0"].sum(axis=-1), 1.0, rtol=1e-5)


@every_model
def test_rows_that_do_not_fit_are_refused(model: Any) -> None:
    seeded = numpyro.handlers.seed(model.numpyro_model, jax.random.key(0))
    with pytest.raises(ValueError, match="features have shape"):
        seeded(SCHEMA, GROUPS, FEATURES[:, :1], LABELS)
    with pytest.raises(ValueError, match="labels have shape"):
        seeded(SCHEMA, GROUPS, FEATURES, LABELS[:2])
    with pytest.raises(ValueError, match="give all labels or none"):
        seeded(SCHEMA, GROUPS, None, LABELS)


def test_too_few_sticks_are_refused() -> None:
    seeded = numpyro.handlers.seed(ClusteredNaiveBayes().numpyro_model, jax.random.key(0))
    with pytest.raises(ValueError, match="num_sticks must be at least 2"):
        seeded(SCHEMA, GROUPS, num_sticks=1)


def test_without_labels_all_labels_are_summed_out() -> None:
    values = {k: v[0] for k, v in PriorDraws(NoSharing(), SCHEMA, 2, 1).sites.items()}
    sites = numpyro.handlers.trace(
        numpyro.handlers.substitute(NoSharing().numpyro_model, values)
    ).get_trace(SCHEMA, GROUPS, FEATURES)
    assert sites["unlabelled"]["fn"].log_factor.shape == (5,)
    assert (sites["unlabelled"]["fn"].log_factor < 0).all()
    for name in ("label", "x_0", "x_1"):
        assert (sites[name]["fn"].log_prob(sites[name]["value"]) == 0).all()


@every_model
def test_models_can_be_rendered(model: Any) -> None:
    pytest.importorskip("graphviz")
    graph = numpyro.render_model(model.numpyro_model, model_args=(SCHEMA, GROUPS))
    for name in ("phi", "theta_0", "label", "x_1"):
        assert name in graph.source
    if isinstance(model, ClusteredNaiveBayes):
        assert "stick" in graph.source
    if isinstance(model, Prototype):
        assert "strength_0" in graph.source


def nuts(model: Any, *arguments: Any, num_samples: int, **options: Any) -> dict[str, np.ndarray]:
    mcmc = MCMC(
        NUTS(model.numpyro_model, target_accept_prob=0.9),
        num_warmup=1000,
        num_samples=num_samples,
        num_chains=2,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(jax.random.key(0), *arguments, **options)
    return {k: np.asarray(v) for k, v in mcmc.get_samples(group_by_chain=True).items()}


def assert_mean(draws: np.ndarray, expected: float) -> None:
    """Within 4.5 Monte Carlo standard errors: one seed in 150,000, for each number compared."""
    error = draws.std() / np.sqrt(float(effective_sample_size(draws)))
    assert abs(draws.mean() - expected) < 4.5 * error


@pytest.mark.slow
def test_nuts_finds_the_conjugate_posterior_of_no_sharing() -> None:
    labels = np.where(LABELS < 0, 1, LABELS)
    model = NoSharing()
    counts = count_rows(SCHEMA, 2, GROUPS, labels, FEATURES)
    expected = model.posterior_mode(counts)
    with jax.enable_x64(True):
        draws = nuts(model, SCHEMA, GROUPS, FEATURES, labels, num_samples=3000)
    for group in range(2):
        assert_mean(draws["phi"][:, :, group, 0], expected.phi[group, 0])
        for label in range(2):
            theta = expected.theta[group, label]
            assert_mean(draws["theta_0"][:, :, group, label, 0], theta[0])
            assert_mean(draws["theta_1"][:, :, group, label, 0], theta[2])


@pytest.mark.slow
def test_nuts_finds_prototype_and_strength() -> None:
    schema = Schema(1, (2,))
    model = Prototype(strength_prior=Gamma(3.0, 0.5))
    cells = np.array([[6, 1], [5, 0], [3, 4]])
    groups = np.repeat(np.arange(3), cells.sum(axis=1))
    features = np.concatenate([[0] * a + [1] * b for a, b in cells])[:, None]
    grid = prior_grid(model)
    logs = log_factor_grid(grid, cells)
    weights = np.exp(logs - logsumexp(logs))
    with jax.enable_x64(True):
        draws = nuts(model, schema, groups, features, np.zeros_like(groups), num_samples=5000)
    assert_mean(draws["prototype_0"][:, :, 0, 0], float((weights * grid.prototype).sum()))
    assert_mean(draws["strength_0"][:, :, 0], float((weights * grid.strength).sum()))


@pytest.mark.slow
def test_nuts_finds_who_clusters_with_whom() -> None:
    """Given weights and parameters, groups choose their sticks independently."""
    schema = Schema(1, (2, 2))
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1, 2], 6)
    chances = np.array([0.9, 0.8, 0.2])[groups]
    features = (rng.random((18, 2)) > chances[:, None]).astype(int)
    labels = np.zeros(18, dtype=int)
    counts = count_rows(schema, 3, groups, labels, features)
    truth = brute_force_posterior(counts)
    with jax.enable_x64(True):
        draws = nuts(
            ClusteredNaiveBayes(),
            schema,
            groups,
            features,
            labels,
            num_samples=5000,
            num_sticks=12,
        )
    stick = draws["stick"]
    rest = np.concatenate([np.ones((*stick.shape[:2], 1)), np.cumprod(1 - stick, axis=-1)], -1)
    weights = rest * np.concatenate([stick, np.ones((*stick.shape[:2], 1))], -1)
    log_theta = np.log(np.concatenate([draws["theta_0"], draws["theta_1"]], axis=-1))
    logs = np.log(weights)[..., None, :] + np.einsum("ulc,sdklc->sduk", counts.features, log_theta)
    shares = np.exp(logs - logsumexp(logs, axis=-1, keepdims=True))
    for u, v in ((0, 1), (0, 2), (1, 2)):
        together = (shares[:, :, u] * shares[:, :, v]).sum(axis=-1)
        error = together.std() / np.sqrt(float(effective_sample_size(together)))
        slack = ClusteredNaiveBayes().truncation_error(3, 12)
        assert abs(together.mean() - truth.coclustering[u, v]) < 4.5 * error + slack
