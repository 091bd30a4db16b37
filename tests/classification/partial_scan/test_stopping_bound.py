"""Rules that stop a scan: how often what they promise is broken."""

import numpy as np
import pytest
from scipy.stats import binom

from bayes_lcs.classification.partial_scan.stopping_bound import AgreementTest
from bayes_lcs.classification.partial_scan.validation import BatchRows, SequentialRows

ACCURACY = {labels: np.eye(labels)[None] for labels in (2, 3)}


def single_rows(bound, num_parts, confidence, ahead=1, files=2000):
    """Files with one row and a near tie: how often the decision at the stop is not that of all."""
    rng = np.random.default_rng(0)
    votes = np.repeat([1.0, 0.0], [num_parts // 2 + ahead, num_parts - num_parts // 2 - ahead])
    votes = rng.permuted(np.tile(votes, (files, 1)), axis=1).T
    said = np.stack([votes, 1.0 - votes], axis=2)
    rule = AgreementTest(num_parts, confidence, bound, "every")
    level = rule.threshold(1, 2)
    wrong, going = 0, np.arange(files)
    for k in range(1, num_parts):
        decided = said[:k, going].mean(axis=0).argmax(axis=1)
        evidence = rule.log_e_values(said[:k, going], ACCURACY[2], decided)
        stops = evidence >= level
        wrong += int((decided[stops] != 0).sum())
        going = going[~stops]
    return wrong / files


def test_bets_keep_their_word_after_every_part():
    assert 0.01 < single_rows("betting", 64, 0.9) < binom.ppf(0.9999, 2000, 0.1) / 2000
    assert 0.03 < single_rows("betting", 64, 0.7) < binom.ppf(0.9999, 2000, 0.3) / 2000


@pytest.mark.parametrize(
    ("bound", "num_parts", "confidence"),
    [("hoeffding", 512, 0.7), ("hoeffding-finite", 128, 0.9)],
)
def test_looking_again_breaks_the_word_of_hoeffding(bound, num_parts, confidence):
    stated = 1.0 - confidence
    assert single_rows(bound, num_parts, confidence) > binom.ppf(0.9999, 2000, stated) / 2000


def simulated_file(rng, num_parts, num_rows, labels, kind):
    """Probabilities (K, N, L) by part: votes that nearly tie, alike over rows or each its own."""
    if kind == "soft":
        said = rng.dirichlet(np.full(labels, 0.7), size=(num_parts, num_rows))
        return said / said.sum(axis=2, keepdims=True)
    votes = np.arange(num_parts) % labels
    votes[0] = 1
    columns = [rng.permutation(votes) for _ in range(num_rows)]
    if kind == "alike":
        columns = [columns[0]] * num_rows
    return np.eye(labels)[np.stack(columns, axis=1)]


class Says:
    """A model that has its say on every validation row by heart."""

    def __init__(self, said):
        self.said, self.classes_ = said, np.arange(said.shape[1])

    def predict_proba(self, X):
        return self.said[X[:, 0].astype(int)]


def broken(rule, labels, kind, validation, files, num_rows=10):
    """Share of files on which more rows differ from the full ensemble than the rule allows."""
    rng = np.random.default_rng(1)
    failures, stopped = 0, 0
    X = np.arange(num_rows)[:, None]
    for _ in range(files):
        said = simulated_file(rng, rule.num_parts, num_rows, labels, kind)
        said = said[rng.permutation(rule.num_parts)]
        full = said.mean(axis=0).argmax(axis=1)
        rows = validation(X, lambda rows: rows, None, rule)
        models = []
        for part in said[:-1]:
            models.append(Says(part))
            if rows.update(models, list(range(labels))).is_done:
                stopped += 1
                break
        else:
            continue
        decided = said[: len(models)].mean(axis=0).argmax(axis=1)
        failures += (decided != full).mean() > rule.max_unsettled_share
    return failures / files, stopped / files


CASES = [
    (2, "alike", BatchRows, "tolerance"),
    (2, "alike", BatchRows, "every"),
    (2, "soft", BatchRows, "tolerance"),
    (3, "alike", BatchRows, "tolerance"),
    (2, "alike", SequentialRows, "tolerance"),
    (2, "alike", SequentialRows, "every"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("labels", "kind", "validation", "rule"), CASES)
def test_promises_are_kept_on_a_thousand_files(labels, kind, validation, rule):
    """Looks after every part, near ties on all rows: the stated failures, and no more."""
    agreement = AgreementTest(20, 0.7, "betting", rule, 0.3)
    failures, stopped = broken(agreement, labels, kind, validation, 1000)
    assert failures <= binom.ppf(0.9999, 1000, 0.3) / 1000
    assert stopped > 0.02  # there is something to fail


def test_promises_are_kept_on_a_hundred_files():
    agreement = AgreementTest(20, 0.7, "betting", "tolerance", 0.3)
    failures, stopped = broken(agreement, 2, "alike", BatchRows, 100)
    assert failures <= binom.ppf(0.9999, 100, 0.3) / 100
    assert stopped > 0.1


def test_e_values_of_wrong_rows_have_room_for_few():
    """By hand: e-values 9, 50, 400 under a sum of 3 / 0.05 = 60: the first two may be wrong."""
    rule = AgreementTest(1000, 0.95, "betting", "tolerance", 0.1)

    class Known(AgreementTest):
        def log_e_values(self, expected, benefits, decisions):
            return np.log([400.0, 9.0, 50.0])

    known = Known(rule.num_parts, rule.confidence)
    said = np.tile([[[0.9, 0.1]]], (2, 3, 1))
    assert known.evaluate(said, ACCURACY[2]).num_settled == 1


def test_decisions_that_cannot_be_worse_need_no_evidence():
    """Deciding 0 brings at least as much as 1 under either label."""
    benefits = np.array([[[3.0, 1.0], [2.0, 2.0]]])
    rule = AgreementTest(64, 0.997, "betting", "every")
    said = np.array([[[0.5, 0.5]]])
    expected = np.einsum("kny,nyl->knl", said, benefits)
    assert rule.evaluate(expected, benefits).num_settled == 1


def test_all_parts_settle_everything():
    for bound in ("betting", "hoeffding", "hoeffding-finite"):
        rule = AgreementTest(2, 0.997, bound, "every")
        said = np.array([[[0.5, 0.5]], [[0.5, 0.5]]])
        assert rule.evaluate(said, ACCURACY[2]).num_settled == 1
        assert rule.evaluate(said[:1], ACCURACY[2]).num_settled == 0


def test_ranges_of_benefits_matter():
    """A lead of one half is little where a thousand may be lost."""
    rule = AgreementTest(64, 0.9, "betting", "every")
    small = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    large = np.array([[[1000.0, 0.0], [0.0, 1.0]]])
    settled = {}
    for name, benefits, p in (("small", small, 0.95), ("large", large, 0.0005)):
        said = np.tile([[[p, 1.0 - p]]], (12, 1, 1))
        expected = np.einsum("kny,nyl->knl", said, benefits)
        settled[name] = rule.evaluate(expected, benefits).num_settled
    assert settled == {"small": 1, "large": 0}
