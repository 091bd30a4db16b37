"""Files that are whole or not there."""

from __future__ import annotations

from pathlib import Path

import pytest

import bayes_lcs as bl
from bayes_lcs.data.storage import load_datatree, save_datatree, write_atomically


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
    with pytest.raises(FileNotFoundError, match=f"fit\\.nc: there is no folder .*{inside}.*create"):
        save_datatree(xr.DataTree(), tmp_path / inside / "fit.nc")
    with pytest.raises(IsADirectoryError, match="this is a folder; give the name of a file"):
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
        (b"group,label\n1,2\n", r"this is not a netCDF file.*Posterior\.save"),
        (b"", r"this is not a netCDF file.*Posterior\.save"),
        (b"\x89HDF\r\n\x1a\n and no more", "the file does not end as files do that save writes"),
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
