"""``bl.sample`` and its posterior, against the exact one and through a file."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

import bayes_lcs as bl
from bayes_lcs.inference.datatree import diagnose
from bayes_lcs.inference.posterior_draws import PosteriorDraws


@pytest.fixture(scope="module")
def data() -> bl.GroupedTable:
    return bl.meeting_requests(seed=0, rows_per_person=40)[0].select_groups(list(range(8)))


@pytest.fixture(scope="module")
def posterior(data: bl.GroupedTable) -> bl.Posterior:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bl.SamplingWarning)
        return bl.sample(bl.ClusteredNaiveBayes(), data, draws=600, chains=4, seed=1)


def test_the_tree_follows_the_schema(posterior, data):
    tree = posterior.datatree
    assert set(tree.children) == {"posterior", "sample_stats", "observed_data", "constant_data"}
    z = tree["posterior"]["z"]
    assert z.dims == ("chain", "draw", "group")
    assert z.dtype == np.uint16
    assert z["group"].values.tolist() == list(data.group_names)
    assert all(isinstance(value, str) for value in tree.attrs.values())
    assert json.loads(tree.attrs["versions"])["bayes_lcs"] == bl.__version__
    assert tree.attrs["data_sha256"] == data.content_hash()


def test_agrees_with_the_exact_posterior(posterior, data):
    exact = bl.exact(bl.ClusteredNaiveBayes(), data)
    # 2400 draws, nearly independent: 0.05 is five standard errors of a probability.
    np.testing.assert_allclose(posterior.coclustering(), exact.coclustering(), atol=0.05)
    np.testing.assert_allclose(posterior.num_clusters(), exact.num_clusters(), atol=0.05)
    rows = data.take(range(0, data.num_rows, 29)).to_frame().drop(columns=data.label_name)
    rows.loc[rows.index[:3], data.group_name] = "never seen"
    np.testing.assert_allclose(posterior.predict_proba(rows), exact.predict_proba(rows), atol=0.02)


def test_survives_a_file(posterior, data, tmp_path):
    path = posterior.save(tmp_path / "fit.nc")
    loaded = bl.load(path)
    assert loaded.model == posterior.model
    assert loaded.data == data
    np.testing.assert_array_equal(loaded.partitions(), posterior.partitions())
    rows = data.take([0, 50])
    np.testing.assert_array_equal(loaded.predict_proba(rows), posterior.predict_proba(rows))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["fit.nc", "fit.nc.sha256"]


def test_a_damaged_file_is_refused(posterior, tmp_path):
    path = posterior.save(tmp_path / "fit.nc")
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match=r"fit\.nc.*checksum"):
        bl.load(path)


def test_decisions_name_labels(posterior, data):
    chosen = posterior.decide(data.take([0, 1]), loss=[[0, 1], [1e9, 0]])
    assert chosen.tolist() == [data.label_values[1]] * 2


def test_learned_quantities_and_missing_labels_are_kept(data):
    model = bl.ClusteredNaiveBayes(concentration=bl.Gamma(1, 1), feature_prior=bl.Gamma(2, 3))
    masked = data.mask_labels([0, 5, 9])
    with pytest.warns(bl.SamplingWarning):
        post = bl.sample(model, masked, draws=20, chains=2, warmup=10, seed=0)
    tree = post.datatree["posterior"]
    assert tree["latent_label"].shape == (2, 20, 3)
    assert tree["concentration"].shape == tree["beta"].shape == (2, 20)
    probability = post.predict_proba()
    assert probability.shape == (3, 2)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    np.testing.assert_allclose(post.predict_proba(data.take([3])).sum(axis=1), 1.0)


def test_no_missing_labels_means_nothing_to_predict_without_rows(posterior):
    with pytest.raises(ValueError, match="rows is required"):
        posterior.predict_proba()


def test_a_constant_never_passes_as_converged(posterior):
    tree = posterior.datatree.copy(deep=True)
    tree["sample_stats"]["log_joint"].values[:] = 1.0
    assert np.isnan(diagnose(tree)["log_joint"]["rhat"])
    tree["sample_stats"]["log_joint"].values[0] = 2.0
    assert diagnose(tree)["log_joint"]["rhat"] == np.inf


def test_chains_that_never_move_are_reported_however_well_they_agree():
    certain, _ = bl.meeting_requests(seed=0)
    with pytest.warns(bl.SamplingWarning, match="num_clusters.* never varied.*started apart"):
        bl.sample(bl.ClusteredNaiveBayes(), certain.select_groups([0, 1, 4]), draws=20)


@pytest.mark.parametrize(
    ("draws", "told"), [(600, "two chains; run more"), (50, "no R-hat with one chain, effective")]
)
def test_one_chain_cannot_be_compared(data, monkeypatch, draws, told):
    """Independent draws stand in for the sampler's: these are enough, or too few."""
    log_joint = np.random.default_rng(0).normal(size=(1, draws))
    z = np.zeros((1, draws, 8), dtype=np.uint16)
    found = PosteriorDraws(bl.ClusteredNaiveBayes(), data, {"z": z}, {"log_joint": log_joint})
    monkeypatch.setattr("bayes_lcs.inference.draw_posterior.draw_posterior", lambda *_, **__: found)
    with pytest.warns(bl.SamplingWarning, match=f"log_joint: .*{told}"):
        bl.sample(bl.ClusteredNaiveBayes(), data, draws=draws, chains=1)


