"""Ctrl-C keeps what is done of an evidence or a comparison, and marks it."""

import numpy as np
import pytest

import bayes_lcs as bl
from bayes_lcs.inference.ais import ais as annealing
from bayes_lcs.model_evidence import ais as annealed_evidence
from bayes_lcs.model_evidence import mean_field_ais
from bayes_lcs.model_evidence import smc as particle_evidence
from bayes_lcs.model_evidence.bidirectional import MIN_COMPLETED_RUNS, bidirectional_estimate
from bayes_lcs.runtime.interrupts import PartialResultInterrupt


@pytest.fixture(scope="module")
def table():
    data, _ = bl.meeting_requests(seed=0, rows_per_person=6)
    return data.select_groups(range(5))


def weights(runs):
    return np.random.default_rng(0).normal(size=(runs, 1))


def test_runs_that_ended_are_an_estimate():
    def cut():
        raise PartialResultInterrupt(weights(MIN_COMPLETED_RUNS))

    found = bidirectional_estimate(-10.0, cut, None)
    whole = bidirectional_estimate(-10.0, lambda: weights(MIN_COMPLETED_RUNS), None)
    assert found.forward == whole.forward
    assert found.interrupted == f"interrupted after {MIN_COMPLETED_RUNS} runs"
    assert not whole.interrupted


def test_too_few_runs_are_none():
    def cut():
        raise PartialResultInterrupt(weights(MIN_COMPLETED_RUNS - 1))

    with pytest.raises(KeyboardInterrupt):
        bidirectional_estimate(-10.0, cut, None)


def test_the_lower_end_is_kept_without_the_upper():
    def cut():
        raise KeyboardInterrupt

    found = bidirectional_estimate(-10.0, lambda: weights(64), cut)
    assert found.ends is None
    assert "reversed runs" in found.interrupted


def interrupted_after(monkeypatch, module, name, calls):
    """Let a function work so many times, and then hear Ctrl-C."""
    real, made = getattr(module, name), []

    def once_more(*args, **kwargs):
        if len(made) == calls:
            raise KeyboardInterrupt
        made.append(1)
        return real(*args, **kwargs)

    monkeypatch.setattr(module, name, once_more)


@pytest.mark.parametrize(
    ("method", "module", "starts"),
    [
        ("ais", annealed_evidence, "posterior_starts"),
        ("particles", particle_evidence, "posterior_starts"),
        pytest.param("guided", mean_field_ais, "_backward_starts", marks=pytest.mark.slow),
    ],
)
def test_an_interrupted_evidence_is_marked(method, module, starts, table, monkeypatch):
    model = bl.ClusteredNaiveBayes()
    whole = bl.evidence(model, table, method, max_chains=64, precision=0.5, bracket=False)
    interrupted_after(monkeypatch, module, starts, 0)
    with pytest.warns(bl.InterruptedWarning, match="reversed runs"):
        found = bl.evidence(model, table, method, max_chains=64, precision=0.5)
    assert found.interrupted
    assert found.bracket is None
    assert found.value == whole.value
    assert not whole.interrupted
    assert "interrupted" in found.how


@pytest.mark.filterwarnings("ignore::bayes_lcs.EvidenceWarning")
def test_chains_at_the_end_are_counted(table, monkeypatch):
    """Two of four batches have come through all temperatures when Ctrl-C is heard."""
    model = bl.ClusteredNaiveBayes()
    monkeypatch.setattr(annealing, "num_cores", lambda: 2)
    whole = bl.evidence(model, table, "ais", max_chains=64, precision=0.5, bracket=False)
    run_batch = annealing._run_batch

    def cut(problem, batches, first, *rest):
        if first == 32:  # of 64 chains; those of the trial are fewer
            raise KeyboardInterrupt
        return run_batch(problem, batches, first, *rest)

    monkeypatch.setattr(annealing, "_run_batch", cut)
    with pytest.warns(bl.InterruptedWarning, match="interrupted after 32 runs"):
        found = bl.evidence(model, table, "ais", max_chains=64, precision=0.5, bracket=False)
    assert found.interrupted
    assert abs(found.value - whole.value) < 5 * found.standard_error


def test_models_that_were_finished_are_compared(table, monkeypatch):
    from bayes_lcs.model_evidence import compare

    interrupted_after(monkeypatch, compare, "evidence", 2)
    models = [bl.NoSharing(), bl.CompleteSharing(), bl.ClusteredNaiveBayes()]
    with pytest.warns(bl.InterruptedWarning, match="2 of 3 models"):
        found = bl.compare(models, table)
    assert found.interrupted
    assert found.models == tuple(models[:2])
    assert found.prior.sum() == pytest.approx(1.0)
    interrupted_after(monkeypatch, compare, "evidence", 0)
    with pytest.raises(KeyboardInterrupt):
        bl.compare(models, table)


def test_known_evidences_are_not_looked_for(table, monkeypatch):
    from bayes_lcs.model_evidence import compare

    one = bl.evidence(bl.NoSharing(), table)
    interrupted_after(monkeypatch, compare, "evidence", 0)
    found = bl.compare([bl.NoSharing()], table, known={bl.NoSharing(): one})
    assert found.evidences == (one,)
