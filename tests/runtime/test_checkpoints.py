"""Checkpoints: written whole, taken up by the same run only, and never in the way of the work."""

import errno
import json

import numpy as np
import pytest

import bayes_lcs as bl
from bayes_lcs.runtime import checkpoints as module
from bayes_lcs.runtime.checkpoints import (
    checkpointed_task,
    checkpoints,
    content_addressed_task,
    fingerprint,
)
from tests.crash_states import keep_states


@pytest.fixture(autouse=True)
def _all_is_kept(monkeypatch):
    for name in ("SECONDS_BETWEEN_SAVES", "MAX_UNSAVED_SECONDS", "MAX_SECONDS_BETWEEN_SAVES"):
        monkeypatch.setattr(module, name, -1.0)


def count_to(number, stop_at=None):
    """A computation of numbered pieces that can be stopped after some of them."""
    with checkpointed_task("count", number) as written:
        done = len(written.pieces)
        found = [int(piece["n"]) for piece in written.pieces]
        for n in range(done, number):
            if n == stop_at:
                raise RuntimeError("killed")
            found.append(n)
            written.update(lambda n=n: {"last": np.asarray(n)}, {"n": np.asarray(n)})
        written.finish(lambda: {"last": np.asarray(number - 1)})
    return found, done


def test_work_goes_on_where_it_was(tmp_path):
    with pytest.raises(RuntimeError), checkpoints(tmp_path):
        count_to(10, stop_at=4)
    with checkpoints(tmp_path) as kept:
        assert count_to(10) == (list(range(10)), 4)
        assert kept.recalled == 1
    with checkpoints(tmp_path):
        assert count_to(10) == (list(range(10)), 10)


def test_works_are_known_by_their_order(tmp_path):
    with checkpoints(tmp_path):
        assert count_to(3)[1] == 0
        assert count_to(5)[1] == 0
    with checkpoints(tmp_path):
        assert count_to(3)[1] == 3
        assert count_to(5)[1] == 5
        assert count_to(2)[1] == 0


def test_without_checkpoints_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert count_to(4) == (list(range(4)), 0)
    assert not list(tmp_path.iterdir())


def test_another_computation_is_refused(tmp_path):
    with checkpoints(tmp_path):
        count_to(3)
    with pytest.raises(bl.DataError, match="another run"), checkpoints(tmp_path):
        count_to(4)


def test_other_settings_are_named(tmp_path):
    with checkpoints(tmp_path, {"--seed": "0"}):
        pass
    message = "--seed was '0' and is '1'"
    with pytest.raises(bl.DataError, match=message), checkpoints(tmp_path, {"--seed": "1"}):
        pass


def test_another_version_is_refused(tmp_path, monkeypatch):
    with checkpoints(tmp_path):
        pass
    monkeypatch.setattr(module, "__version__", "99")
    with pytest.raises(bl.DataError, match="bayes_lcs was"), checkpoints(tmp_path):
        pass


def test_parts_of_work_that_is_known_are_not_asked_for(tmp_path):
    def outer(calls):
        with checkpointed_task("outer") as written:
            if written.state is None:
                calls.append(count_to(3))
                written.finish()
        return count_to(2)[1]

    calls: list = []
    with checkpoints(tmp_path):
        assert outer(calls) == 0
    assert not list(tmp_path.glob("*_*")), "parts of finished work are removed"
    with checkpoints(tmp_path):
        assert outer(calls) == 2
    assert len(calls) == 1


