"""Run the command and say how far memory rose above that of the imports, and what was estimated.

    python scripts/memory_peak.py cluster visits.parquet -k 10

One line of JSON on standard error: bytes of the peak, of the estimate that the command compares
with what is free, and of the imports. Linux only.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

from bayes_lcs.core import memory

IMPORTS = (
    "arviz_base",
    "arviz_stats",
    "h5netcdf",
    "jax",
    "jinja2",
    "matplotlib.pyplot",
    "numpyro",
    "pandas",
    "pyarrow.csv",
    "pyarrow.parquet",
    "rich.live",
    "sklearn.ensemble",
    "bayes_lcs.classification.partial_scan",
    "bayes_lcs.report.comparison_page",
    "bayes_lcs.report.coreset_page",
    "bayes_lcs.report.mixture_files",
    "bayes_lcs.report.scan_files",
)


def peak() -> int:
    """The most memory that this program has had so far."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def main() -> None:
    """Run, and report."""
    for name in IMPORTS:
        importlib.import_module(name)
    from bayes_lcs.cli import app

    needs = []
    memory.require_memory = lambda need, *_: needs.append(need)  # type: ignore[assignment]
    before = peak()
    code: object = 0
    try:
        app()
    except SystemExit as end:
        code = end.code
    found = {"peak": peak() - before, "estimate": max(needs, default=0.0), "imports": before}
    print(json.dumps({**found, "exit": code}), file=sys.stderr)


if __name__ == "__main__":
    main()
