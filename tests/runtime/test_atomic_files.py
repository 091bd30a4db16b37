"""Files that are whole or not there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import bayes_lcs as bl
from bayes_lcs.runtime.atomic_files import load_datatree, save_datatree, write_atomically


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "result.txt"
    target.write_text("old")

    def fail(part: Path) -> None:
        part.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_atomically(target, fail)
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["result.txt"]


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing\\.nc"):
        load_datatree(tmp_path / "nothing.nc")


@pytest.mark.parametrize("inside", ["nowhere", "a_file"])
def test_a_folder_that_is_not_there_is_named(tmp_path: Path, inside: str) -> None:
    import xarray as xr

    (tmp_path / "a_file").write_text("in the way")
    with pytest.raises(FileNotFoundError, match=f"fit\\.nc: the folder .*{inside} does not exist"):
        save_datatree(xr.DataTree(), tmp_path / inside / "fit.nc")
    with pytest.raises(IsADirectoryError, match="this is a folder; give the path of a file"):
        save_datatree(xr.DataTree(), tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["a_file"]


def test_a_failed_write_leaves_the_old_checksum_too(tmp_path: Path) -> None:
    import xarray as xr

    class Full(xr.DataTree):
        __slots__ = ()

        def to_netcdf(self, *_: object, **__: object) -> None:
            raise OSError("disk full")

    path = save_datatree(xr.DataTree(), tmp_path / "fit.nc")
    with pytest.raises(OSError, match="disk full"):
        save_datatree(Full(), path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["fit.nc", "fit.nc.sha256"]
    load_datatree(path)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"group,label\n1,2\n", r"this is not a complete netCDF file.*Posterior\.save"),
        (b"", r"this is not a complete netCDF file.*Posterior\.save"),
        (b"\x89HDF\r\n\x1a\n and no more", "the file does not end with the checksum"),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    with pytest.raises(bl.DataError, match=rf"rows\.csv: {told}"):
        bl.load(path)


def test_a_netcdf_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    import xarray as xr

    path = save_datatree(xr.DataTree(), tmp_path / "other.nc")
    with pytest.raises(ValueError, match=r"other\.nc: this netCDF file holds no posterior"):
        bl.load(path)


@pytest.mark.parametrize("is_dangling", [False, True])
def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path, is_dangling: bool) -> None:
    import xarray as xr

    (tmp_path / "big").mkdir()
    target, link = tmp_path / "big" / "7.nc", tmp_path / "latest.nc"
    if not is_dangling:
        save_datatree(xr.DataTree(), target)
    link.symlink_to(target)
    (tmp_path / "latest.nc.sha256").write_text("of the file that was moved away  latest.nc")
    tree = xr.DataTree(xr.Dataset({"x": 7}))
    assert save_datatree(tree, link) == link
    assert link.readlink() == target
    for path in (link, target):
        assert int(load_datatree(path)["x"]) == 7
    assert sorted(p.name for p in tmp_path.rglob("*.*")) == ["7.nc", "7.nc.sha256", "latest.nc"]
    target.write_bytes(target.read_bytes()[:-1] + b"?")
    with pytest.raises(bl.DataError, match="does not match its checksum"):
        load_datatree(link)


def test_a_link_to_the_checksum_stays(tmp_path: Path) -> None:
    import xarray as xr

    target = save_datatree(xr.DataTree(), tmp_path / "7.nc")
    for end in ("", ".sha256"):
        (tmp_path / f"latest.nc{end}").symlink_to(f"{target}{end}")
    save_datatree(xr.DataTree(xr.Dataset({"x": 7})), tmp_path / "latest.nc")
    assert (tmp_path / "latest.nc.sha256").is_symlink()
    assert int(load_datatree(tmp_path / "latest.nc")["x"]) == 7


@pytest.mark.skipif(os.name == "nt", reason="there are no pipes with names")
def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="pipe: this is a device or a pipe"):
        write_atomically(tmp_path / "pipe", lambda part: part.write_text("x") and None)
    assert (tmp_path / "pipe").is_fifo()