def test_a_model_without_unknowns_has_nothing_to_converge(data):
    post = bl.sample(bl.NoSharing(), data, draws=3, chains=2)
    np.testing.assert_array_equal(post.partitions(), np.tile(np.arange(8), (6, 1)))


def test_a_prototype_is_sampled_predicted_and_kept(data, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bl.SamplingWarning)
        post = bl.sample(bl.Prototype(), data.mask_labels([0]), draws=100, chains=2, seed=1)
    tree = post.datatree["posterior"]
    assert tree["strength"].dims == ("chain", "draw", "label_value", "feature")
    assert tree["prototype"].dims == ("chain", "draw", "label_value", "cell")
    assert {"strength", "log_joint"} <= set(post.diagnostics())
    rows = data.take([0, 50]).to_frame().drop(columns=data.label_name)
    rows.loc[rows.index[0], data.group_name] = "never seen"
    probability = post.predict_proba(rows)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    loaded = bl.load(post.save(tmp_path / "prototype.nc"))
    np.testing.assert_array_equal(loaded.predict_proba(rows), probability)
    np.testing.assert_array_equal(loaded.predict_proba(), post.predict_proba())


@pytest.mark.parametrize("option", ["draws", "chains", "thin"])
def test_bad_options(data, option):
    with pytest.raises(ValueError, match=f"{option} must be at least 1"):
        bl.sample(bl.ClusteredNaiveBayes(), data, **{option: 0})


def test_many_groups_get_a_sparse_matrix(posterior, monkeypatch):
    dense = posterior.coclustering()
    monkeypatch.setattr("bayes_lcs.inference.posterior.MAX_DENSE_GROUPS", 3)
    sparse = posterior.coclustering()
    assert sparse.format == "csr"
    np.testing.assert_allclose(sparse.toarray(), dense, atol=1e-6)


@pytest.mark.filterwarnings("ignore::bayes_lcs.SamplingWarning")
def test_ctrl_c_keeps_the_draws_made_so_far(data, monkeypatch):
    from bayes_lcs.inference import chain_driver

    whole = bl.sample(bl.ClusteredNaiveBayes(), data, draws=300, chains=4, warmup=5, seed=1)
    run = chain_driver._run_chunk

    def interrupted(config, data, keys, state, start, *numbers):
        if start > 5:
            raise KeyboardInterrupt
        return run(config, data, keys, state, start, *numbers)

    monkeypatch.setattr(chain_driver, "_run_chunk", interrupted)
    part = bl.sample(bl.ClusteredNaiveBayes(), data, draws=300, chains=4, warmup=5, seed=1)
    assert part.interrupted
    assert not whole.interrupted
    kept = part.datatree["posterior"].sizes["draw"]
    assert 0 < kept < 300
    np.testing.assert_array_equal(
        part.datatree["posterior"]["z"], whole.datatree["posterior"]["z"][:, :kept]
    )


def test_a_model_that_the_sampler_does_not_know_is_refused(data):
    class Unheard:
        name = "Unheard"

    with pytest.raises(TypeError, match=r"Unheard cannot be sampled"):
        bl.sample(Unheard(), data)


def test_coclustering_of_some_groups_is_part_of_that_of_all(posterior):
    names = posterior.group_names
    whole, some = posterior.coclustering(), posterior.coclustering([names[2], names[0]])
    np.testing.assert_array_equal(some, whole[np.ix_([2, 0], [2, 0])])
    np.testing.assert_array_equal(posterior.coclustering([2, 0]), some)
    with pytest.raises(ValueError, match="there is no group 'nobody'"):
        posterior.coclustering(["nobody"])


def test_pairs_that_memory_does_not_hold_are_refused(posterior, monkeypatch):
    monkeypatch.setattr("bayes_lcs.inference.posterior.MAX_DENSE_GROUPS", 1)
    monkeypatch.setattr("bayes_lcs.runtime.memory.available_memory", lambda: 100)
    with pytest.raises(MemoryError, match=r"Ask for some of them: coclustering\(groups="):
        posterior.coclustering()
