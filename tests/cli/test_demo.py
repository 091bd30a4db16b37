"""The command, run as people run it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from bayes_lcs import __version__
from bayes_lcs.cli import app
from bayes_lcs.plots.partitions import plot_coclustering, plot_num_clusters
from bayes_lcs.runtime.atomic_files import load_datatree

runner = CliRunner()


def test_version_and_help() -> None:
    assert __version__ in runner.invoke(app, ["--version"]).output
    assert "demo" in runner.invoke(app, ["--help"]).output


def test_demo_prints_the_tables_and_leaves_the_files(tmp_path: Path, monkeypatch) -> None:
    from bayes_lcs.data import simulated_meetings
    from bayes_lcs.workflows import demo

    def ten_people(seed: int, rows_per_person: int):
        table, truth = simulated_meetings.meeting_requests(
            seed=seed, rows_per_person=rows_per_person
        )
        few = type(truth)(truth.partition[:10], truth.institutions, truth.theta, truth.phi)
        return table.select_groups(list(range(10))), few

    monkeypatch.setattr(demo, "meeting_requests", ten_people)
    result = runner.invoke(app, ["demo", "--out", str(tmp_path), "--rows", "150"])
    assert result.exit_code == 0, result.output
    for word in ("Log evidence", "Prototype", "person-10", "true partition", "equals"):
        assert word in result.output
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [
        ".results.json",
        "coclustering.png",
        "evidence.png",
        "num_clusters.png",
        "posterior.nc",
        "posterior.nc.sha256",
        "report.html",
    ]
    refused = runner.invoke(app, ["demo", "--out", str(tmp_path)])
    assert refused.exit_code == 2, refused.output
    assert f"{tmp_path}: this folder already contains results" in refused.stderr
    again = runner.invoke(app, ["demo", "--out", str(tmp_path), "--rows", "150", "--force"])
    assert again.exit_code == 0, again.output
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    z = load_datatree(tmp_path / "posterior.nc")["posterior"]["z"]
    assert z.shape == (1, 1000, 10)


def test_plots_take_names_literally_and_return_their_axes() -> None:
    names = ["$x^2", "a" * 500, "<b>"]
    axes = plot_coclustering(np.eye(3), [0, 1, 2], names)
    axes.figure.canvas.draw()
    assert next(t.get_text() for t in axes.get_yticklabels()) == r"\$x^2"
    assert plot_num_clusters([0, 0.5, 0.5]).get_xlabel() == "number of clusters"
