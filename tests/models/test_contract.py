"""What all models of grouped data have in common."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import bayes_lcs
from bayes_lcs.core.counts import GroupCounts
from bayes_lcs.core.model_protocols import KnownPartitionModel, PartitionModel, PrototypeModel
from bayes_lcs.core.priors import Gamma
from bayes_lcs.core.schema import Schema
from bayes_lcs.inference.serialization import model_to_json
from bayes_lcs.models.base import NaiveBayesPrior
from bayes_lcs.models.clustered_naive_bayes import ClusteredNaiveBayes
from bayes_lcs.models.complete_sharing import CompleteSharing
from bayes_lcs.models.no_sharing import NoSharing
from bayes_lcs.models.prototype import Prototype
from bayes_lcs.workflows.load import model_from_json

# A new model goes in here, with the protocol by which inference knows it.
PROTOCOLS: dict[Any, Any] = {
    NoSharing: KnownPartitionModel,
    CompleteSharing: KnownPartitionModel,
    Prototype: PrototypeModel,
    ClusteredNaiveBayes: PartitionModel,
}
MODELS = list(PROTOCOLS)
SCHEMA = Schema(2, (3, 2))

every_model = pytest.mark.parametrize("model_class", MODELS)


def latent(model: Any, truth: Any) -> tuple[Any, ...]:
    """The extra arguments that a model conditions on."""
    if isinstance(model, Prototype):
        return truth.prototype, truth.strength
    if isinstance(model, ClusteredNaiveBayes):
        return (truth.partition,)
    return ()


@every_model
def test_each_model_answers_one_protocol(model_class: Any) -> None:
    answered = [
        protocol
        for protocol in (KnownPartitionModel, PartitionModel, PrototypeModel)
        if isinstance(model_class(), protocol)
    ]
    assert answered == [PROTOCOLS[model_class]]


def test_names_are_different_and_every_public_model_is_here() -> None:
    assert len({model().name for model in MODELS}) == len(MODELS)
    public = {getattr(bayes_lcs, name) for name in bayes_lcs.__all__}
    classes = {thing for thing in public if isinstance(thing, type)}
    assert {thing for thing in classes if issubclass(thing, NaiveBayesPrior)} == set(MODELS)


@every_model
@pytest.mark.parametrize("feature_prior", [[[1.0, 2.0, 3.0, 4.0, 5.0]] * 2, Gamma(2.0, 3.0)])
def test_models_are_written_and_read_back(model_class: Any, feature_prior: Any) -> None:
    model = model_class(label_prior=[1.0, 2.0], feature_prior=feature_prior)
    assert model_from_json(model_to_json(model)) == model


@pytest.mark.parametrize("name", ["GroupedTable", "compare", "annotations", "os", ""])
def test_nothing_but_public_models_is_read_back(name: str) -> None:
    with pytest.raises(ValueError, match="no public model of bayes_lcs"):
        model_from_json(f'{{"model": "{name}"}}')


@every_model
def test_models_compare_hash_and_print_by_value(model_class: Any) -> None:
    spec = np.array([[1.0, 2.0, 3.0, 4.0, 5.0]] * 2)
    one = model_class(label_prior=np.array([1.0, 2.0]), feature_prior=spec)
    two = model_class(label_prior=[1, 2], feature_prior=spec.tolist())
    assert one == two
    assert hash(one) == hash(two)
    assert one != model_class()
    assert eval(repr(one), {model_class.__name__: model_class, "Gamma": Gamma}) == one
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.label_prior = 3.0


@every_model
@pytest.mark.parametrize("name", ["label_prior", "feature_prior"])
@pytest.mark.parametrize("bad", [0, -1.0, np.nan, [1.0, -1.0]])
def test_priors_that_are_not_positive_are_refused(model_class: Any, name: str, bad: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} must be positive and finite, got"):
        model_class(**{name: bad})


@every_model
def test_what_is_learned_has_no_fixed_parameters(model_class: Any) -> None:
    with pytest.raises(TypeError, match="label_prior cannot be learned"):
        model_class(label_prior=Gamma())
    with pytest.raises(ValueError, match="feature_prior has a Gamma prior"):
        model_class(feature_prior=Gamma()).feature_parameters(SCHEMA)
    with pytest.raises(TypeError, match="feature_prior must consist of numbers"):
        model_class(feature_prior="flat")


def test_hyper_parameters_of_one_model_only() -> None:
    with pytest.raises(ValueError, match="concentration must be positive and finite, got 0"):
        ClusteredNaiveBayes(concentration=0)
    with pytest.raises(TypeError, match="concentration must be one number or a Gamma"):
        ClusteredNaiveBayes(concentration=[1.0, 2.0])
    with pytest.raises(TypeError, match="strength_prior must be a Gamma"):
        Prototype(strength_prior=10.0)
    assert Prototype().strength_prior.mean == 10.0


@every_model
@pytest.mark.parametrize("feature_prior", [0.7, Gamma(2.0, 2.0)])
def test_predictions_are_probabilities(model_class: Any, feature_prior: Any) -> None:
    model = model_class(feature_prior=feature_prior)
    table, truth = model.simulate(SCHEMA, [9, 0, 6], seed=3, missing=0.2, missing_labels=0.2)
    counts = table.counts()
    every_row = np.stack(np.meshgrid(*map(np.arange, (3, 2)), indexing="ij"), -1).reshape(-1, 2)
    logs = model.log_predictive(counts, every_row, *latent(model, truth))
    assert logs.shape == (3, 6, 2)
    np.testing.assert_allclose(np.exp(logs).sum(axis=(1, 2)), 1.0, rtol=1e-10)
    phi, theta = model.posterior_mode(counts, *latent(model, truth))
    assert (phi.shape, theta.shape) == ((3, 2), (3, 2, 5))
    np.testing.assert_allclose(phi.sum(axis=-1), 1.0)
    np.testing.assert_allclose(SCHEMA.sum_values(theta), 1.0)


@every_model
@pytest.mark.parametrize("feature_prior", [0.7, Gamma(2.0, 2.0)])
def test_one_more_row_multiplies_the_marginal_by_its_predictive(
    model_class: Any, feature_prior: Any
) -> None:
    """P(D, row) = P(D) P(row | D): predictive and marginal know nothing of each other."""
    model = model_class(feature_prior=feature_prior)
    table, truth = model.simulate(SCHEMA, [9, 1, 6], seed=5, missing=0.2)
    counts = table.counts()
    arguments = latent(model, truth)
    logs = model.log_predictive(counts, [[2, 1], [0, -1]], *arguments)
    for group in range(3):
        for row, cells in ((0, [2, 4]), (1, [0])):
            for label in range(2):
                labels, features = counts.labels.copy(), counts.features.copy()
                labels[group, label] += 1
                features[group, label, cells] += 1
                more = GroupCounts(SCHEMA, labels, features)
                ratio = model.log_marginal(more, *arguments) - model.log_marginal(
                    counts, *arguments
                )
                assert logs[group, row, label] == pytest.approx(ratio, abs=1e-10)


@every_model
def test_tables_keep_the_schema_whatever_was_drawn(model_class: Any) -> None:
    schema = Schema(4, (9, 1, 2))
    table, truth = model_class().simulate(schema, [1, 0, 2], seed=0)
    assert table.schema == schema
    assert table.group_sizes.tolist() == [1, 0, 2]
    assert truth.phi.shape == (3, 4)
    assert truth.theta.shape == (3, 4, 12)
    again, _ = model_class().simulate(schema, [1, 0, 2], seed=0)
    assert again == table


@every_model
@pytest.mark.parametrize("sizes", [[], [3, -1], 5, [1.5]])
def test_impossible_simulations_are_refused(model_class: Any, sizes: Any) -> None:
    with pytest.raises(ValueError, match="group_sizes must list the number of rows"):
        model_class().simulate(SCHEMA, sizes)
    with pytest.raises(ValueError, match="missing must be a share between 0 and 1, got 2"):
        model_class().simulate(SCHEMA, [3], missing=2)


def test_constructing_and_using_models_does_not_import_jax() -> None:
    code = (
        "import sys\n"
        "from bayes_lcs.core.schema import Schema\n"
        "from bayes_lcs.models.clustered_naive_bayes import ClusteredNaiveBayes\n"
        "from bayes_lcs.models.prototype import Prototype\n"
        "from bayes_lcs.models.no_sharing import NoSharing\n"
        "from bayes_lcs.models.complete_sharing import CompleteSharing\n"
        "table, _ = NoSharing().simulate(Schema(2, (2,)), [3])\n"
        "CompleteSharing().log_marginal(table.counts())\n"
        "assert not {'jax', 'numpyro', 'pandas'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