@pytest.mark.parametrize("place", range(12))
def test_damage_is_refused(tmp_path, place):
    with checkpoints(tmp_path):
        count_to(3)
    files = sorted(path for path in tmp_path.iterdir() if path.suffix != ".sha256")
    path = files[place % len(files)]
    content = bytearray(path.read_bytes())
    if place % 2:
        content = content[: len(content) * (place + 1) // 14]
    else:
        content[len(content) * (place + 1) // 14] ^= 0x10
    path.write_bytes(bytes(content))
    with pytest.raises(bl.DataError, match="damaged"), checkpoints(tmp_path):
        count_to(3)


def test_a_missing_piece_is_refused(tmp_path):
    with checkpoints(tmp_path):
        count_to(3)
    next(iter(tmp_path.glob("*.0001.npz"))).unlink()
    with pytest.raises(bl.DataError, match="missing"), checkpoints(tmp_path):
        count_to(3)


def test_a_full_disk_ends_the_keeping_and_not_the_work(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with checkpoints(tmp_path):
        monkeypatch.setattr(module, "write_with_checksum", full)
        with pytest.warns(bl.CheckpointWarning, match="No space left") as caught:
            assert count_to(5)[0] == list(range(5))
        assert len(caught) == 1


def test_a_disk_with_room_again_is_written_to_again(tmp_path, monkeypatch):
    written, tries = module.write_with_checksum, []

    def full_at_first(*args):
        tries.append(args)
        if len(tries) <= 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return written(*args)

    with checkpoints(tmp_path) as kept:
        monkeypatch.setattr(module, "write_with_checksum", full_at_first)
        with pytest.warns(bl.CheckpointWarning):
            count_to(5)
        assert kept.failed
    with checkpoints(tmp_path):
        assert count_to(5) == (list(range(5)), 5)


def test_short_work_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SECONDS_BETWEEN_SAVES", 1000.0)
    monkeypatch.setattr(module, "MAX_UNSAVED_SECONDS", 1000.0)
    with checkpoints(tmp_path):
        count_to(3)
    assert {path.name for path in tmp_path.iterdir()} == {"run.json", "run.json.sha256"}


def test_ctrl_c_writes_what_is_known(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SECONDS_BETWEEN_SAVES", 1000.0)

    def interrupted():
        with checkpointed_task("count") as written:
            written.update(lambda: {"a": np.asarray(7)}, {"p": np.asarray(1)})
            raise KeyboardInterrupt

    with checkpoints(tmp_path), pytest.raises(KeyboardInterrupt):
        interrupted()
    with checkpoints(tmp_path), checkpointed_task("count") as written:
        assert int(written.state["a"]) == 7
        assert [int(piece["p"]) for piece in written.pieces] == [1]


def test_ctrl_c_before_anything_is_known_writes_nothing(tmp_path):
    def interrupted():
        with checkpointed_task("count") as written:
            written.save()
            raise KeyboardInterrupt

    with checkpoints(tmp_path), pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not list(tmp_path.glob("*.npz"))


def test_nothing_is_pickle(tmp_path):
    with checkpoints(tmp_path) as kept, pytest.raises(AssertionError):
        kept.write("x", lambda: {"a": np.array([{}], dtype=object)})
    np.savez(tmp_path / "0001-count.state.npz", a=np.array([{}], dtype=object))
    with pytest.raises(bl.DataError, match="damaged"), checkpoints(tmp_path):
        count_to(3)


def test_removing_forgets(tmp_path):
    with checkpoints(tmp_path / "kept") as kept:
        count_to(3)
        kept.remove()
    assert not (tmp_path / "kept").exists()


def test_removing_leaves_other_files(tmp_path):
    (tmp_path / "mine.npz").write_text("mine")
    with checkpoints(tmp_path) as kept:
        count_to(3)
        kept.remove()
    assert [path.name for path in tmp_path.iterdir()] == ["mine.npz"]


def test_removing_that_is_cut_short_counts_as_done(tmp_path):
    """However far it came, the next run begins anew; files of others stay."""
    folder, states = tmp_path / "kept", tmp_path / "states"
    folder.mkdir()
    (folder / "mine.0001.npz").write_text("mine")
    with checkpoints(folder) as kept:
        count_to(3)
        with keep_states(folder, states):
            kept.remove()
    cut = sorted(states.iterdir())
    assert len(cut) == 11, "run.json, three pieces, a state, their checksums, and the folder"
    with checkpoints(cut[0]):
        assert count_to(3)[1] == 3
    for state in cut[1:]:
        with checkpoints(state):
            assert count_to(3)[1] == 0
            assert (state / "mine.0001.npz").read_text() == "mine"


def test_settings_are_readable(tmp_path):
    with checkpoints(tmp_path, {"a": "1"}):
        pass
    assert json.loads((tmp_path / "run.json").read_text())["a"] == "1"


def test_fingerprints_do_not_depend_on_addresses():
    class Plain:
        pass

    assert fingerprint(Plain()) == fingerprint(Plain())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((np.arange(3),), (np.arange(3.0),)),
        ((np.arange(4),), (np.arange(4).reshape(2, 2),)),
        (([1], [2]), ([1, 2], [])),
        (("a",), ("b",)),
        ((1,), (True,)),
        ((lambda x: x + 1,), (lambda x: x + 2,)),
        ((np.array(["a", None], dtype=object),), (np.array(["a", "None"], dtype=object),)),
    ],
)
def test_fingerprints_tell_apart(one, other):
    assert fingerprint(*one) == fingerprint(*one)
    assert fingerprint(*one) != fingerprint(*other)


def test_what_an_estimator_says_on_the_way_does_not_change_its_fingerprint():
    def found(**options):
        return fingerprint(bl.MixtureClusterer(3, **options))

    assert found(verbose=None) == found(verbose=True) == found()
    assert found(random_state=0) != found(random_state=1)
    assert found() != fingerprint(bl.KMeans(3))
    assert fingerprint(bl.MixtureClusterer) == fingerprint(bl.MixtureClusterer)


def test_named_work_is_found_whenever_it_comes(tmp_path):
    def read(name):
        with content_addressed_task("reading", name) as kept:
            before = None if kept.state is None else str(kept.state["found"])
            kept.finish(lambda: {"found": np.asarray(name)})
        return before

    with checkpoints(tmp_path):
        assert [read("a"), count_to(3)[1], read("b")] == [None, 0, None]
    with checkpoints(tmp_path):
        assert [read("b"), count_to(3)[1], read("a"), read("c")] == ["b", 3, "a", None]


def test_pieces_are_read_one_file_at_a_time(tmp_path):
    with checkpoints(tmp_path):
        count_to(5)
    with checkpoints(tmp_path), checkpointed_task("count", 5) as kept:
        pieces = kept.iter_pieces()
        assert int(next(pieces)["n"]) == 0
        for path in tmp_path.glob("*.0001.npz"):
            path.unlink()
        with pytest.raises(bl.DataError, match="a checkpoint is missing"):
            next(pieces)
